/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts have not brought yet: each takes its own out of here. */
#include "nfs4/client/clients.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/state/io.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/states.h"

#define NEW(name)                                                                                  \
	int name(struct nfs4_server *s)                                                            \
	{                                                                                          \
		(void)s;                                                                           \
		return 0;                                                                          \
	}
NEW(nfs4_states_new)
NEW(nfs4_clients_new)
#define FREE(name, type)                                                                           \
	void name(struct type *s)                                                                  \
	{                                                                                          \
		(void)s;                                                                           \
	}
FREE(nfs4_states_free, nfs4_states)
FREE(nfs4_clients_free, nfs4_clients)
FREE(nfs4_clients_tick, nfs4_server)
FREE(nfs4_client_put, nfs4_client)
FREE(nfs4_session_done, nfs4_compound)
#define HELD(name, type)                                                                           \
	void name(struct type *s, struct nfs4_held *h)                                             \
	{                                                                                          \
		(void)s;                                                                           \
		(void)h;                                                                           \
	}
HELD(nfs4_states_held, nfs4_states)
HELD(nfs4_clients_held, nfs4_clients)
void nfs4_owner_done(struct nfs4_compound *c, int status)
{
	(void)c;
	(void)status;
}

int nfs4_io_begin(struct nfs4_compound *c, const struct nfs4_stateid *sid, unsigned access,
		  struct nfs4_io_right *r)
{
	(void)c;
	(void)access;
	*r = (struct nfs4_io_right){ .opened = false };
	return nfs4_stateid_is_anonymous(sid) || nfs4_stateid_is_bypass(sid) ? NFS4_OK
									     : NFS4ERR_BAD_STATEID;
}
FREE(nfs4_io_end, nfs4_io_right)
