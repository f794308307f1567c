/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of NFSv4 as its parts see it, and two helpers for them: a hash, and the counters of the caller. */
#ifndef RN_NFS4_NFS4_PRIVATE_H
#define RN_NFS4_NFS4_PRIVATE_H

#include <sodium.h>
#include <stdatomic.h>
#include <stdint.h>

#include "lib/log.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_server.h"
#include "rpc/sum.h"

/* A hash for values that clients cannot choose; for those that they can, see nfs4_client_hash. */
static inline uint64_t nfs4_mix(uint64_t h)
{
	h ^= h >> 32;
	h *= 0x9e3779b97f4a7c15u;
	h ^= h >> 29;
	return h;
}

/*
 * Counts of one client's operations. Any thread adds to them. In minor version 0 a COMPOUND's client is
 * known from the first operation on that names it, by its id or by a stateid; those before are not counted.
 */
struct nfs4_counts {
	_Atomic uint64_t calls;	 /* COMPOUNDs of minor version 0; others begin with a SEQUENCE */
	_Atomic uint64_t errors; /* operations that failed */
	_Atomic uint64_t bytes_read, bytes_written;
	_Atomic uint64_t op[NFS4_OPS]; /* by number; those that there are not: 0 */
};

static inline void nfs4_count(_Atomic uint64_t *n, uint64_t add)
{
	atomic_fetch_add_explicit(n, add, memory_order_relaxed);
}

/* Data shared by the parts of nfs4/. Each part makes and frees its own member, in the order of this
 * list. */

struct nfs4_clients;
struct nfs4_copies;
struct nfs4_copy_sources;
struct nfs4_deleg_holders;
struct nfs4_dir_notify_list;
struct nfs4_layouts;
struct nfs4_pseudo;
struct nfs4_recall_list;
struct nfs4_recovery;
struct nfs4_totals;

struct nfs4_server {
	struct nfs4_config cfg;
	/* Random key, so that no client can predict a hash or aim at one bucket of a table. */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct rpc_sum_secret sum_secret; /* likewise, for nfs4_call_sum() */
	struct rn_log_hosts told;	  /* limit of messages about clients (nfs4/told.h) */
	_Atomic int drain;		  /* enum nfs4_drain */
	struct nfs4_pseudo *pseudo;	  /* nfs4/pseudo/pseudo.h */
	struct nfs4_recovery *recovery;	  /* nfs4/recovery/recovery.h */
	struct nfs4_totals *totals;	  /* nfs4/state/state.h */
	struct nfs4_recall_list *recalls; /* nfs4/deleg/recall.c */
	struct nfs4_deleg_holders *deleg_holders;  /* nfs4/deleg/deleg_pressure.h */
	struct nfs4_queries *queries;		   /* nfs4/attr/held_attrs.c */
	struct nfs4_dir_notify_list *dir_notifies; /* nfs4/deleg/dir_deleg.c */
	struct nfs4_layouts *layouts;		   /* nfs4/layout/layouts.h */
	struct nfs4_clients *clients;		   /* nfs4/session/registry.h */
	struct nfs4_copy_sources *copy_sources;	   /* nfs4/state/copy_source.h */
	struct nfs4_copies *copies;		   /* nfs4/data/nfs4_copies.h */
};

#endif
