/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the connection manager (cm_*.c) is told by the rest. All are called with the fabric's lock
 * held, in the engine, and must not block.
 */
#ifndef SV_CM_HOOKS_H
#define SV_CM_HOOKS_H

#include <stddef.h>
#include <stdint.h>

struct ibv_qp;
struct sv_link;
struct sv_device;

void sv_cm_receive(struct sv_link *l, uint8_t type, const void *data, size_t len);
void sv_cm_link_lost(struct sv_link *l);
void sv_cm_device_removed(struct sv_device *dev);
/* A fault has cut the connection of this queue pair, which is in error now: DISCONNECTED. */
void sv_cm_dropped(struct ibv_qp *qp);

void sv_cm_forget(void); /* in the child of a fork(): the parent's state means nothing any more */

#endif
