/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COMPOUNDs through the fixture of nfs3_fixture.h: every byte goes through the RPC layer.
 *
 *	fix4_begin(f, &s);              s NULL: minor version 0; else SEQUENCE of s comes first
 *	fix4_putfh(f, &f->root);
 *	fix4_op(f, OP_GETFH);           the caller puts arguments into f->out
 *	status = fix4_send(f);          of the COMPOUND; the cursor is behind SEQUENCE's result
 *	fix4_result(f, OP_PUTFH);       status of the next result, which must be this operation's
 */
#ifndef RN_TESTS_NFS4_FIXTURE_H
#define RN_TESTS_NFS4_FIXTURE_H

#include "nfs4/nfs4_proto.h"
#include "nfs4/stateid.h"
#include "tests/unit/nfs3_fixture.h"

#define FIX4_NO_STATUS UINT32_MAX /* the reply has no COMPOUND4res */

struct fix4_session {
	uint32_t minor;
	uint64_t clientid;
	uint8_t id[NFS4_SESSIONID_SIZE];
	uint32_t slot, seqid; /* for the next SEQUENCE */
	bool cache_this;
	uint32_t status_flags; /* from the last reply */
};

void fix4_begin(struct fixture *f, struct fix4_session *s);
void fix4_begin_tag(struct fixture *f, struct fix4_session *s, const char *tag);
/* Begins a COMPOUND of any minor version, without SEQUENCE. */
void fix4_begin_bare(struct fixture *f, uint32_t minor, const char *tag);
/* Appends an operation's number and counts it. The caller puts the arguments into f->out. */
void fix4_op(struct fixture *f, uint32_t opnum);
uint32_t fix4_send(struct fixture *f);
/* For messages that are no valid COMPOUND: count an operation without putting its number; send
 * without checking the reply. */
void fix4_count(struct fixture *f);
void fix4_send_any(struct fixture *f);
/* Sends the same bytes again. */
uint32_t fix4_resend(struct fixture *f);
uint32_t fix4_result(struct fixture *f, uint32_t opnum);
/* Number of results that have not been read yet. */
uint32_t fix4_results_left(const struct fixture *f);

void fix4_putfh(struct fixture *f, const struct vfs_fh *fh);
void fix4_name(struct fixture *f, const char *name); /* encodes a component4 */
void fix4_lookup(struct fixture *f, const char *name);
void fix4_stateid(struct fixture *f, const struct nfs4_stateid *sid);
void fix4_get_fh(struct fixture *f, struct vfs_fh *fh);
void fix4_get_stateid(struct fixture *f, struct nfs4_stateid *sid);
void fix4_get_cinfo(struct fixture *f, bool *atomic, uint64_t *before, uint64_t *after);

/* Gets the handle of a name below dir; returns the status of LOOKUP. s as for fix4_begin(). */
uint32_t fix4_handle(struct fixture *f, struct fix4_session *s, const struct vfs_fh *dir,
		     const char *name, struct vfs_fh *fh);

/* Verifier, of 8 characters, that the next two functions register with. */
extern const char *fix4_verifier;

/* Sends EXCHANGE_ID, CREATE_SESSION and, if reclaimed, RECLAIM_COMPLETE for an owner of that name.
 * Returns the first status that is not NFS4_OK, or NFS4_OK. */
uint32_t fix4_session_new(struct fixture *f, struct fix4_session *s, uint32_t minor,
			  const char *owner, bool reclaimed);
/* Sends SETCLIENTID and SETCLIENTID_CONFIRM for minor version 0. */
uint32_t fix4_clientid_new(struct fixture *f, const char *owner, uint64_t *clientid);

#endif
