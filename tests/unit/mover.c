/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/mover.h"

static void change_worker(struct rn_fiber *f)
{
	struct mover *m = f->owner;

	m->moved = true;
	f->worker = m->usual;
	f->move = NULL;
}

static void go_back(struct mover *m)
{
	m->moved = false;
	m->fiber.worker = m->event;
	m->fiber.move = change_worker;
}

void mover_init(struct mover *m, struct vfs_worker *event, struct vfs_worker *usual)
{
	*m = (struct mover){ .fiber.owner = m, .event = event, .usual = usual };
	go_back(m);
}

bool mover_has_moved(struct mover *m)
{
	const bool moved = m->moved;

	go_back(m);
	return moved;
}
