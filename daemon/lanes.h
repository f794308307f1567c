/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lanes: calls of one file system, whatever the exports by which they come, go by one lane; those
 * that name none go by lane 0. A worker serves one lane at a time, so that one that is stuck in a
 * file system holds up nothing but that file system (doc/design/waiting.md). File systems beyond
 * the number of lanes share the last ones. Thread-safe, without locks but for changes.
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

/* The export of that id lies on that file system from now on. */
void lanes_put(struct lanes *l, uint32_t export_id, dev_t dev);
/* Its lane; 0: there was none of that id. */
unsigned lanes_of(const struct lanes *l, uint32_t export_id);

/* All workers that a lane may have are stuck in its file system: no further call is to begin. */
bool lanes_blocked(const struct lanes *l, unsigned lane);
void lanes_block(struct lanes *l, unsigned lane, bool blocked);
/* Device number of the lane's file system, for messages. */
dev_t lanes_device(const struct lanes *l, unsigned lane);

#endif
