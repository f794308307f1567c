/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_TESTS_MOVER_H
#define RN_TESTS_MOVER_H

#include <stdbool.h>

#include "lib/fiber.h"

struct vfs_worker;

/* A fiber on a thread that must not block, without a thread: it changes to the other worker where it moves. */
struct mover {
	struct rn_fiber fiber;
	struct vfs_worker *event, *usual;
	bool moved;
};
void mover_init(struct mover *m, struct vfs_worker *event, struct vfs_worker *usual);
/* True if it has moved. It is back afterwards. */
bool mover_has_moved(struct mover *m);

#endif
