/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts have not brought yet: each takes its own out of here. */
#include "nfs4/compound.h"
#include "nfs4/state/client_state.h"
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
#define FREE(name, type)                                                                           \
	void name(struct type *s)                                                                  \
	{                                                                                          \
		(void)s;                                                                           \
	}
FREE(nfs4_states_free, nfs4_states)
#define HELD(name, type)                                                                           \
	void name(struct type *s, struct nfs4_held *h)                                             \
	{                                                                                          \
		(void)s;                                                                           \
		(void)h;                                                                           \
	}
HELD(nfs4_states_held, nfs4_states)
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

FREE(nfs4_client_state_init, nfs4_client_state)
bool nfs4_client_has_state(struct nfs4_client *cl)
{
	(void)cl;
	return false;
}
#define OF_CLIENT(name)                                                                            \
	void name(struct nfs4_server *s, struct nfs4_client *cl)                                   \
	{                                                                                          \
		(void)s;                                                                           \
		(void)cl;                                                                          \
	}
OF_CLIENT(nfs4_client_state_drop)
OF_CLIENT(nfs4_client_state_tick)
