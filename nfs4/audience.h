/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The audience of a COMPOUND's reply: the exports that the COMPOUND entered, and the caller's
 * identity in each. A kept reply may hold data of files. A retry gets it only if each of these
 * exports still admits the caller, with the same flavour and the same protection of the connection
 * (TLS), and squashes it to the same user. The client's address may differ.
 */
#ifndef RN_NFS4_AUDIENCE_H
#define RN_NFS4_AUDIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define NFS4_AUDIENCE_MOST 4u /* exports; a reply with more is not given to a retry */

struct nfs4_compound;
struct nfs4_place;

struct nfs4_audience {
	uint32_t n; /* number of exports; NFS4_AUDIENCE_MOST + 1: too many */
	uint32_t export_id[NFS4_AUDIENCE_MOST];
	/* Squashed identities in the order of export_id; in a kept reply a keyed hash of them and
	 * the credential */
	uint64_t who;
};

/* Adds the export of p, a place of an export, to c's audience. */
void nfs4_audience_add(struct nfs4_compound *c, const struct nfs4_place *p);
/* The audience to store with the reply of c. */
struct nfs4_audience nfs4_audience_of(const struct nfs4_compound *c);

/* Permission of c's caller to get a reply with audience a: 0; -EACCES; -RN_EUNNAMED: not known yet. Asks
 * the exports: no lock may be held. */
int nfs4_audience_check(const struct nfs4_compound *c, const struct nfs4_audience *a);

/* Hash of the credential as sent, of the connection's protection, and of seed. */
uint64_t nfs4_credential_hash(const struct nfs4_compound *c, uint64_t seed);

#endif
