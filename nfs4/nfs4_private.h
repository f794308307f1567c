/* SPDX-License-Identifier: BSD-2-Clause */
/* Data shared by the parts of nfs4/. Each part makes and frees its own member, in the order of this
 * list. */
#ifndef RN_NFS4_NFS4_PRIVATE_H
#define RN_NFS4_NFS4_PRIVATE_H

#include <sodium.h>

#include "lib/log.h"
#include "nfs4/nfs4_hooks.h"
#include "nfs4/nfs4_server.h"
#include "rpc/sum.h"

struct nfs4_clients;
struct nfs4_copies;
struct nfs4_copy_sources;
struct nfs4_deleg_holders;
struct nfs4_news_list;
struct nfs4_pseudo;
struct nfs4_recall_list;
struct nfs4_recovery;
struct nfs4_totals;

struct nfs4_server {
	struct nfs4_config cfg;
	const struct nfs4_hooks *hooks;
	/* Random key, so that no client can predict a hash or aim at one bucket of a table. */
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	struct rpc_sum_secret sum_secret; /* likewise, for nfs4_call_sum() */
	struct rn_log_hosts told;	  /* limit of messages about clients (nfs4/told.h) */
	_Atomic int drain;		  /* enum nfs4_drain */
	struct nfs4_pseudo *pseudo;	  /* nfs4/pseudo/pseudo.h */
	struct nfs4_recovery *recovery;	  /* nfs4/recovery/recovery.h */
	struct nfs4_totals *totals;	  /* nfs4/state/state.h */
	struct nfs4_recall_list *recalls; /* nfs4/deleg/recall.c */
	struct nfs4_deleg_holders *deleg_holders; /* nfs4/deleg/deleg_pressure.h */
	struct nfs4_queries *queries;		  /* nfs4/deleg/held_attrs.c */
	struct nfs4_news_list *news;		  /* nfs4/deleg/dir_deleg.c */
	struct nfs4_clients *clients;		  /* nfs4/session/registry.h */
	struct nfs4_copy_sources *copy_sources;	  /* nfs4/state/copy_source.h */
	struct nfs4_copies *copies;		  /* nfs4/data/nfs4_copies.h */
};

#endif
