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

/* rdma_devices.c */
static void metrics_rdma_devices(struct metrics *m)
{
	static const struct metrics_family f = { "ringnfs_rdma_receive_not_ready", METRICS_COUNTER,
						 NULL,
						 "Messages that had to be sent again for want of a "
						 "Receive, where the device counts them." };
	DIR *dir = opendir(FOLDER);
	const struct dirent *e;
	unsigned n = 0;

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

static void metrics_rdma_put_number(struct metrics *m, const struct metrics_family *f,
				    uint64_t value)
{
	metrics_family(m, f);
	metrics_value(m, value, NULL);
}

static void metrics_put_rdma_chunks(struct metrics *m, const struct rr_stats *r)
{
	static const struct metrics_family chunks = { "ringnfs_rdma_chunks", METRICS_COUNTER, NULL,
						      "Chunks that were used; call is a Read chunk "
						      "at position zero, with the call itself." };
	static const struct metrics_family segments = { "ringnfs_rdma_segments", METRICS_COUNTER,
							NULL, "Segments in the lists of calls." };

	metrics_family(m, &chunks);
	metrics_value(m, r->read_chunks - r->position_zero, "kind", "read", NULL);
	metrics_value(m, r->position_zero, "kind", "call", NULL);
	metrics_value(m, r->write_chunks, "kind", "write", NULL);
	metrics_value(m, r->reply_chunks, "kind", "reply", NULL);
	metrics_family(m, &segments);
	metrics_value(m, r->listed_read, "kind", "read", NULL);
	metrics_value(m, r->listed_write, "kind", "write", NULL);
	metrics_value(m, r->listed_reply, "kind", "reply", NULL);
}

static void put_work(struct metrics *m, const struct rr_stats *r)
{
	static const struct metrics_family reads = { "ringnfs_rdma_reads", METRICS_COUNTER, NULL,
						     "RDMA Reads posted." };
	static const struct metrics_family writes = { "ringnfs_rdma_writes", METRICS_COUNTER, NULL,
						      "RDMA Writes posted." };
	static const struct metrics_family read = { "ringnfs_rdma_read_bytes", METRICS_COUNTER,
						    "bytes", "Bytes of Read chunks." };
	static const struct metrics_family written = { "ringnfs_rdma_written_bytes",
						       METRICS_COUNTER, "bytes",
						       "Bytes of Write and Reply chunks." };
	static const struct metrics_family invalidations = {
		"ringnfs_rdma_invalidations", METRICS_COUNTER, NULL,
		"Replies that have invalidated the client's memory region."
	};
	static const struct metrics_family waits = {
		"ringnfs_rdma_send_queue_waits", METRICS_COUNTER, NULL,
		"Times that work had to wait for the send queue."
	};
	static const struct metrics_family posts = { "ringnfs_rdma_posts", METRICS_COUNTER, NULL,
						     "Times that a send queue was given work." };

	metrics_rdma_put_number(m, &reads, r->read_segments);
	metrics_rdma_put_number(m, &writes, r->write_segments);
	metrics_rdma_put_number(m, &read, r->read_bytes);
	metrics_rdma_put_number(m, &written, r->write_bytes);
	metrics_rdma_put_number(m, &invalidations, r->invalidations);
	metrics_rdma_put_number(m, &waits, r->sq_waits);
	metrics_rdma_put_number(m, &posts, r->posts);
}

static void put_errors(struct metrics *m, const struct rr_stats *r)
{
	static const struct metrics_family errors = {
		"ringnfs_rdma_errors", METRICS_COUNTER, NULL,
		"Errors that clients were told: of the header, the chunks, the message, or for "
		"want of room for the reply."
	};
	static const char *const reasons[RR_REFUSALS] = {
		[RR_REFUSED_HEADER] = "header",	   [RR_REFUSED_CHUNKS] = "chunks",
		[RR_REFUSED_BROKEN] = "broken",	   [RR_REFUSED_MESSAGE] = "message",
		[RR_REFUSED_REPLY] = "reply_room",
	};

	metrics_family(m, &errors);
	for (unsigned i = 0; i < RR_REFUSALS; i++)
		metrics_value(m, r->refused_by[i], "error", "ERR_CHUNK", "reason", reasons[i],
			      NULL);
	metrics_value(m, r->err_vers, "error", "ERR_VERS", "reason", "version", NULL);
}

void metrics_rdma(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family devices = { "ringnfs_rdma_devices", METRICS_GAUGE, NULL,
						       "RDMA devices in use." };
	static const struct metrics_family credits = {
		"ringnfs_rdma_credits_granted", METRICS_GAUGE, NULL,
		"Calls that all connections may have under way."
	};
	static const struct metrics_family broken = {
		"ringnfs_rdma_completion_errors", METRICS_COUNTER, NULL,
		"Work that failed, for the first time on a connection."
	};
	struct rr_stats r;

	if (!from->held.rdma)
		return;
	rr_server_stats(from->held.rdma, &r);
	metrics_rdma_put_number(m, &devices, r.devices);
	metrics_rdma_put_number(m, &credits, r.credits);
	metrics_put_rdma_chunks(m, &r);
	put_work(m, &r);
	put_errors(m, &r);
	metrics_rdma_put_number(m, &broken, r.cq_errors);
	metrics_rdma_devices(m);
}
