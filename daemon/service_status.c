/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/service_status.h"

#include <inttypes.h>
#include <stdio.h>

#include "lib/clock.h"

#define MIB 1048576.0

static double rate(uint64_t now, uint64_t before, uint64_t ms)
{
	return ms ? (double)(now - before) * (double)RN_MS_PER_SECOND / (double)ms : 0;
}

void service_status_text(const struct service_now *now, const struct service_totals *before,
			 char text[SERVICE_STATUS_MAX])
{
	const struct service_totals *t = &now->totals;
	const uint64_t ms = t->ms - before->ms;
	const int len = snprintf(text, SERVICE_STATUS_MAX,
				 "%" PRIu64 " clients, %" PRIu64 " connections; %.0f calls/s, "
				 "%.1f MiB/s in, %.1f MiB/s out",
				 now->clients, now->connections, rate(t->calls, before->calls, ms),
				 rate(t->bytes_in, before->bytes_in, ms) / MIB,
				 rate(t->bytes_out, before->bytes_out, ms) / MIB);

	if (now->stuck && len > 0 && len < SERVICE_STATUS_MAX)
		snprintf(text + len, (size_t)(SERVICE_STATUS_MAX - len),
			 "; %u workers wait for a file system", now->stuck);
}
