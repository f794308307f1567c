/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers of the server's parts. One table (numbers.c) has a row for each, with the places where it is shown: a metric, the resources of the
 * control socket's status, a line of the log. Calls by operation are counted in counters.h.
 */
#ifndef RN_DAEMON_COUNTERS_NUMBERS_H
#define RN_DAEMON_COUNTERS_NUMBERS_H

#include "admin/metrics.h"
#include "daemon/server_parts.h"

/* Resources that the process holds at this moment, each a name and a number: documented in ringnfsd(8). When every client
 * has gone and nothing is cached, all but the limits are zero; a number that does not return to zero is a leak. */
struct held_sink {
	void (*add)(void *ctx, const char *name, uint64_t value);
	void *ctx;
};

/* Gives the numbers that cost next to nothing: all but those of the process's descriptors and
 * threads, which /proc has to be read for. Any thread. */
void held_each(const struct server_parts *from, const struct held_sink *to);

/*
 * What has been counted goes on in the next program, by the names of its metrics: it is added to what that program counts itself. Numbers of
 * the present are not handed over, and neither are those that only the log has.
 */
struct numbers_former;
void numbers_save(const struct server_parts *from, struct image_writer *w);
/* *out: to be freed by free(). 0, -EPROTO or -ENOMEM. */
int numbers_load(struct image_reader *image, struct numbers_former **out);

/* Logs a line for each part of the server, and one of what is held. */
void numbers_log(const struct server_parts *from, const struct rn_logger *log, enum rn_level level);
/* Writes all metrics of the table. lease: seconds. */
void numbers_metrics(struct metrics *m, const struct server_parts *from, unsigned lease);

#endif
