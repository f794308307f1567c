/* SPDX-License-Identifier: BSD-2-Clause */
/* The line that `systemctl status` shows: who is there, and what was done for them in the last seconds. */
#ifndef RN_DAEMON_SERVICE_STATUS_H
#define RN_DAEMON_SERVICE_STATUS_H

#include <stddef.h>
#include <stdint.h>

/* Counts that only grow, and the time when they were read. */
struct service_totals {
	uint64_t ms; /* rn_now_ms() */
	uint64_t calls;
	uint64_t bytes_in, bytes_out; /* by TCP, and by RDMA Reads and Writes */
};

struct service_now {
	uint64_t clients, connections;
	unsigned stuck; /* workers that wait for a file system which does not answer */
	struct service_totals totals;
};

enum { SERVICE_STATUS_MAX = 160 };

/* Rates are those since before. */
void service_status_text(const struct service_now *now, const struct service_totals *before,
			 char text[SERVICE_STATUS_MAX]);

#endif
