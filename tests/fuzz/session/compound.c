/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/compound.h"

#include <string.h>

#include "lib/util.h"
#include "nfs4/nfs4_proto.h"
#include "rpc/message.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/template.h"

#define STEPS 8
#define OF_NEW 0x1000u /* PUTFH of the handle that the last GETFH returned, not of the root */
#define OF_LINK 0x2000u
#define OF_LOCK 0x4000u	    /* uses the stateid of the lock, not of the open */
#define OF_MNT 0x8000u	    /* LOOKUP of a directory of the pseudo file system */
#define OF_RW 0x10000u	    /* LOOKUP of the export below that directory */
#define OF_SECRET 0x20000u  /* names the file that only its owner may read */
#define OF_PRIVATE 0x40000u /* names the empty file of that owner; OPEN: EXCLUSIVE */
#define OF_DISK 0x80000u    /* names the file of the failing disk */
#define OF_LEASED 0x100000u /* names the file that a local process has a lease of */

#define OF_BACK 0x200000u /* with a back channel, or to it */
#define OF_WAIT 0x400000u /* LOCK by an owner who waits for part of the range of "lock" */

#define OF_DELEG 0x800000u   /* names the file that is delegated; uses the delegation's stateid */
#define OF_CUR 0x1000000u    /* OPEN: CLAIM_DELEGATE_CUR, with OF_DELEG CLAIM_DELEG_CUR_FH */
#define OF_PREV 0x2000000u   /* CLAIM_PREVIOUS of a delegation */
#define OF_OTHER 0x4000000u  /* uses the other client's stateid */
#define OF_FAR 0x8000000u    /* an offset at which a copy is asynchronous; uses a copy's stateid */
#define OF_RIVAL 0x10000000u /* OPEN of the delegated file to write */
#define OF_ACL 0x20000000u   /* with POSIX ACLs; CREATE: of a directory */
#define OF_EXISTING (OF_DELEG | OF_CUR | OF_PREV | OF_RIVAL)
#define FAR (17u << 20)

static void mark(struct xdr_out *x, char letter, uint8_t k)
{
	const uint8_t m[4] = { 0xf1, 'F', (uint8_t)letter, k };

	xdr_put_fixed(x, m, sizeof(m));
}

static void put_name(struct xdr_out *x, const char *name)
{
	xdr_put_opaque(x, name, (uint32_t)strlen(name));
}

static uint32_t bit_of(uint32_t attr)
{
	return 1u << attr % 32;
}

/* All readable attributes. A request for one that can only be set would be refused. */
static void put_bitmap(struct xdr_out *x)
{
	xdr_put_u32(x, 3);
	xdr_put_u32(x, UINT32_MAX);
	xdr_put_u32(x, ~(bit_of(FATTR4_TIME_ACCESS_SET) | bit_of(FATTR4_TIME_MODIFY_SET)));
	xdr_put_u32(x, ~(bit_of(FATTR4_MODE_SET_MASKED) | bit_of(FATTR4_MODE_UMASK)));
}

/* mode 0644 alone */
static void put_mode(struct xdr_out *x)
{
	xdr_put_u32(x, 2);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 1u << (FATTR4_MODE - 32));
	xdr_put_u32(x, 4);
	xdr_put_u32(x, 0644);
}

static void put_posix_acl(struct xdr_out *x)
{
	static const struct {
		uint32_t tag, perm;
		const char *who;
	} entries[] = {
		{ POSIXACE4_TAG_USER_OBJ, 7, "" },  { POSIXACE4_TAG_USER, 6, "1001" },
		{ POSIXACE4_TAG_GROUP_OBJ, 5, "" }, { POSIXACE4_TAG_GROUP, 4, "2005" },
		{ POSIXACE4_TAG_MASK, 7, "" },	    { POSIXACE4_TAG_OTHER, 4, "" },
	};

	xdr_put_u32(x, rn_array_size(entries));
	for (unsigned i = 0; i < rn_array_size(entries); i++) {
		xdr_put_u32(x, entries[i].tag);
		xdr_put_u32(x, entries[i].perm);
		put_name(x, entries[i].who);
	}
}

/* A fattr4 of a POSIX access ACL, and of a default ACL before it. */
static void put_posix_acls(struct xdr_out *x, bool of_dir)
{
	size_t at;

	xdr_put_u32(x, 3);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, bit_of(FATTR4_POSIX_ACCESS_ACL) |
			       (of_dir ? bit_of(FATTR4_POSIX_DEFAULT_ACL) : 0));
	at = xdr_out_pos(x);
	xdr_put_u32(x, 0);
	if (of_dir)
		put_posix_acl(x);
	put_posix_acl(x);
	xdr_patch_u32(x, at, (uint32_t)(xdr_out_pos(x) - at - 4));
}

/* Change and size alone: those that the holder of a write delegation is asked for. */
static void put_held_bitmap(struct xdr_out *x)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, bit_of(FATTR4_CHANGE) | bit_of(FATTR4_SIZE));
}

static void put_size(struct xdr_out *x)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, bit_of(FATTR4_SIZE));
	xdr_put_u32(x, 8);
	xdr_put_u64(x, INT64_MAX);
}

static void put_owner(struct xdr_out *x, uint32_t minor, const char *name)
{
	mark(x, 'K', minor > 0);
	put_name(x, name);
}

/* Kind of the stateid that an operation uses. */
static uint8_t stateid_of(uint32_t step)
{
	const uint8_t kind = step & OF_LOCK			    ? SS_LOCK
			     : step & (OF_DELEG | OF_CUR | OF_PREV) ? SS_DELEG
			     : step & OF_FAR			    ? SS_COPY
								    : SS_OPEN;

	return kind | (step & OF_OTHER ? SS_OTHERS : 0);
}

static const char *open_name(uint32_t step)
{
	return step & OF_SECRET	    ? "secret"
	       : step & OF_EXISTING ? "file"
	       : step & OF_PRIVATE  ? "private"
	       : step & OF_LEASED   ? "leased"
				    : "open4";
}

static void put_open_how(struct xdr_out *x, uint32_t minor, uint32_t step)
{
	if (step & (OF_SECRET | OF_LEASED | OF_EXISTING)) {
		xdr_put_u32(x, 0); /* OPEN4_NOCREATE */
		return;
	}
	xdr_put_u32(x, 1); /* OPEN4_CREATE */
	if (step & OF_PRIVATE) {
		xdr_put_u32(x, minor ? 3 : 2); /* EXCLUSIVE4_1, EXCLUSIVE4 */
		mark(x, 'X', 0);
		if (minor)
			put_mode(x);
	} else {
		xdr_put_u32(x, 0); /* UNCHECKED4 */
		if (step & OF_ACL)
			put_posix_acls(x, false);
		else
			put_mode(x);
	}
}

static uint32_t access_of(uint32_t minor, uint32_t step)
{
	if (!(step & (OF_DELEG | OF_CUR | OF_PREV)))
		return OPEN4_SHARE_ACCESS_BOTH;
	return OPEN4_SHARE_ACCESS_READ | (minor > 0 ? OPEN4_SHARE_ACCESS_WANT_READ_DELEG : 0);
}

enum { CLAIM_NULL, CLAIM_PREVIOUS, CLAIM_DELEGATE_CUR, CLAIM_FH = 4, CLAIM_DELEG_CUR_FH };

static void put_claim(struct xdr_out *x, uint32_t minor, uint32_t step)
{
	const bool by_fh = (step & OF_CUR) && (step & OF_DELEG) && minor > 0;

	if (step & OF_PREV) {
		xdr_put_u32(x, CLAIM_PREVIOUS);
		xdr_put_u32(x, OPEN_DELEGATE_READ);
		return;
	}
	xdr_put_u32(x, !(step & OF_CUR) ? CLAIM_NULL
		       : by_fh		? CLAIM_DELEG_CUR_FH
					: CLAIM_DELEGATE_CUR);
	if (step & OF_CUR)
		mark(x, 'I', stateid_of(step));
	if (!by_fh)
		put_name(x, open_name(step));
}

static void put_open(struct xdr_out *x, uint32_t minor, uint32_t step)
{
	mark(x, 'O', 0);
	xdr_put_u32(x, access_of(minor, step));
	xdr_put_u32(x, OPEN4_SHARE_DENY_NONE);
	put_owner(x, minor, step & OF_RIVAL ? "rival" : step & OF_EXISTING ? "reader" : "open");
	put_open_how(x, minor, step);
	put_claim(x, minor, step);
}

static void put_want(struct xdr_out *x, uint32_t step)
{
	xdr_put_u32(x, OPEN4_SHARE_ACCESS_WANT_READ_DELEG);
	xdr_put_u32(x, step & OF_PREV ? CLAIM_PREVIOUS : CLAIM_FH);
	if (step & OF_PREV)
		xdr_put_u32(x, OPEN_DELEGATE_READ);
}

static void put_get_dir(struct xdr_out *x)
{
	xdr_put_bool(x, false);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, 0x3f); /* all notifications */
	for (unsigned i = 0; i < 2; i++) {
		xdr_put_u64(x, 1);
		xdr_put_u32(x, 0);
	}
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
}

static void put_lock(struct xdr_out *x, uint32_t minor, bool waits)
{
	xdr_put_u32(x, waits ? 4 : 2); /* WRITEW_LT, WRITE_LT */
	xdr_put_bool(x, false);
	xdr_put_u64(x, waits ? 22 : 10);
	xdr_put_u64(x, waits ? 4 : 100);
	xdr_put_bool(x, true); /* the lock owner is new */
	mark(x, 'O', 0);
	mark(x, 'I', 0);
	xdr_put_u32(x, 1);
	put_owner(x, minor, waits ? "waiter" : "lock");
}

static void put_lockt(struct xdr_out *x, uint32_t minor)
{
	xdr_put_u32(x, 1); /* READ_LT */
	xdr_put_u64(x, 0);
	xdr_put_u64(x, UINT64_MAX);
	put_owner(x, minor, "other");
}

static void put_locku(struct xdr_out *x)
{
	xdr_put_u32(x, 2);
	xdr_put_u32(x, 2);
	mark(x, 'I', 1);
	xdr_put_u64(x, 20);
	xdr_put_u64(x, 10);
}

static void put_create(struct xdr_out *x, uint32_t step)
{
	xdr_put_u32(x, step & OF_ACL ? NF4DIR : NF4LNK);
	if (!(step & OF_ACL))
		put_name(x, "where");
	put_name(x, "link4");
	if (step & OF_ACL)
		put_posix_acls(x, true);
	else
		put_mode(x);
}

static void put_readdir(struct xdr_out *x)
{
	xdr_put_u64(x, 0);
	xdr_put_u64(x, 0);
	xdr_put_u32(x, 1000);
	xdr_put_u32(x, 4000);
	put_bitmap(x);
}

static void put_io(struct xdr_out *x, uint32_t opnum, uint32_t step)
{
	static const uint8_t anonymous[16];

	if (step & (OF_SECRET | OF_DISK | OF_LEASED))
		xdr_put_fixed(x, anonymous, sizeof(anonymous));
	else
		mark(x, 'I', stateid_of(step & ~OF_FAR));
	xdr_put_u64(x, step & OF_FAR ? FAR : step & (OF_PRIVATE | OF_LEASED) ? 0 : 100);
	switch (opnum) {
	case OP_READ:
		xdr_put_u32(x, 5000);
		break;
	case OP_READ_PLUS:
		xdr_put_u32(x, 100000); /* so long that holes are looked for */
		break;
	case OP_WRITE:
		xdr_put_u32(x, step & OF_DISK ? 0 : 2); /* UNSTABLE4, FILE_SYNC4 */
		mark(x, 'B', 8);
		break;
	case OP_ALLOCATE:
	case OP_DEALLOCATE:
		xdr_put_u64(x, 5000);
		break;
	case OP_SEEK:
		xdr_put_u32(x, 1);
		break;
	default: /* OP_IO_ADVISE */
		xdr_put_u64(x, 5000);
		xdr_put_u32(x, 1);
		xdr_put_u32(x, 1u << 1 | 1u << 4); /* SEQUENTIAL, WILLNEED */
	}
}

/* Ten blocks of 4 KiB with numbers, and the pattern of a size that the driver chooses. */
static void put_write_same(struct xdr_out *x, uint32_t step)
{
	mark(x, 'I', (step & OF_LOCK) != 0);
	xdr_put_u32(x, 2); /* FILE_SYNC4 */
	xdr_put_u64(x, 50000);
	xdr_put_u64(x, 4096);
	xdr_put_u64(x, 10);
	xdr_put_u64(x, 0);
	xdr_put_u32(x, 1);
	xdr_put_u64(x, 8);
	mark(x, 'B', 8);
}

static void put_xattr_op(struct xdr_out *x, uint32_t opnum)
{
	if (opnum == OP_LISTXATTRS) {
		xdr_put_u64(x, 0);
		xdr_put_u32(x, 4000);
		return;
	}
	if (opnum == OP_SETXATTR)
		xdr_put_u32(x, 0); /* SETXATTR4_EITHER */
	put_name(x, "key");
	if (opnum == OP_SETXATTR)
		mark(x, 'B', 8);
}

/* From a file that the anonymous stateid reads, to the one that the last OPEN opened. OF_FAR: from
 * that file to the one that this COMPOUND has opened, and so long that it is asynchronous. */
static void put_copy(struct xdr_out *x, uint32_t opnum, uint32_t step)
{
	static const uint8_t anonymous[16], current[16] = { 0, 0, 0, 1 };

	if (step & OF_FAR)
		mark(x, 'I', SS_OPEN);
	else
		xdr_put_fixed(x, anonymous, sizeof(anonymous));
	if (step & OF_FAR)
		xdr_put_fixed(x, current, sizeof(current));
	else if (step & OF_DISK)
		xdr_put_fixed(x, anonymous, sizeof(anonymous));
	else
		mark(x, 'I', step & OF_LOCK ? SS_LOCK : SS_OPEN);
	xdr_put_u64(x, 0);
	xdr_put_u64(x, opnum == OP_CLONE ? 4096 : 100);
	xdr_put_u64(x, step & OF_FAR ? FAR : 0);
	if (opnum == OP_CLONE)
		return;
	xdr_put_bool(x, true);
	xdr_put_bool(x, (step & OF_DISK) != 0);
	xdr_put_u32(x, (step & OF_LINK) != 0);
	if (step & OF_LINK) {
		xdr_put_u32(x, 3); /* NL4_NETADDR */
		put_name(x, "tcp");
		put_name(x, "127.0.0.1.8.1");
	}
}

static void put_channel(struct xdr_out *x)
{
	static const uint32_t words[] = { 0, 1 << 20, 1 << 20, 4096, 16, SS_SLOTS, 0 };

	for (unsigned i = 0; i < rn_array_size(words); i++)
		xdr_put_u32(x, words[i]);
}

static void put_client_op(struct xdr_out *x, uint32_t opnum, uint32_t step)
{
	switch (opnum) {
	case OP_SETCLIENTID:
		xdr_put_fixed(x, "verifier", 8);
		xdr_put_u32(x, 8); /* "four" and the client's number */
		xdr_put_fixed(x, "four", 4);
		mark(x, 'W', 0);
		xdr_put_u32(x, 0x40000000);
		put_name(x, "tcp");
		mark(x, 'A', 0);
		xdr_put_u32(x, 1);
		break;
	case OP_SETCLIENTID_CONFIRM:
		mark(x, 'K', 0);
		mark(x, 'T', 0);
		break;
	case OP_RENEW:
		mark(x, 'K', 0);
		break;
	case OP_EXCHANGE_ID:
		xdr_put_fixed(x, "verifier", 8);
		xdr_put_u32(x, 16);
		xdr_put_fixed(x, "fuzzing sess", 12);
		mark(x, 'W', 0);
		xdr_put_u32(x, 0);
		xdr_put_u32(x, 0);
		xdr_put_u32(x, 0);
		break;
	case OP_CREATE_SESSION:
		mark(x, 'K', 1);
		mark(x, 'N', 0);
		xdr_put_u32(x, step & OF_BACK ? CREATE_SESSION4_FLAG_CONN_BACK_CHAN : 0);
		put_channel(x);
		put_channel(x);
		xdr_put_u32(x, 0x40000000);
		xdr_put_u32(x, 1);
		xdr_put_u32(x, 0);
		break;
	case OP_SEQUENCE:
		mark(x, 'Q', 0);
		xdr_put_bool(x, true);
		break;
	case OP_DESTROY_CLIENTID:
		mark(x, 'K', 1);
		break;
	default: /* OP_RECLAIM_COMPLETE */
		xdr_put_bool(x, false);
	}
}

static void put_name_op(struct xdr_out *x, uint32_t opnum, uint32_t step)
{
	switch (opnum) {
	case OP_LOOKUP:
	case OP_SECINFO:
		put_name(x, "dir");
		break;
	case OP_REMOVE:
		put_name(x, step & OF_EXISTING ? "file" : "link4");
		break;
	case OP_RENAME:
		put_name(x, "open4");
		put_name(x, "open5");
		break;
	case OP_LINK:
		put_name(x, "hard4");
		break;
	default:
		break;
	}
}

static uint8_t handle_of(uint32_t step)
{
	return step & OF_NEW	    ? SS_FH_NEW
	       : step & OF_LINK	    ? SS_FH_LINK
	       : step & OF_SECRET   ? SS_FH_SECRET
	       : step & OF_PRIVATE  ? SS_FH_PRIVATE
	       : step & OF_DISK	    ? SS_FH_DISK_FILE
	       : step & OF_LEASED   ? SS_FH_LEASED
	       : step & OF_EXISTING ? SS_FH_FILE
				    : SS_FH_ROOT;
}

/* Encodes one operation with valid arguments. */
static void put_op(struct xdr_out *x, uint32_t minor, uint32_t step)
{
	const uint32_t opnum = step & 0xfff;
	uint8_t which = stateid_of(step);

	xdr_put_u32(x, opnum);
	if (step & (OF_MNT | OF_RW)) {
		put_name(x, step & OF_MNT ? "mnt" : "rw");
		return;
	}
	switch (opnum) {
	case OP_PUTFH:
		mark(x, 'H', handle_of(step));
		break;
	case OP_ACCESS:
		xdr_put_u32(x, minor < 2 ? 0x3f : 0x1ff);
		break;
	case OP_GETATTR:
		if (step & OF_DELEG)
			put_held_bitmap(x);
		else
			put_bitmap(x);
		break;
	case OP_SETATTR:
		mark(x, 'I', which);
		if (step & OF_ACL)
			put_posix_acls(x, false);
		else
			put_mode(x);
		break;
	case OP_VERIFY:
	case OP_NVERIFY:
		if (step & OF_DELEG)
			put_size(x);
		else if (step & OF_ACL)
			put_posix_acls(x, false);
		else
			put_mode(x);
		break;
	case OP_OPEN:
		put_open(x, minor, step);
		break;
	case OP_OPEN_CONFIRM:
		mark(x, 'I', 0);
		mark(x, 'O', 0);
		break;
	case OP_OPEN_DOWNGRADE:
		mark(x, 'I', 0);
		mark(x, 'O', 0);
		xdr_put_u32(x, OPEN4_SHARE_ACCESS_READ);
		xdr_put_u32(x, 0);
		break;
	case OP_CLOSE:
		mark(x, 'O', 0);
		mark(x, 'I', 0);
		break;
	case OP_LOCK:
		put_lock(x, minor, step & OF_WAIT);
		break;
	case OP_LOCKT:
		put_lockt(x, minor);
		break;
	case OP_LOCKU:
		put_locku(x);
		break;
	case OP_RELEASE_LOCKOWNER:
		put_owner(x, minor, "lock");
		break;
	case OP_CREATE:
		put_create(x, step);
		break;
	case OP_READDIR:
		put_readdir(x);
		break;
	case OP_COMMIT:
		xdr_put_u64(x, 0);
		xdr_put_u32(x, 0);
		break;
	case OP_READ:
	case OP_READ_PLUS:
	case OP_WRITE:
	case OP_ALLOCATE:
	case OP_DEALLOCATE:
	case OP_SEEK:
	case OP_IO_ADVISE:
		put_io(x, opnum, step);
		break;
	case OP_WRITE_SAME:
		put_write_same(x, step);
		break;
	case OP_GETXATTR:
	case OP_SETXATTR:
	case OP_LISTXATTRS:
	case OP_REMOVEXATTR:
		put_xattr_op(x, opnum);
		break;
	case OP_COPY:
	case OP_CLONE:
		put_copy(x, opnum, step);
		break;
	case OP_FREE_STATEID:
	case OP_OFFLOAD_CANCEL:
	case OP_OFFLOAD_STATUS:
		mark(x, 'I', which);
		break;
	case OP_DELEGRETURN:
		mark(x, 'I', which);
		break;
	case OP_DELEGPURGE:
		mark(x, 'K', minor > 0);
		break;
	case OP_WANT_DELEGATION:
		put_want(x, step);
		break;
	case OP_GET_DIR_DELEGATION:
		put_get_dir(x);
		break;
	case OP_TEST_STATEID:
		xdr_put_u32(x, SS_STATEIDS);
		for (uint8_t k = 0; k < SS_STATEIDS; k++)
			mark(x, 'I', k | (which & SS_OTHERS));
		break;
	case OP_SECINFO_NO_NAME:
		xdr_put_u32(x, 0);
		break;
	case OP_DESTROY_SESSION:
		mark(x, 'Y', 0);
		break;
	case OP_BIND_CONN_TO_SESSION:
		mark(x, 'Y', 0);
		xdr_put_u32(x, step & OF_BACK ? 3 : 7); /* FORE_OR_BOTH, BACK_OR_BOTH */
		xdr_put_bool(x, false);
		break;
	case OP_BACKCHANNEL_CTL:
		xdr_put_u32(x, 0x40000001);
		xdr_put_u32(x, 1);
		xdr_put_u32(x, 0);
		break;
	case OP_LOOKUP:
	case OP_SECINFO:
	case OP_REMOVE:
	case OP_RENAME:
	case OP_LINK:
		put_name_op(x, opnum, step);
		break;
	default:
		if ((opnum >= OP_RENEW && opnum <= OP_RENEW) || opnum >= OP_SETCLIENTID)
			put_client_op(x, opnum, step);
	}
}

/* Operations of a COMPOUND. SEQUENCE is put first where the minor version has it. */
struct compound {
	const char *name;
	uint8_t first_minor, last_minor;
	bool bare; /* without SEQUENCE */
	uint32_t step[STEPS];
};

static const struct compound compounds[] = {
	{ "clientid", 0, 0, true, { OP_SETCLIENTID } },
	{ "confirm", 0, 0, true, { OP_SETCLIENTID_CONFIRM } },
	{ "renew", 0, 0, true, { OP_RENEW } },
	{ "exchange", 1, 2, true, { OP_EXCHANGE_ID } },
	{ "session", 1, 2, true, { OP_CREATE_SESSION } },
	{ "reclaimed", 1, 2, false, { OP_RECLAIM_COMPLETE } },
	{ "root", 0, 2, false, { OP_PUTROOTFH, OP_GETFH, OP_GETATTR, OP_READDIR } },
	{ "down",
	  0,
	  2,
	  false,
	  { OP_PUTROOTFH, OP_LOOKUP | OF_MNT, OP_GETATTR, OP_READDIR, OP_LOOKUP | OF_RW, OP_GETATTR,
	    OP_LOOKUPP, OP_READDIR } },
	{ "attr", 0, 2, false, { OP_PUTFH, OP_GETATTR, OP_ACCESS } },
	{ "lookup", 0, 2, false, { OP_PUTFH, OP_LOOKUP, OP_GETFH, OP_LOOKUPP, OP_GETFH } },
	{ "list", 0, 2, false, { OP_PUTFH, OP_READDIR } },
	{ "open", 0, 2, false, { OP_PUTFH, OP_SAVEFH, OP_OPEN, OP_GETFH, OP_GETATTR } },
	{ "openconf", 0, 0, false, { OP_PUTFH | OF_NEW, OP_OPEN_CONFIRM } },
	{ "write", 0, 2, false, { OP_PUTFH | OF_NEW, OP_WRITE, OP_GETATTR } },
	{ "writes", 0, 2, false, { OP_PUTFH | OF_NEW, OP_WRITE, OP_WRITE, OP_READ, OP_READ } },
	{ "read", 0, 2, false, { OP_PUTFH | OF_NEW, OP_READ, OP_COMMIT, OP_READ } },
	{ "lock", 0, 2, false, { OP_PUTFH | OF_NEW, OP_LOCK, OP_LOCKT } },
	{ "locked", 0, 2, false, { OP_PUTFH | OF_NEW, OP_WRITE | OF_LOCK, OP_LOCKU } },
	{ "downgrade", 0, 2, false, { OP_PUTFH | OF_NEW, OP_OPEN_DOWNGRADE } },
	{ "setattr", 0, 2, false, { OP_PUTFH | OF_NEW, OP_SETATTR, OP_VERIFY, OP_NVERIFY } },
	{ "close", 0, 2, false, { OP_PUTFH | OF_NEW, OP_CLOSE } },
	{ "release", 0, 0, false, { OP_RELEASE_LOCKOWNER } },
	{ "link", 0, 2, false, { OP_PUTFH, OP_CREATE, OP_READLINK } },
	{ "readlink", 0, 2, false, { OP_PUTFH | OF_LINK, OP_READLINK } },
	{ "hardlink", 0, 2, false, { OP_PUTFH | OF_NEW, OP_SAVEFH, OP_PUTFH, OP_LINK } },
	{ "rename", 0, 2, false, { OP_PUTFH, OP_SAVEFH, OP_RENAME, OP_RESTOREFH, OP_REMOVE } },
	{ "secinfo", 0, 2, false, { OP_PUTFH, OP_SECINFO } },
	{ "noname", 1, 2, false, { OP_PUTFH, OP_SECINFO_NO_NAME } },
	{ "stateids",
	  1,
	  2,
	  false,
	  { OP_TEST_STATEID, OP_FREE_STATEID | OF_LOCK, OP_FREE_STATEID } },
	{ "space",
	  2,
	  2,
	  false,
	  { OP_PUTFH | OF_NEW, OP_ALLOCATE, OP_DEALLOCATE, OP_SEEK, OP_IO_ADVISE } },
	{ "copy",
	  2,
	  2,
	  false,
	  { OP_PUTFH | OF_PRIVATE, OP_SAVEFH, OP_PUTFH | OF_NEW, OP_COPY, OP_CLONE, OP_GETATTR } },
	{ "copydisk",
	  2,
	  2,
	  false,
	  { OP_PUTFH | OF_LEASED, OP_SAVEFH, OP_PUTFH | OF_DISK, OP_COPY | OF_DISK, OP_COMMIT } },
	{ "copysecret",
	  2,
	  2,
	  false,
	  { OP_PUTFH | OF_SECRET, OP_SAVEFH, OP_PUTFH | OF_NEW, OP_COPY, OP_READ } },
	{ "copyfrom", 2, 2, false, { OP_PUTFH, OP_SAVEFH, OP_PUTFH | OF_NEW, OP_COPY | OF_LINK } },
	{ "offload", 2, 2, false, { OP_PUTFH | OF_NEW, OP_OFFLOAD_STATUS } },
	{ "cancel", 2, 2, false, { OP_PUTFH | OF_NEW, OP_OFFLOAD_CANCEL } },
	{ "secret", 0, 2, false, { OP_PUTFH | OF_SECRET, OP_READ | OF_SECRET } },
	{ "opensecret", 0, 2, false, { OP_PUTFH, OP_OPEN | OF_SECRET, OP_GETFH, OP_READ } },
	{ "exclusive",
	  0,
	  2,
	  false,
	  { OP_PUTFH, OP_OPEN | OF_PRIVATE, OP_GETFH, OP_READ | OF_PRIVATE } },
	{ "private", 0, 2, false, { OP_PUTFH | OF_PRIVATE, OP_READ | OF_PRIVATE } },
	{ "leased", 0, 2, false, { OP_PUTFH, OP_OPEN | OF_LEASED, OP_GETFH } },
	{ "readleased", 0, 2, false, { OP_PUTFH | OF_LEASED, OP_READ | OF_LEASED } },
	{ "disk",
	  0,
	  2,
	  false,
	  { OP_PUTFH | OF_DISK, OP_WRITE | OF_DISK, OP_WRITE | OF_DISK, OP_COMMIT } },
	{ "unsession", 1, 2, true, { OP_DESTROY_SESSION } },
	{ "bind", 1, 2, true, { OP_BIND_CONN_TO_SESSION } },
	{ "unclient", 1, 2, true, { OP_DESTROY_CLIENTID } },
	{ "xattr", 2, 2, false, { OP_PUTFH | OF_NEW, OP_SETXATTR, OP_GETXATTR, OP_LISTXATTRS } },
	{ "unxattr", 2, 2, false, { OP_PUTFH | OF_NEW, OP_REMOVEXATTR, OP_GETATTR } },
	{ "secretxattr", 2, 2, false, { OP_PUTFH | OF_SECRET, OP_GETXATTR, OP_LISTXATTRS } },
	{ "same", 2, 2, false, { OP_PUTFH | OF_NEW, OP_WRITE_SAME, OP_READ_PLUS, OP_GETATTR } },
	{ "readplus",
	  2,
	  2,
	  false,
	  { OP_PUTFH | OF_NEW, OP_ALLOCATE, OP_READ_PLUS, OP_DEALLOCATE, OP_READ_PLUS, OP_READ } },
	{ "secretplus", 2, 2, false, { OP_PUTFH | OF_SECRET, OP_READ_PLUS | OF_SECRET } },
	{ "backsession", 1, 2, true, { OP_CREATE_SESSION | OF_BACK } },
	{ "backbind", 1, 2, true, { OP_BIND_CONN_TO_SESSION | OF_BACK } },
	{ "backctl", 1, 2, false, { OP_BACKCHANNEL_CTL } },
	{ "waits", 1, 2, false, { OP_PUTFH | OF_NEW, OP_LOCK | OF_WAIT } },
	{ "deleg", 0, 2, false, { OP_PUTFH, OP_OPEN | OF_DELEG, OP_GETFH } },
	{ "readdeleg", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_READ | OF_DELEG } },
	{ "delegconf", 0, 0, false, { OP_PUTFH | OF_DELEG, OP_OPEN_CONFIRM } },
	{ "delegclose", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_CLOSE } },
	{ "rival", 0, 2, false, { OP_PUTFH, OP_OPEN | OF_RIVAL, OP_GETFH } },
	{ "chmodfile", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_SETATTR } },
	{ "removefile", 0, 2, false, { OP_PUTFH, OP_REMOVE | OF_DELEG } },
	{ "linkfile", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_SAVEFH, OP_PUTFH, OP_LINK } },
	{ "want", 1, 2, false, { OP_PUTFH | OF_DELEG, OP_WANT_DELEGATION } },
	{ "wantprev", 1, 2, false, { OP_PUTFH | OF_DELEG, OP_WANT_DELEGATION | OF_PREV } },
	{ "dirdeleg", 1, 2, false, { OP_PUTFH, OP_GET_DIR_DELEGATION } },
	{ "dirreturn", 1, 2, false, { OP_PUTFH, OP_DELEGRETURN | OF_DELEG } },
	{ "cur", 0, 2, false, { OP_PUTFH, OP_OPEN | OF_CUR, OP_GETFH } },
	{ "curfh", 1, 2, false, { OP_PUTFH | OF_DELEG, OP_OPEN | OF_CUR | OF_DELEG } },
	{ "prev", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_OPEN | OF_PREV } },
	{ "return", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_DELEGRETURN | OF_DELEG } },
	{ "purge", 0, 2, false, { OP_DELEGPURGE } },
	{ "freedeleg", 1, 2, false, { OP_TEST_STATEID, OP_FREE_STATEID | OF_DELEG } },
	{ "theirs",
	  1,
	  2,
	  false,
	  { OP_TEST_STATEID | OF_OTHER, OP_PUTFH | OF_DELEG,
	    OP_DELEGRETURN | OF_DELEG | OF_OTHER } },
	{ "readtheirs", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_READ | OF_DELEG | OF_OTHER } },
	{ "curtheirs", 0, 2, false, { OP_PUTFH, OP_OPEN | OF_CUR | OF_OTHER } },
	{ "far", 2, 2, false, { OP_PUTFH | OF_DELEG, OP_WRITE | OF_FAR } },
	{ "copyfar",
	  2,
	  2,
	  false,
	  { OP_PUTFH | OF_DELEG, OP_SAVEFH, OP_PUTFH, OP_OPEN, OP_COPY | OF_FAR } },
	{ "copying", 2, 2, false, { OP_PUTFH | OF_NEW, OP_OFFLOAD_STATUS | OF_FAR } },
	{ "uncopy", 2, 2, false, { OP_PUTFH | OF_NEW, OP_OFFLOAD_CANCEL | OF_FAR } },
	{ "look", 0, 2, false, { OP_PUTFH | OF_DELEG, OP_GETATTR | OF_DELEG } },
	{ "compare",
	  0,
	  2,
	  false,
	  { OP_PUTFH | OF_DELEG, OP_VERIFY | OF_DELEG, OP_GETATTR | OF_DELEG } },
	{ "differ",
	  0,
	  2,
	  false,
	  { OP_PUTFH | OF_DELEG, OP_NVERIFY | OF_DELEG, OP_GETATTR | OF_DELEG } },
	{ "openacl", 2, 2, false, { OP_PUTFH, OP_OPEN | OF_ACL, OP_GETFH, OP_GETATTR } },
	{ "setacl", 2, 2, false, { OP_PUTFH | OF_NEW, OP_SETATTR | OF_ACL, OP_GETATTR } },
	{ "sameacl", 2, 2, false, { OP_PUTFH | OF_NEW, OP_VERIFY | OF_ACL } },
	{ "diracl",
	  2,
	  2,
	  false,
	  { OP_PUTFH, OP_CREATE | OF_ACL, OP_GETATTR, OP_SETATTR | OF_ACL, OP_PUTFH, OP_READDIR,
	    OP_REMOVE } },
};

/* The i-th combination of a COMPOUND and a minor version that has it. */
static const struct compound *find(unsigned i, uint32_t *minor)
{
	for (unsigned k = 0; k < rn_array_size(compounds); k++) {
		unsigned n = compounds[k].last_minor - compounds[k].first_minor + 1u;

		*minor = compounds[k].first_minor + i;
		if (i < n)
			return &compounds[k];
		i -= n;
	}
	*minor = 0;
	return &compounds[0];
}

unsigned ss_compound_count(void)
{
	unsigned n = 0;

	for (unsigned k = 0; k < rn_array_size(compounds); k++)
		n += compounds[k].last_minor - compounds[k].first_minor + 1u;
	return n;
}

const char *ss_compound_name(unsigned i)
{
	static char name[32];
	uint32_t minor;
	const struct compound *c = find(i, &minor);
	size_t len = strlen(c->name);

	memcpy(name, c->name, len);
	memcpy(name + len, "-4.", 3);
	name[len + 3] = (char)('0' + minor);
	name[len + 4] = '\0';
	return name;
}

static void put_head(struct xdr_out *x)
{
	static const uint32_t words[] = { 1,
					  RPC_CALL,
					  RPC_VERSION,
					  NFS4_PROGRAM,
					  NFS4_VERSION,
					  NFSPROC4_COMPOUND,
					  RPC_AUTH_SYS,
					  24,
					  0,
					  4 };

	for (unsigned i = 0; i < rn_array_size(words); i++)
		xdr_put_u32(x, words[i]);
	xdr_put_fixed(x, "fuzz", 4);
	xdr_put_u32(x, 0); /* uid, gid, no further groups */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, RPC_AUTH_NONE);
	xdr_put_u32(x, 0);
}

void ss_compound_put(unsigned i, struct xdr_out *x)
{
	uint32_t minor, n = 0;
	const struct compound *c = find(i, &minor);

	put_head(x);
	put_name(x, "tag");
	xdr_put_u32(x, minor);
	while (n < STEPS && c->step[n])
		n++;
	xdr_put_u32(x, n + (minor > 0 && !c->bare));
	if (minor > 0 && !c->bare)
		put_op(x, minor, OP_SEQUENCE);
	for (unsigned k = 0; k < n; k++)
		put_op(x, minor, c->step[k]);
}
