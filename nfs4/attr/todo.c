/* SPDX-License-Identifier: BSD-2-Clause */
/* Not done yet: a file of its own replaces each. */
#include "nfs4/attr/ops.h"

void nfs4_decode_access(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_access(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_getattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_getattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_nverify(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_nverify(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_readdir(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_readdir(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_setattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_setattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_verify(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_verify(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}
