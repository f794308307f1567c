/* SPDX-License-Identifier: BSD-2-Clause */
/* The pseudo file system in force, private to this folder. */
#ifndef RN_NFS4_PSEUDO_PSEUDO_NOW_H
#define RN_NFS4_PSEUDO_PSEUDO_NOW_H

#include <pthread.h>

#include "nfs4/pseudo/pseudo_set.h"

struct nfs4_server;

struct nfs4_pseudo {
	pthread_mutex_t lock; /* guards set; a leaf */
	struct nfs4_pseudo_set *set;
};

/* Returns the set in force, with a reference for the caller. */
struct nfs4_pseudo_set *nfs4_pseudo_get(struct nfs4_server *s);

#endif
