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

int nfs4_getfh(struct nfs4_compound *c, void *args)
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

void nfs4_decode_lookup(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_lookup(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

int nfs4_lookupp(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_openattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_openattr(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_putfh(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_putfh(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

int nfs4_putpubfh(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

int nfs4_putrootfh(struct nfs4_compound *c, void *args)
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

int nfs4_restorefh(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

int nfs4_savefh(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_secinfo(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_secinfo(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_secinfo_no_name(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_secinfo_no_name(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}
