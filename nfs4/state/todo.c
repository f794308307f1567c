/* SPDX-License-Identifier: BSD-2-Clause */
/* Not done yet: a file of its own replaces each. */
#include "nfs4/state/ops.h"

void nfs4_decode_close(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_close(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_delegpurge(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_delegpurge(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_delegreturn(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_delegreturn(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_lock(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_lock(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_lockt(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_lockt(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_locku(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_locku(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_open(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_open(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_open_confirm(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_open_confirm(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_open_downgrade(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_open_downgrade(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_release_lockowner(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_release_lockowner(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_free_stateid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_free_stateid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_test_stateid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_test_stateid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}
