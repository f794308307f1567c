/* SPDX-License-Identifier: BSD-2-Clause */
/* Not done yet: a file of its own replaces each. */
#include "nfs4/names/ops.h"

void nfs4_decode_create(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_create(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_link(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_link(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_remove(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_remove(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_rename(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_rename(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}
