/* SPDX-License-Identifier: BSD-2-Clause */
/* ACCESS (RFC 7530 section 16.1, RFC 8881 section 18.1, RFC 8276 section 8.5). */
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs4/compound.h"

/* Bits of the minor versions 0 and 1; the three that RFC 8276 adds to minor version 2. */
#define ACCESS4_ALL 0x3fu
#define ACCESS4_XATTRS (ACCESS4_XAREAD | ACCESS4_XAWRITE | ACCESS4_XALIST)

struct access_bit {
	uint32_t bit;
	unsigned may;
};

/* Bits that apply to each type of object. The others are reported as not supported. */
static const struct access_bit dir_bits[] = {
	{ ACCESS4_READ, VFS_MAY_READ },
	{ ACCESS4_LOOKUP, VFS_MAY_EXEC },
	{ ACCESS4_MODIFY, VFS_MAY_WRITE | VFS_MAY_EXEC },
	{ ACCESS4_EXTEND, VFS_MAY_WRITE | VFS_MAY_EXEC },
	{ ACCESS4_DELETE, VFS_MAY_DELETE },
	{ ACCESS4_XAREAD, VFS_MAY_READ },
	{ ACCESS4_XAWRITE, VFS_MAY_WRITE },
	{ ACCESS4_XALIST, VFS_MAY_READ },
};

static const struct access_bit file_bits[] = {
	{ ACCESS4_READ, VFS_MAY_READ },	   { ACCESS4_MODIFY, VFS_MAY_WRITE },
	{ ACCESS4_EXTEND, VFS_MAY_WRITE }, { ACCESS4_EXECUTE, VFS_MAY_EXEC },
	{ ACCESS4_XAREAD, VFS_MAY_READ },  { ACCESS4_XAWRITE, VFS_MAY_WRITE },
	{ ACCESS4_XALIST, VFS_MAY_READ },
};

struct answer {
	uint32_t supported, granted;
};

/* Sets *may to the permissions in want that the caller has. */
static int nfs4_access_granted(struct nfs4_compound *c, unsigned want, unsigned *may)
{
	struct nfs4_object *p = &c->current;
	int rc;

	if (p->kind == NFS4_PSEUDO) {
		*may = VFS_MAY_READ | VFS_MAY_EXEC;
		return NFS4_OK;
	}
	rc = vfs_access(&p->ctx, p->node, want, may, &c->last_attr);
	if (rc == 0)
		c->last_attr_index = c->index + 1; /* GETATTR usually follows */
	return nfs4_status(c->minor, rc);
}

/* Only regular files and directories have extended attributes, and none those of the pseudo file
 * system. */
static bool has_xattrs(const struct nfs4_object *p)
{
	return p->kind == NFS4_FILE && (S_ISDIR(p->type) || S_ISREG(p->type));
}

/* The kernel lets nobody but the owner change the extended attributes of a sticky directory. */
static bool keeps_xattrs(const struct nfs4_compound *c)
{
	const struct nfs4_object *p = &c->current;

	return has_xattrs(p) && S_ISDIR(p->type) && (c->last_attr.mode & S_ISVTX) &&
	       p->ctx.cred.uid != 0 && p->ctx.cred.uid != c->last_attr.uid;
}

static int nfs4_access_fill_answer(struct nfs4_compound *c, uint32_t want,
				   const struct access_bit *bits, unsigned n, struct answer *a)
{
	unsigned may = 0, got;
	int status;

	for (unsigned i = 0; i < n; i++) {
		if (want & bits[i].bit)
			may |= bits[i].may;
	}
	status = nfs4_access_granted(c, may, &got);
	if (status != NFS4_OK)
		return status;
	for (unsigned i = 0; i < n; i++) {
		a->supported |= want & bits[i].bit;
		if ((got & bits[i].may) == bits[i].may)
			a->granted |= want & bits[i].bit;
	}
	if (keeps_xattrs(c))
		a->granted &= ~ACCESS4_XAWRITE;
	return NFS4_OK;
}

struct access_args {
	uint32_t want; /* ACCESS4_* */
};

static void nfs4_decode_access(struct nfs4_compound *c, void *args)
{
	struct access_args *a = args;

	a->want = xdr_get_u32(c->in);
}

static int run_access(struct nfs4_compound *c, void *args)
{
	const struct access_args *a = args;
	struct answer answer = { 0 };
	uint32_t want = a->want;
	int status = nfs4_need(c, &c->current, 0);

	if (status != NFS4_OK)
		return status;
	if (want & ~(c->minor < 2 ? ACCESS4_ALL : ACCESS4_ALL | ACCESS4_XATTRS))
		return NFS4ERR_INVAL;
	if (!has_xattrs(&c->current))
		want &= ~ACCESS4_XATTRS;
	if (c->current.kind == NFS4_PSEUDO || S_ISDIR(c->current.type))
		status = nfs4_access_fill_answer(c, want, dir_bits, rn_array_size(dir_bits),
						 &answer);
	else
		status = nfs4_access_fill_answer(c, want, file_bits, rn_array_size(file_bits),
						 &answer);
	if (status != NFS4_OK)
		return status;
	xdr_put_u32(c->out, answer.supported);
	xdr_put_u32(c->out, answer.granted);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_access = {
	.name = "ACCESS",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_EVENT_THREAD,
	.reply_max = 8,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_INVAL),
	.shape = NFS4_SHAPE(4, 0, 0),
	.args_size = sizeof(struct access_args),
	.decode = nfs4_decode_access,
	.run = run_access,
};
