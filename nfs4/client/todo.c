/* SPDX-License-Identifier: BSD-2-Clause */
/* Not done yet: a file of its own replaces each. */
#include "nfs4/client/ops.h"

void nfs4_decode_renew(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_renew(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_setclientid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_setclientid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_setclientid_confirm(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_setclientid_confirm(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_backchannel_ctl(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_backchannel_ctl(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_bind_conn_to_session(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_bind_conn_to_session(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_exchange_id(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_exchange_id(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_create_session(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_create_session(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_destroy_session(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_destroy_session(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_sequence(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_sequence(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_set_ssv(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_set_ssv(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_destroy_clientid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_destroy_clientid(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_reclaim_complete(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
}

int nfs4_reclaim_complete(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}
