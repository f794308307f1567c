/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/metrics/collect.h"

char *metrics_collect(const struct metrics_sources *from, enum metrics_format format, size_t *len)
{
	struct metrics m;

	if (metrics_begin(&m, format) < 0)
		return NULL;
	metrics_process(&m, from);
	metrics_calls(&m, from);
	metrics_exports(&m, from);
	metrics_connections(&m, from);
	metrics_rdma(&m, from);
	metrics_gss(&m, from);
	metrics_threads(&m, from);
	metrics_memory(&m, from);
	metrics_nfs4(&m, from);
	metrics_records(&m, from);
	return metrics_end(&m, len);
}
