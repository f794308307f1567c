/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For whom a COMPOUND's reply was made: the exports that it has entered, and as whom. A reply that
 * is kept may hold data of files, so that it is given again only to a caller whom each of these
 * exports still admits, with the same flavour, and squashes to the same user. From which of the
 * client's addresses he calls does not matter.
 */
#ifndef RN_NFS4_AUDIENCE_H
#define RN_NFS4_AUDIENCE_H

#include <stdbool.h>
#include <stdint.h>

#define NFS4_AUDIENCE_MOST 4u /* exports; a reply that shows more is not given again */

struct nfs4_compound;
struct nfs4_place;

struct nfs4_audience {
	uint32_t n; /* NFS4_AUDIENCE_MOST + 1: more */
	uint32_t export_id[NFS4_AUDIENCE_MOST];
	uint64_t who; /* how each of them squashes, in this order; of a reply that is kept: a hash
		       * of that and the credential, which nobody can foresee */
};

/* c has entered the export of p, a place of an export. */
void nfs4_audience_add(struct nfs4_compound *c, const struct nfs4_place *p);
/* To be kept with the reply of c. */
struct nfs4_audience nfs4_audience_of(const struct nfs4_compound *c);

/* May the caller of c have what was made for a? 0; -EACCES; -EAGAIN: that is not known now. Asks
 * the exports: no lock is held. */
int nfs4_audience_check(const struct nfs4_compound *c, const struct nfs4_audience *a);

/* The hash of a credential as it was sent, and of seed. */
uint64_t nfs4_credential_hash(const struct nfs4_compound *c, uint64_t seed);

#endif
