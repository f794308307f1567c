/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages for which no Receive was posted: the sender gets "receiver not ready", and tries again. Only the device
 * counts them, under a name of its driver's own, for all programs that use it.
 */
#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "daemon/metrics/collect.h"
#include "lib/util.h"

#define FOLDER "/sys/class/infiniband"
#define DEVICES_MOST 64u

static const char *const names[] = { "out_of_buffer", "send_rnr_err", "rnr_nak_sent" };

/* Opens a counter of the device's first port. NULL: it has none. */
static FILE *open_counter(const char *device)
{
	char path[PATH_MAX];
	FILE *f = NULL;

	for (size_t i = 0; i < rn_array_size(names) && !f; i++) {
		snprintf(path, sizeof(path), FOLDER "/%s/ports/1/hw_counters/%s", device, names[i]);
		f = fopen(path, "re");
	}
	return f;
}

static void metrics_put_rdma_device(struct metrics *m, const char *device)
{
	FILE *f = open_counter(device);
	uint64_t n;

	if (!f)
		return;
	if (fscanf(f, "%" SCNu64, &n) == 1)
		metrics_value(m, n, "device", device, NULL);
	fclose(f);
}

void metrics_rdma_devices(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family f = { "ringnfs_rdma_receive_not_ready", METRICS_COUNTER,
						 NULL,
						 "Messages that had to be sent again for want of a "
						 "Receive, where the device counts them." };
	const struct dirent *e;
	unsigned n = 0;
	DIR *dir;

	if (!from->parts.rdma)
		return;
	dir = opendir(FOLDER);
	metrics_family(m, &f);
	if (!dir)
		return;
	while (n < DEVICES_MOST && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		metrics_put_rdma_device(m, e->d_name);
		n++;
	}
	closedir(dir);
}
