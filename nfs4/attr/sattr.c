/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bitmap4, and fattr4 in a call. The values follow each other in the order of their bits, so they can be parsed
 * only if each attribute is known: with one unsupported bit all values are skipped. Well-formed but
 * invalid values are remembered as a status, the first one found.
 */
#include "nfs4/attr/nfs4_attr.h"

#include <sys/stat.h>

#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/owner_name.h"
#include "vfs/xattr.h"

static uint32_t words_used(const struct nfs4_bitmap *b)
{
	uint32_t n = NFS4_ATTR_WORDS;

	while (n > 0 && b->word[n - 1] == 0)
		n--;
	return n;
}

bool nfs4_bitmap_empty(const struct nfs4_bitmap *b)
{
	return words_used(b) == 0;
}

bool nfs4_get_bitmap(struct xdr_in *x, struct nfs4_bitmap *out)
{
	uint32_t n = xdr_get_u32(x);
	uint32_t beyond = 0;

	*out = (struct nfs4_bitmap){ 0 };
	/* The cursor's error ends the loop: n comes from the client. */
	for (uint32_t i = 0; i < n && !x->err; i++) {
		uint32_t w = xdr_get_u32(x);

		if (i < NFS4_ATTR_WORDS)
			out->word[i] = w;
		else
			beyond |= w;
	}
	return beyond == 0;
}

void nfs4_put_bitmap(struct xdr_out *x, const struct nfs4_bitmap *b)
{
	uint32_t n = words_used(b);

	xdr_put_u32(x, n);
	for (uint32_t i = 0; i < n; i++)
		xdr_put_u32(x, b->word[i]);
}

uint32_t nfs4_bitmap_size(const struct nfs4_bitmap *b)
{
	return 4 + 4 * words_used(b);
}

#define UMASK_BITS 0777u
#define NS_PER_SECOND 1000000000u

enum time_how4 { SET_TO_SERVER_TIME4 = 0, SET_TO_CLIENT_TIME4 = 1 };

static void nfs4_sattr_refuse(struct nfs4_sattr *sa, int status)
{
	if (sa->status == NFS4_OK)
		sa->status = status;
}

void nfs4_sattr_size(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->set.size = xdr_get_u64(x);
	sa->set.set_size = true;
}

static uint32_t get_mode(struct xdr_in *x, struct nfs4_sattr *sa)
{
	uint32_t mode = xdr_get_u32(x);

	if (mode & ~NFS4_MODE_BITS)
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
	return mode & NFS4_MODE_BITS;
}

void nfs4_sattr_mode(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->set.mode = get_mode(x, sa);
	sa->set.set_mode = true;
}

void nfs4_sattr_mode_masked(struct xdr_in *x, struct nfs4_sattr *sa)
{
	if (sa->set.set_mode) /* "mode" is given, too */
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
	sa->set.mode = get_mode(x, sa);
	sa->mode_mask = get_mode(x, sa);
}

void nfs4_sattr_mode_umask(struct xdr_in *x, struct nfs4_sattr *sa)
{
	if (sa->set.set_mode)
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
	nfs4_sattr_mode(x, sa);
	sa->set.umask = xdr_get_u32(x);
	if (sa->set.umask & ~UMASK_BITS)
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
}

static const char *nfs4_sattr_get_name(struct xdr_in *x, struct nfs4_sattr *sa, uint32_t *len)
{
	const char *name = (const char *)xdr_get_opaque(x, UINT32_MAX, len);

	if (!name)
		return NULL;
	if (*len == 0 || !nfs4_utf8_valid(name, *len))
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
	else if (*len > NFS4_OWNER_MAX)
		nfs4_sattr_refuse(sa, NFS4ERR_BADOWNER);
	return name;
}

void nfs4_sattr_owner(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->owner = nfs4_sattr_get_name(x, sa, &sa->owner_len);
}

void nfs4_sattr_group(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->group = nfs4_sattr_get_name(x, sa, &sa->group_len);
}

void nfs4_sattr_acl(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->acl = *x;
	sa->has_acl = true;
	nfs4_pass_acl(x);
}

void nfs4_sattr_posix_default(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->posix_default = *x;
	nfs4_pass_posix_acl(x);
}

void nfs4_sattr_posix_access(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->posix_access = *x;
	nfs4_pass_posix_acl(x);
}

/* settime4 */
static enum vfs_set_time nfs4_sattr_get_time(struct xdr_in *x, struct nfs4_sattr *sa,
					     struct timespec *out)
{
	uint32_t how = xdr_get_u32(x), ns;

	if (how == SET_TO_SERVER_TIME4)
		return VFS_TIME_SERVER;
	if (how != SET_TO_CLIENT_TIME4)
		nfs4_bad_xdr(x);
	out->tv_sec = (time_t)xdr_get_u64(x);
	ns = xdr_get_u32(x);
	if (ns >= NS_PER_SECOND)
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
	else
		out->tv_nsec = (long)ns;
	return VFS_TIME_CLIENT;
}

void nfs4_sattr_atime(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->set.set_atime = nfs4_sattr_get_time(x, sa, &sa->set.atime);
}

void nfs4_sattr_mtime(struct xdr_in *x, struct nfs4_sattr *sa)
{
	sa->set.set_mtime = nfs4_sattr_get_time(x, sa, &sa->set.mtime);
}

void nfs4_sattr_sec_label(struct xdr_in *x, struct nfs4_sattr *sa)
{
	struct vfs_label *label = &sa->set.label;
	uint32_t format = xdr_get_u32(x), policy = xdr_get_u32(x);

	label->bytes = xdr_get_opaque(x, UINT32_MAX, &label->len);
	if (format != NFS4_LABEL_FORMAT || policy != NFS4_LABEL_POLICY)
		nfs4_sattr_refuse(sa, NFS4ERR_WRONG_LFS);
	else if (label->len == 0 || label->len > VFS_LABEL_MAX)
		nfs4_sattr_refuse(sa, NFS4ERR_BADLABEL);
}

/*
 * Decoded and dropped: no Linux file system can set the time of birth. RFC 8881 section 5.8.2.40
 * lets a client set it, and macOS' does; an error would fail the whole operation. attrsset tells
 * that it was not set.
 */
void nfs4_sattr_time_create(struct xdr_in *x, struct nfs4_sattr *sa)
{
	xdr_get_u64(x);
	if (xdr_get_u32(x) >= NS_PER_SECOND)
		nfs4_sattr_refuse(sa, NFS4ERR_INVAL);
	nfs4_bitmap_remove(&sa->given, FATTR4_TIME_CREATE);
}

/* 0, or the error if these attributes cannot be set, or not by this operation. */
static int nfs4_sattr_check_given(const struct nfs4_bitmap *given, uint32_t level)
{
	int status = NFS4_OK;

	for (unsigned i = 0; i < NFS4_ATTR_WORDS * 32; i++) {
		const struct nfs4_attr_row *row;

		if (!nfs4_bitmap_has(given, i))
			continue;
		row = nfs4_attr_find(i, level);
		if (!row)
			return NFS4ERR_ATTRNOTSUPP;
		if (!row->set)
			status = NFS4ERR_INVAL;
	}
	return status;
}

/* Decodes the values. If they do not take exactly len bytes, the XDR is bad. */
static void get_values(struct xdr_in *x, struct nfs4_sattr *sa, uint32_t len)
{
	size_t after = x->left - len;

	for (unsigned i = 0; i < NFS4_ATTR_WORDS * 32; i++) {
		if (nfs4_bitmap_has(&sa->given, i))
			nfs4_attr_find(i, NFS4_LEVEL_MAX)->set(x, sa);
	}
	if (x->left != after)
		nfs4_bad_xdr(x);
}

void nfs4_get_sattr(struct nfs4_compound *c, struct nfs4_sattr *out)
{
	struct xdr_in *x = c->in;
	uint32_t len;

	*out = (struct nfs4_sattr){ 0 };
	if (!nfs4_get_bitmap(x, &out->given))
		out->status = NFS4ERR_ATTRNOTSUPP;
	len = xdr_get_u32(x);
	if (x->err || len > x->left || len % 4 != 0) {
		nfs4_bad_xdr(x);
		return;
	}
	nfs4_sattr_refuse(
		out, nfs4_sattr_check_given(&out->given, nfs4_attr_level(c->server, c->minor)));
	if (out->status == NFS4_OK)
		get_values(x, out, len);
	else
		xdr_skip(x, len);
}

static bool has_posix_acls(const struct nfs4_sattr *sa)
{
	return nfs4_bitmap_has(&sa->given, FATTR4_POSIX_DEFAULT_ACL) ||
	       nfs4_bitmap_has(&sa->given, FATTR4_POSIX_ACCESS_ACL);
}

static bool allowed(const struct nfs4_sattr *sa, enum nfs4_sattr_use use)
{
	const struct nfs4_bitmap *given = &sa->given;

	if (sa->has_acl && has_posix_acls(sa))
		return false;
	if (use == NFS4_SATTR_SETATTR)
		return !nfs4_bitmap_has(given, FATTR4_MODE_UMASK); /* RFC 8275 section 5 */
	if (nfs4_bitmap_has(given, FATTR4_MODE_SET_MASKED))
		return false; /* RFC 8881 section 6.2.5 */
	if (use == NFS4_SATTR_CREATE || use == NFS4_SATTR_MKDIR || use == NFS4_SATTR_SYMLINK)
		return !sa->set.set_size;
	return use != NFS4_SATTR_EXCLUSIVE || (!nfs4_bitmap_has(given, FATTR4_TIME_ACCESS_SET) &&
					       !nfs4_bitmap_has(given, FATTR4_TIME_MODIFY_SET));
}

/* File type that the ACL applies to. */
static uint32_t acl_type(const struct nfs4_compound *c, enum nfs4_sattr_use use)
{
	switch (use) {
	case NFS4_SATTR_SETATTR:
		return c->current.type;
	case NFS4_SATTR_MKDIR:
		return S_IFDIR;
	case NFS4_SATTR_SYMLINK:
		return S_IFLNK;
	default:
		return S_IFREG;
	}
}

/* An access ACL of no entries leaves what is made with its mode alone, and nothing of the directory's. Without a mode, too,
 * it says nothing. */
static int drop_acl(struct nfs4_compound *c, const struct nfs4_sattr *sa, struct vfs_acls *acls)
{
	struct vfs_acl_entry *entry;

	acls->keep_access = !sa->set.set_mode;
	if (acls->keep_access)
		return NFS4_OK;
	entry = rn_arena_array(&c->req->arena, VFS_ACL_OF_MODE, sizeof(*entry));
	if (!entry)
		return NFS4ERR_REQ_TOO_BIG;
	vfs_acl_from_mode(sa->set.mode & ~sa->set.umask, entry, &acls->access);
	return NFS4_OK;
}

static int take_posix_acls(struct nfs4_compound *c, struct nfs4_sattr *sa, struct vfs_acls *out)
{
	int status = NFS4_OK;

	out->keep_access = !nfs4_bitmap_has(&sa->given, FATTR4_POSIX_ACCESS_ACL);
	out->keep_inherited = !nfs4_bitmap_has(&sa->given, FATTR4_POSIX_DEFAULT_ACL);
	if (!out->keep_inherited)
		status = nfs4_take_posix_acl(c, &sa->posix_default, &out->inherited);
	if (status == NFS4_OK && !out->keep_access)
		status = nfs4_take_posix_acl(c, &sa->posix_access, &out->access);
	return status;
}

static bool can_have_acl(const struct nfs4_compound *c, uint32_t type)
{
	const struct nfs4_object *p = &c->current;

	return p->kind == NFS4_FILE && type != S_IFLNK && vfs_acl_supported(&p->ctx, p->node);
}

/* An ACL that is not given stays as it is, or is what the file system makes it. */
static int check_posix_acls(struct nfs4_compound *c, struct nfs4_sattr *sa, enum nfs4_sattr_use use)
{
	const uint32_t type = acl_type(c, use);
	struct vfs_acls *acls;
	int status;

	if (!can_have_acl(c, type))
		return NFS4ERR_ATTRNOTSUPP;
	acls = rn_arena_alloc(&c->req->arena, sizeof(*acls));
	if (!acls)
		return NFS4ERR_REQ_TOO_BIG;
	status = take_posix_acls(c, sa, acls);
	if (status == NFS4_OK && type != S_IFDIR && acls->inherited.count > 0)
		status = NFS4ERR_INVAL;
	if (status == NFS4_OK && use != NFS4_SATTR_SETATTR && !acls->keep_access &&
	    acls->access.count == 0)
		status = drop_acl(c, sa, acls);
	sa->set.acls = acls;
	return status;
}

static int check_acl(struct nfs4_compound *c, struct nfs4_sattr *sa, enum nfs4_sattr_use use)
{
	const uint32_t type = acl_type(c, use);
	struct xdr_in acl = sa->acl;

	if (!can_have_acl(c, type))
		return NFS4ERR_ATTRNOTSUPP;
	return nfs4_take_acl(c, &acl, type == S_IFDIR, &sa->set.acls);
}

static int check_label(struct nfs4_compound *c)
{
	struct nfs4_object *p = &c->current;

	return p->kind == NFS4_FILE && vfs_label_supported(&p->ctx, p->node) ? NFS4_OK
									     : NFS4ERR_ATTRNOTSUPP;
}

int nfs4_sattr_check(struct nfs4_compound *c, struct nfs4_sattr *sa, enum nfs4_sattr_use use)
{
	int status = sa->status;

	if (status == NFS4_OK && !allowed(sa, use))
		status = NFS4ERR_INVAL;
	if (status == NFS4_OK && sa->owner) {
		status = nfs4_user_id(c, sa->owner, sa->owner_len, &sa->set.uid);
		sa->set.set_uid = true;
	}
	if (status == NFS4_OK && sa->group) {
		status = nfs4_group_id(c, sa->group, sa->group_len, &sa->set.gid);
		sa->set.set_gid = true;
	}
	if (status == NFS4_OK && sa->has_acl)
		status = check_acl(c, sa, use);
	if (status == NFS4_OK && has_posix_acls(sa))
		status = check_posix_acls(c, sa, use);
	if (status == NFS4_OK && nfs4_bitmap_has(&sa->given, FATTR4_SEC_LABEL))
		status = check_label(c);
	return status;
}

void nfs4_add_verifier_attrs(struct nfs4_bitmap *b)
{
	nfs4_bitmap_add(b, FATTR4_TIME_ACCESS_SET);
	nfs4_bitmap_add(b, FATTR4_TIME_MODIFY_SET);
}
