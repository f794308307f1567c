/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains and local keys: see rdma_keys.c for what they let a peer reach. */
#ifndef RN_TRANSPORT_RDMA_KEYS_H
#define RN_TRANSPORT_RDMA_KEYS_H

#include "transport/rdma/rdma_types.h"

/* Sets c->pd. On loops[0]. 0 or -ENOMEM. */
int rr_domain_make(struct rr_conn *c);
/* After the queue pair and all its regions are gone. */
void rr_domain_end(struct rr_conn *c);

/* The local key for the whole of r->data, which RDMA Reads fill. 0 or -errno. On the loop. */
int rr_key_for_sink(struct rr_req *r, uint32_t *lkey);
/* The local key for bytes in holder, which RDMA Writes send. 0 or -errno. On the loop. */
int rr_key_for_source(struct rr_req *r, const struct rn_payload *holder, uint8_t *at, size_t len,
		      uint32_t *lkey);
/* Ends the registrations made for r. 0 or -errno: the peer may still reach the memory until the
 * queue pair is gone. */
int rr_keys_end(struct rr_req *r);

#endif
