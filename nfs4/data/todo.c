/* SPDX-License-Identifier: BSD-2-Clause */
/* Not done yet: a file of its own replaces each. */
#include "nfs4/data/ops.h"

void nfs4_decode_commit(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_commit(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_read(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_read(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

int nfs4_readlink(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_write(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_write(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_allocate(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_allocate(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_deallocate(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_deallocate(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_io_advise(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_io_advise(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_seek(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_seek(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}
