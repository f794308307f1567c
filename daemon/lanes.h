/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lanes. Calls of one file system, whatever their exports, use one lane; calls that name no file
 * use lane 0. A worker serves one lane at a time, so that a worker stuck in a file system delays
 * only calls to that file system (doc/design/waiting.md). File systems beyond the number of lanes
 * share the last ones. Thread-safe, without locks but for changes.
 */
#ifndef RN_DAEMON_LANES_H
#define RN_DAEMON_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "rpc/client.h"

struct lanes;

struct lanes *lanes_new(void); /* NULL: no memory */
void lanes_free(struct lanes *l);

/* An export, and the file system that it lies on; local as in vfs_export_is_local. */
struct lanes_export {
	uint32_t id;
	const char *path; /* copied */
	dev_t dev;
	bool local;
};
void lanes_put(struct lanes *l, const struct lanes_export *e);
/* The export's lane; 0: no such export is known. */
unsigned lanes_of(const struct lanes *l, uint32_t export_id);

/* Marks a lane as blocked: all its workers are stuck in its file system, and no further call may
 * begin. */
bool lanes_blocked(const struct lanes *l, unsigned lane);
void lanes_block(struct lanes *l, unsigned lane, bool blocked);
/* True if calls of the lane may begin on event threads: all its file systems are local, and none of
 * its calls is stuck, or was slow lately. Lane 0: false, as its calls may turn out to use any file
 * system. now as of rn_now_ns. */
bool lanes_prompt(const struct lanes *l, unsigned lane, uint64_t now);
/* Records whether some call of the lane is stuck in its file system. */
void lanes_doubt(struct lanes *l, unsigned lane, bool stuck);
/* Records that a call of the lane took long on an event thread: for a second, further ones go to the
 * pool. now as of rn_now_ns. */
void lanes_was_slow(struct lanes *l, unsigned lane, uint64_t now);
enum { LANES_NAME = 512 };
/* Names the lane's file system for a message, by its device and the export that was put there last. */
void lanes_name(struct lanes *l, unsigned lane, char text[LANES_NAME]);

#endif
