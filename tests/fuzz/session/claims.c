/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/claims.h"

#include <string.h>

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/sealed.h"
#include "tests/fuzz/session/tree.h"

#define NFS_PROG 100003u
#define MOUNT_PROG 100005u
#define NFSACL_PROG 100227u
#define RQUOTA_PROG 100011u
#define RQUOTA_OK 1u
#define MNT 1u
#define DUMP 2u
#define EXPORT 5u
#define MNT3ERR_ACCES 13u
#define KNOWN_MAX 64u
#define STATEID_OTHER 12u
#define HANDLE_EXPORT 8u /* length of a handle's prefix that ends with the export's id */

enum kind { CLIENT_ID, SESSION, OPEN, KINDS };

static const uint8_t sizes[KINDS] = { 8, 16, STATEID_OTHER };

struct known {
	enum kind kind;
	uint8_t id[16];
	/* principal that the id belongs to; unknown if several users share it */
	struct ss_who who;
	struct ss_who client; /* for OPEN: principal of the client */
};

static struct {
	struct known known[KNOWN_MAX];
	unsigned n;
	struct ss_fh squashed;
} claims;

void ss_claims_reset(const struct ss_fh *squashed)
{
	claims.n = 0;
	claims.squashed = *squashed;
}

static bool contains(const uint8_t *msg, size_t len, const void *what, size_t n)
{
	return n && memmem(msg, len, what, n) != NULL;
}

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

struct ss_who ss_claims_client_in(const uint8_t *msg, size_t len)
{
	struct ss_who who = { .known = false };
	unsigned found = 0;

	for (unsigned i = 0; i < claims.n; i++)
		if (claims.known[i].kind == CLIENT_ID &&
		    contains(msg, len, claims.known[i].id, sizes[CLIENT_ID])) {
			who = claims.known[i].who;
			found++;
		}
	if (found != 1)
		who.known = false;
	return who;
}

/*
 * True for a user whom no export but one squashes. Some exports squash root and nobody to one user.
 */
static bool is_plain_user(const struct ss_who *who)
{
	return who->known && who->flavour == 1 && who->uid != SS_UID_ROOT &&
	       who->uid != SS_UID_NOBODY;
}

static bool is_minor_0(const uint8_t *msg, size_t len)
{
	size_t at = 24;

	for (unsigned i = 0; i < 3; i++) { /* skips credential, verifier and tag */
		at += i < 2 ? 4 : 0;
		if (at + 4 > len)
			return false;
		uint32_t n = ss_word(msg + at);
		if (n > 1024)
			return false;
		at += 4 + n + rn_xdr_pad(n);
	}
	return at + 4 <= len && ss_word(msg + at) == 0;
}

/* True if k certainly belongs to another principal than who. */
static bool is_foreign(const struct known *k, const struct ss_who *who)
{
	if (!k->who.known || ss_who_same(&k->who, who))
		return false;
	if (k->kind != OPEN)
		return true;
	return is_plain_user(&k->who) && is_plain_user(who) && k->client.known &&
	       !ss_who_same(&k->client, who);
}

uint8_t ss_claims_by(const uint8_t *msg, size_t len, const struct ss_who *who)
{
	bool state = is_minor_0(msg, len) &&
		     !contains(msg, len, claims.squashed.bytes,
			       rn_min(claims.squashed.len, HANDLE_EXPORT)) &&
		     !contains(msg, len, "sq", 2);
	unsigned theirs[KINDS] = { 0 }, own[KINDS] = { 0 };
	uint8_t found = 0;

	if (!who->known)
		return 0;
	for (unsigned i = 0; i < claims.n; i++) {
		const struct known *k = &claims.known[i];

		if (!contains(msg, len, k->id, sizes[k->kind]))
			continue;
		if (is_foreign(k, who))
			theirs[k->kind]++;
		else
			own[k->kind]++;
	}
	if (theirs[CLIENT_ID] + theirs[SESSION] && !own[CLIENT_ID] && !own[SESSION])
		found |= SS_CLAIM_CLIENT;
	if (state && theirs[OPEN] && !own[OPEN])
		found |= SS_CLAIM_OPEN;
	return found;
}

uint8_t ss_claims_of(const uint8_t *msg, size_t len)
{
	const struct ss_who who = ss_who_of(msg, len);

	return ss_claims_by(msg, len, &who);
}

/* Notes the owner of an id in a reply. An id that an earlier reply gave to another principal is a
 * finding. */
static void learn(struct ss_in *in, enum kind kind, const uint8_t *id)
{
	const struct ss_call *call = in->call;
	struct known *k = NULL;

	if (in->bad || is_zero(id, sizes[kind]))
		return;
	for (unsigned i = 0; i < claims.n && !k; i++)
		if (claims.known[i].kind == kind && !memcmp(claims.known[i].id, id, sizes[kind]))
			k = &claims.known[i];
	if (k) {
		if (kind != OPEN && k->who.known && call->who.known &&
		    !ss_who_same(&k->who, &call->who))
			ss_wrong(in, "one id for two principals");
		else if (!ss_who_same(&k->who, &call->who))
			k->who.known = false;
		return;
	}
	if (claims.n == KNOWN_MAX)
		return;
	k = &claims.known[claims.n++];
	*k = (struct known){ .kind = kind, .who = call->who, .client = call->client };
	memcpy(k->id, id, sizes[kind]);
}

void ss_claims_accepted(struct ss_in *in)
{
	const struct ss_call *call = in->call;

	if (call->from != SS_FROM_STRANGER || call->proc == 0)
		return;
	/*
	 * All calls must be denied. MNT is accepted and refuses each path. While a name service is
	 * asked about the host, calls get as far as their export and fail there. NFSv4's operations
	 * are checked one by one.
	 */
	uint32_t status = in->left >= 4 ? ss_word(in->p) : 0;
	bool nfs = (call->prog == NFS_PROG || call->prog == NFSACL_PROG) &&
		   (call->vers == 2 || call->vers == 3) && status == 0;
	bool mnt = call->prog == MOUNT_PROG && call->proc == MNT && status != MNT3ERR_ACCES;
	bool list = call->prog == MOUNT_PROG && (call->proc == DUMP || call->proc == EXPORT);
	bool quota = call->prog == RQUOTA_PROG && status == RQUOTA_OK;
	if (nfs || mnt || list || quota)
		ss_wrong(in, "a host without an export is served");
}

/* Procedures that change the file system: SETATTR, and WRITE to LINK. READ and READLINK lie outside
 * of both. */
void ss_claims_proc3(struct ss_in *in, uint32_t proc, uint32_t status)
{
	if (in->call->from == SS_FROM_READ_ONLY && status == 0 &&
	    (proc == 2 || (proc >= 7 && proc <= 15)))
		ss_wrong(in, "a host that may only read changes something");
}

static bool changes_files(uint32_t op)
{
	switch (op) {
	case OP_CREATE:
	case OP_LINK:
	case OP_REMOVE:
	case OP_RENAME:
	case OP_SETATTR:
	case OP_WRITE:
	case OP_ALLOCATE:
	case OP_DEALLOCATE:
	case OP_SETXATTR:
	case OP_REMOVEXATTR:
	case OP_COPY:
	case OP_CLONE:
	case OP_WRITE_SAME:
		return true;
	default:
		return false;
	}
}

static bool for_the_clients_principal(uint32_t op)
{
	switch (op) {
	case OP_SETCLIENTID_CONFIRM:
	case OP_CREATE_SESSION:
	case OP_DESTROY_SESSION:
	case OP_DESTROY_CLIENTID:
	case OP_RECLAIM_COMPLETE:
	case OP_BIND_CONN_TO_SESSION:
		return true;
	default:
		return false;
	}
}

static bool for_the_opener(uint32_t op)
{
	return op == OP_CLOSE || op == OP_OPEN_CONFIRM || op == OP_OPEN_DOWNGRADE ||
	       op == OP_LOCK || op == OP_LOCKU;
}

/* True for operations that a client may do while a name service is asked about its host: those that
 * name only its own ids. */
static bool for_unknown_hosts(uint32_t op)
{
	switch (op) {
	case OP_SEQUENCE:
	case OP_BIND_CONN_TO_SESSION:
	case OP_DESTROY_SESSION:
	case OP_DESTROY_CLIENTID:
	case OP_RECLAIM_COMPLETE:
	case OP_TEST_STATEID:
	case OP_FREE_STATEID:
	case OP_RENEW:
	case OP_RELEASE_LOCKOWNER:
	case OP_DELEGPURGE:
		return true;
	default:
		return false;
	}
}

static void learn_ids(struct ss_in *in, uint32_t op)
{
	uint8_t id[8];

	if (!in->learn)
		return;
	if (op == OP_SETCLIENTID || op == OP_EXCHANGE_ID) {
		uint64_t v = in->learn->clientid[op == OP_EXCHANGE_ID];

		ss_set_word(id, (uint32_t)(v >> 32));
		ss_set_word(id + 4, (uint32_t)v);
		learn(in, CLIENT_ID, id);
	} else if (op == OP_CREATE_SESSION) {
		learn(in, SESSION, in->learn->session);
	} else if (op == OP_OPEN) {
		learn(in, OPEN, in->learn->stateid[0] + 4);
	}
}

void ss_claims_op4(struct ss_in *in, uint32_t op, uint32_t status)
{
	const uint8_t c = in->call->claims;
	bool foreign = ((c & SS_CLAIM_CLIENT) && for_the_clients_principal(op)) ||
		       ((c & SS_CLAIM_OPEN) && for_the_opener(op));

	if (status != 0 && foreign)
		ss_count(SS_N_FOREIGN_REFUSED);
	if (status != 0)
		return;
	if (foreign)
		ss_wrong(in, "an operation on another user's state succeeds");
	if (in->call->from == SS_FROM_READ_ONLY && !(c & SS_CLAIM_REPEATED) && changes_files(op))
		ss_wrong(in, "a host that may only read changes something");
	if (in->call->from == SS_FROM_STRANGER && !for_unknown_hosts(op))
		ss_wrong(in, "a host without an export is served");
	learn_ids(in, op);
}

/* Names in exports that ask for krb5p, and for TLS. */
static const char *guarded(const struct ss_call *call, const uint8_t *msg, size_t len)
{
	const bool krb = contains(msg, len, SS_KRB_NAME, sizeof(SS_KRB_NAME) - 1);
	const bool tls = contains(msg, len, SS_TLS_NAME, sizeof(SS_TLS_NAME) - 1);

	if (call->near)
		return NULL;
	if (krb && !(call->sealed && ss_gss_is_private(call->xid)))
		return "data of an export that is for krb5p alone";
	if (tls && !call->tls)
		return "data of an export that is for TLS alone";
	if (krb)
		ss_count(SS_N_KRB_READ);
	if (tls)
		ss_count(SS_N_TLS_READ);
	return NULL;
}

/* The first principal of the realm is mapped to root. */
static bool is_root(const struct ss_who *who)
{
	return (who->flavour == 1 && who->uid == SS_UID_ROOT) ||
	       (who->flavour == SS_FLAVOUR_GSS && who->uid == SS_GSS_UID);
}

const char *ss_claims_secret(const struct ss_call *call, const uint8_t *msg, size_t len)
{
	const struct ss_who *who = &call->who;
	const char *wrong = guarded(call, msg, len);

	if (wrong)
		return wrong;
	if (!contains(msg, len, SS_SECRET, sizeof(SS_SECRET) - 1))
		return NULL;
	ss_count(SS_N_SECRET_READ);
	if (!who->known || !ss_tree_secret_is_kept())
		return NULL;
	if ((who->flavour == 1 && who->uid == SS_UID_OWNER) ||
	    (is_root(who) && call->from != SS_FROM_SQUASHED))
		return NULL;
	return "data of a file that its user may not read";
}
