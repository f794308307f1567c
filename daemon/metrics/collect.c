/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/metrics/collect.h"

#include "daemon/counters/numbers.h"

char *metrics_collect(const struct metrics_sources *from, enum metrics_format format, size_t *len)
{
	struct metrics m;

	if (metrics_begin(&m, format) < 0)
		return NULL;
	metrics_process(&m, from);
	metrics_calls(&m, from);
	metrics_exports(&m, from);
	metrics_cluster(&m, from);
	metrics_threads(&m, from);
	metrics_rdma_devices(&m, from);
	numbers_metrics(&m, &from->parts, from->settings->nfs4.lease_time);
	return metrics_end(&m, len);
}
