/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that hosts share. Three quarters are for all: a host may have as much of them as it leaves free, alone half, a second
 * host a quarter. The last quarter is for hosts that have a thousandth of all at most, 256 of them: so there is room for a host that comes last,
 * however many others take what they may.
 *
 * The owner of a room guards it.
 */
#ifndef RN_NFS3_NLM_NLM_ROOM_H
#define RN_NFS3_NLM_NLM_ROOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rpc/address.h"

#define NLM_ROOM_BUCKETS 256u

struct nlm_room_host;
LIST_HEAD(nlm_room_list, nlm_room_host);

struct nlm_room {
	size_t max, used; /* bytes */
	uint8_t key[16];
	struct nlm_room_list hosts[NLM_ROOM_BUCKETS];
};

void nlm_room_init(struct nlm_room *r, size_t max);
bool nlm_room_fits(const struct nlm_room *r, const struct rpc_address *addr, size_t bytes);
/* Takes them if they fit, and there is memory to note it. */
bool nlm_room_take(struct nlm_room *r, const struct rpc_address *addr, size_t bytes);
/* Bytes that a host has. */
size_t nlm_room_has(const struct nlm_room *r, const struct rpc_address *addr);
/* Takes and gives bytes of a host that has some. It cannot fail. */
void nlm_room_change(struct nlm_room *r, const struct rpc_address *addr, size_t take, size_t give);

#endif
