/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of attributes. Left out because POSIX file systems have no such data: mimetype,
 * time_backup, retention, hints for layouts, notification delays. Neither statx(2) nor
 * FS_IOC_GETFLAGS tells of archive, hidden and system. sacl needs auditing. dacl has automatic
 * inheritance (RFC 8881 section 6.4.3.2), which POSIX ACLs cannot store.
 */
#include "nfs4/attr/attr_table.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/source.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/pseudo/pseudo.h"
#include "vfs/share.h"

#define NFS4_ATTR_GETTER(name)                                                                     \
	static void nfs4_value_##name(struct xdr_out *x, const struct nfs4_attr_source *src)

/* Values of the attributes of one object. */

static uint32_t nfs4_type_of(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return NF4DIR;
	case S_IFBLK:
		return NF4BLK;
	case S_IFCHR:
		return NF4CHR;
	case S_IFLNK:
		return NF4LNK;
	case S_IFSOCK:
		return NF4SOCK;
	case S_IFIFO:
		return NF4FIFO;
	default:
		return NF4REG;
	}
}

static void nfs4_attr_put_time(struct xdr_out *x, const struct timespec *t)
{
	xdr_put_u64(x, (uint64_t)t->tv_sec);
	xdr_put_u32(x, (uint32_t)t->tv_nsec);
}

NFS4_ATTR_GETTER(type)
{
	xdr_put_u32(x, nfs4_type_of(src->attr.mode));
}

NFS4_ATTR_GETTER(acl)
{
	nfs4_put_acl(src->c, x, &src->acls, S_ISDIR(src->attr.mode));
}

NFS4_ATTR_GETTER(posix_default_acl)
{
	nfs4_put_posix_acl(src->c, x, &src->acls.inherited);
}

NFS4_ATTR_GETTER(posix_access_acl)
{
	nfs4_put_posix_acl(src->c, x, &src->acls.access);
}

NFS4_ATTR_GETTER(change)
{
	xdr_put_u64(x, src->attr.change);
}

NFS4_ATTR_GETTER(size)
{
	xdr_put_u64(x, src->attr.size);
}

NFS4_ATTR_GETTER(fsid)
{
	xdr_put_u64(x, src->attr.fsid);
	xdr_put_u64(x, 0);
}

NFS4_ATTR_GETTER(rdattr_error)
{
	xdr_put_u32(x, src->rdattr_error);
}

NFS4_ATTR_GETTER(filehandle)
{
	xdr_put_opaque(x, src->fh.data, src->fh.len);
}

NFS4_ATTR_GETTER(fileid)
{
	xdr_put_u64(x, src->attr.fileid);
}

NFS4_ATTR_GETTER(mode)
{
	xdr_put_u32(x, src->attr.mode & NFS4_MODE_BITS);
}

NFS4_ATTR_GETTER(numlinks)
{
	xdr_put_u32(x, src->attr.nlink);
}

NFS4_ATTR_GETTER(owner)
{
	xdr_put_opaque(x, src->owner.s, src->owner.len);
}

NFS4_ATTR_GETTER(owner_group)
{
	xdr_put_opaque(x, src->group.s, src->group.len);
}

NFS4_ATTR_GETTER(quota_avail_hard)
{
	xdr_put_u64(x, src->quota.avail_hard);
}

NFS4_ATTR_GETTER(quota_avail_soft)
{
	xdr_put_u64(x, src->quota.avail_soft);
}

NFS4_ATTR_GETTER(quota_used)
{
	xdr_put_u64(x, src->quota.used);
}

NFS4_ATTR_GETTER(rawdev)
{
	xdr_put_u32(x, src->attr.rdev_major);
	xdr_put_u32(x, src->attr.rdev_minor);
}

NFS4_ATTR_GETTER(space_freed)
{
	xdr_put_u64(x, src->space_freed);
}

NFS4_ATTR_GETTER(space_used)
{
	xdr_put_u64(x, src->attr.used);
}

/* sec_label4 (RFC 7862 section 12.2.4) */
NFS4_ATTR_GETTER(sec_label)
{
	xdr_put_u32(x, NFS4_LABEL_FORMAT);
	xdr_put_u32(x, NFS4_LABEL_POLICY);
	xdr_put_opaque(x, src->label_buffer, src->label_len);
}

NFS4_ATTR_GETTER(time_access)
{
	nfs4_attr_put_time(x, &src->attr.atime);
}

NFS4_ATTR_GETTER(time_create)
{
	nfs4_attr_put_time(x, &src->attr.btime);
}

NFS4_ATTR_GETTER(time_metadata)
{
	nfs4_attr_put_time(x, &src->attr.ctime);
}

NFS4_ATTR_GETTER(time_modify)
{
	nfs4_attr_put_time(x, &src->attr.mtime);
}

NFS4_ATTR_GETTER(mounted_on_fileid)
{
	xdr_put_u64(x, src->mounted_on);
}

/* Values of attributes that all objects of a file system share. */

#define NS_PER_SECOND 1000000000u

/* change_attr_type4 (RFC 7862 section 12.2.3) */
#define CHANGE_TYPE_IS_UNDEFINED 4u

NFS4_ATTR_GETTER(supported_attrs)
{
	struct nfs4_bitmap b;

	nfs4_attr_supported(nfs4_attr_level(src->server, src->minor), &b);
	nfs4_attr_drop_missing(src, &b);
	nfs4_put_bitmap(x, &b);
}

NFS4_ATTR_GETTER(suppattr_exclcreat)
{
	struct nfs4_bitmap b;

	nfs4_attr_exclusive(nfs4_attr_level(src->server, src->minor), &b);
	nfs4_attr_drop_missing(src, &b);
	nfs4_put_bitmap(x, &b);
}

NFS4_ATTR_GETTER(aclsupport)
{
	xdr_put_u32(x, src->has_acl ? ACL4_SUPPORT_ALLOW_ACL | ACL4_SUPPORT_DENY_ACL : 0);
}

NFS4_ATTR_GETTER(acl_trueform)
{
	xdr_put_u32(x, src->has_acl ? ACL_MODEL_POSIX_DRAFT : ACL_MODEL_NONE);
}

NFS4_ATTR_GETTER(acl_trueform_scope)
{
	(void)src;
	xdr_put_u32(x, ACL_SCOPE_FILE_SYSTEM);
}

/* 0 as uint32_t, or false */
NFS4_ATTR_GETTER(zero)
{
	(void)src;
	xdr_put_u32(x, 0);
}

NFS4_ATTR_GETTER(true)
{
	(void)src;
	xdr_put_bool(x, true);
}

NFS4_ATTR_GETTER(links)
{
	xdr_put_bool(x, src->fs.links);
}

NFS4_ATTR_GETTER(case_insensitive)
{
	xdr_put_bool(x, src->fs.case_insensitive);
}

NFS4_ATTR_GETTER(lease_time)
{
	xdr_put_u32(x, src->server->cfg.lease_seconds);
}

NFS4_ATTR_GETTER(files_avail)
{
	xdr_put_u64(x, src->fs.avail_files);
}

NFS4_ATTR_GETTER(files_free)
{
	xdr_put_u64(x, src->fs.free_files);
}

NFS4_ATTR_GETTER(files_total)
{
	xdr_put_u64(x, src->fs.total_files);
}

NFS4_ATTR_GETTER(maxfilesize)
{
	xdr_put_u64(x, src->fs.size_max);
}

NFS4_ATTR_GETTER(maxlink)
{
	xdr_put_u32(x, src->fs.link_max);
}

NFS4_ATTR_GETTER(maxname)
{
	xdr_put_u32(x, src->fs.name_max);
}

NFS4_ATTR_GETTER(maxio)
{
	xdr_put_u64(x, src->server->cfg.max_io);
}

NFS4_ATTR_GETTER(space_avail)
{
	xdr_put_u64(x, src->fs.avail_bytes);
}

NFS4_ATTR_GETTER(space_free)
{
	xdr_put_u64(x, src->fs.free_bytes);
}

NFS4_ATTR_GETTER(space_total)
{
	xdr_put_u64(x, src->fs.total_bytes);
}

NFS4_ATTR_GETTER(time_delta)
{
	xdr_put_u64(x, src->fs.time_ns / NS_PER_SECOND);
	xdr_put_u32(x, src->fs.time_ns % NS_PER_SECOND);
}

/* Names are stored as bytes, by local processes too. */
NFS4_ATTR_GETTER(fs_charset_cap)
{
	(void)src;
	xdr_put_u32(x, FSCHARSET_CAP4_CONTAINS_NON_UTF8);
}

/* Told for file systems that cannot clone, too: CLONE answers NFS4ERR_NOTSUPP there. */
NFS4_ATTR_GETTER(clone_blksize)
{
	xdr_put_u32(x, src->fs.block);
}

/*
 * The only type that is never a lie. The change attribute is made from ctime, which goes backwards
 * with the server's clock, so it is not known to grow with each change, as all other types promise.
 * It is no counter either: two changes of a local process within a tick of the clock share a ctime,
 * and a look at a file that has just changed may add a value (vfs/fs/change.h).
 */
NFS4_ATTR_GETTER(change_attr_type)
{
	(void)src;
	xdr_put_u32(x, CHANGE_TYPE_IS_UNDEFINED);
}

NFS4_ATTR_GETTER(xattr_support)
{
	xdr_put_bool(x, src->has_xattrs);
}

/* The attribute fs_locations (RFC 7530 section 8.1, RFC 8881 section 11.16): where the files of an export are. */

struct sink {
	struct xdr_out *x; /* NULL: only size is wanted */
	uint32_t size;	   /* bytes of XDR so far */
	uint32_t count;	   /* locations */
};

/* Puts a number that is known later, and returns its place. */
static size_t put_count(struct sink *to)
{
	const size_t at = to->x ? xdr_out_pos(to->x) : 0;

	to->size += 4;
	if (to->x)
		xdr_put_u32(to->x, 0);
	return at;
}

static void patch_count(const struct sink *to, size_t at, uint32_t count)
{
	if (to->x && !to->x->overflow)
		xdr_patch_u32(to->x, at, count);
}

static void nfs4_locations_put_text(struct sink *to, const char *text, size_t len)
{
	to->size += 4 + (uint32_t)len + rn_xdr_pad((uint32_t)len);
	if (to->x)
		xdr_put_opaque(to->x, text, (uint32_t)len);
}

/* Parts of a text between separators, as an array; empty parts are none. */
static void put_parts(struct sink *to, const char *text, size_t len, char separator)
{
	const size_t at = put_count(to);
	const char *end = text + len;
	uint32_t count = 0;

	for (const char *part = text, *stop; part < end; part = stop + 1) {
		size_t n;

		stop = memchr(part, separator, (size_t)(end - part));
		if (!stop)
			stop = end;
		n = (size_t)(stop - part);
		if (n > 2 && separator == '+' &&
		    *part == '[') /* clients want it without brackets */
			nfs4_locations_put_text(to, part + 1, n - 2);
		else if (n > 0)
			nfs4_locations_put_text(to, part, n);
		count += n > 0;
	}
	patch_count(to, at, count);
}

static void put_location(void *arg, const struct vfs_location *l)
{
	struct sink *to = arg;

	put_parts(to, l->hosts, l->hosts_len, '+');
	put_parts(to, l->path, l->path_len, '/');
	to->count++;
}

/* A pseudo directory has no other locations, and the root as its path. */
static void put_all(struct sink *to, const struct nfs4_attr_source *src)
{
	const struct vfs_exports *exports = &src->server->cfg.exports;
	const struct nfs4_object *p = src->object;
	const bool known = p && p->kind == NFS4_FILE;
	char root[PATH_MAX] = "";
	size_t at;

	if (known)
		nfs4_pseudo_path_of(src->c, p->export_id, root, sizeof(root));
	put_parts(to, root, strlen(root), '/');
	at = put_count(to);
	if (known && exports->locations)
		exports->locations(exports->ctx, p->export_id,
				   (const struct sockaddr *)&src->c->req->conn->peer, put_location,
				   to);
	patch_count(to, at, to->count);
}

uint32_t nfs4_locations_size(const struct nfs4_attr_source *src)
{
	struct sink to = { .x = NULL };

	put_all(&to, src);
	return to.size;
}

NFS4_ATTR_GETTER(fs_locations)
{
	struct sink to = { .x = x };

	put_all(&to, src);
}

/*
 * The attribute open_arguments (RFC 9754): what nfs4/open/ accepts in OPEN's arguments. A test sends
 * an OPEN with each of them (tests/unit/test_nfs4_open_arguments.c).
 */

#define BIT(n) (1u << (n))

#define SHARE_ACCESS                                                                               \
	(BIT(OPEN_ARGS_SHARE_ACCESS_READ) | BIT(OPEN_ARGS_SHARE_ACCESS_WRITE) |                    \
	 BIT(OPEN_ARGS_SHARE_ACCESS_BOTH))
#define SHARE_DENY                                                                                 \
	(BIT(OPEN_ARGS_SHARE_DENY_NONE) | BIT(OPEN_ARGS_SHARE_DENY_READ) |                         \
	 BIT(OPEN_ARGS_SHARE_DENY_WRITE) | BIT(OPEN_ARGS_SHARE_DENY_BOTH))
/* Wants for later are accepted, as RFC 8881 requires, but no client is told later. */
#define WANTS                                                                                      \
	(BIT(OPEN_ARGS_SHARE_ACCESS_WANT_ANY_DELEG) | BIT(OPEN_ARGS_SHARE_ACCESS_WANT_NO_DELEG) |  \
	 BIT(OPEN_ARGS_SHARE_ACCESS_WANT_CANCEL) |                                                 \
	 BIT(OPEN_ARGS_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION))
#define CLAIMS                                                                                     \
	(BIT(OPEN_ARGS_OPEN_CLAIM_NULL) | BIT(OPEN_ARGS_OPEN_CLAIM_PREVIOUS) |                     \
	 BIT(OPEN_ARGS_OPEN_CLAIM_DELEGATE_CUR) | BIT(OPEN_ARGS_OPEN_CLAIM_FH) |                   \
	 BIT(OPEN_ARGS_OPEN_CLAIM_DELEG_CUR_FH))
#define CREATE_MODES                                                                               \
	(BIT(OPEN_ARGS_CREATEMODE_UNCHECKED4) | BIT(OPEN_ARGS_CREATE_MODE_GUARDED) |               \
	 BIT(OPEN_ARGS_CREATEMODE_EXCLUSIVE4) | BIT(OPEN_ARGS_CREATE_MODE_EXCLUSIVE4_1))

NFS4_ATTR_GETTER(open_arguments)
{
	const bool denies = vfs_share_may_deny(src->server->cfg.vfs, VFS_SHARE_BOTH);
	const uint32_t bitmaps[NFS4_OPEN_ARGUMENTS] = {
		SHARE_ACCESS, denies ? SHARE_DENY : BIT(OPEN_ARGS_SHARE_DENY_NONE), WANTS, CLAIMS,
		CREATE_MODES,
	};

	for (unsigned i = 0; i < NFS4_OPEN_ARGUMENTS; i++) {
		xdr_put_u32(x, 1); /* words */
		xdr_put_u32(x, bitmaps[i]);
	}
}

NFS4_ATTR_GETTER(layout_types)
{
	(void)src;
	xdr_put_u32(x, 1);
	xdr_put_u32(x, LAYOUT4_FLEX_FILES);
}

NFS4_ATTR_GETTER(layout_blksize)
{
	const struct nfs4_cluster *cluster = src->server->cfg.cluster;

	xdr_put_u32(x, cluster ? cluster->data_io : 0);
}

#define FH_MAX (4u + NFS4_FHSIZE)
#define MASK (4u + 4u * NFS4_ATTR_WORDS)
#define TIME (8u + 4u)
#define LABEL (4u + 4u + 4u)
#define OPEN_ARGUMENTS (NFS4_OPEN_ARGUMENTS * (4u + 4u))

#define GET(NAME, name, level, needs, size, get)                                                   \
	[FATTR4_##NAME] = { #name, level, needs, size, get, NULL }
#define BOTH(NAME, name, level, needs, size, get, set)                                             \
	[FATTR4_##NAME] = { #name, level, needs, size, get, set }
#define SET(NAME, name, level, set) [FATTR4_##NAME] = { #name, level, 0, 0, NULL, set }
#define POSIX NFS4_LEVEL_POSIX_ACLS

/* clang-format off */
static const struct nfs4_attr_row rows[] = {
	GET(SUPPORTED_ATTRS, supported_attrs, 0, NFS4_ATTR_ABLE, MASK, nfs4_value_supported_attrs),
	GET(TYPE, type, 0, 0, 4, nfs4_value_type),
	GET(FH_EXPIRE_TYPE, fh_expire_type, 0, 0, 4, nfs4_value_zero), /* FH4_PERSISTENT */
	GET(CHANGE, change, 0, 0, 8, nfs4_value_change),
	BOTH(SIZE, size, 0, 0, 8, nfs4_value_size, nfs4_sattr_size),
	GET(LINK_SUPPORT, link_support, 0, NFS4_ATTR_FS, 4, nfs4_value_links),
	GET(SYMLINK_SUPPORT, symlink_support, 0, NFS4_ATTR_FS, 4, nfs4_value_links),
	GET(NAMED_ATTR, named_attr, 0, 0, 4, nfs4_value_zero),
	GET(FSID, fsid, 0, 0, 16, nfs4_value_fsid),
	GET(UNIQUE_HANDLES, unique_handles, 0, 0, 4, nfs4_value_true),
	GET(LEASE_TIME, lease_time, 0, 0, 4, nfs4_value_lease_time),
	GET(RDATTR_ERROR, rdattr_error, 0, 0, 4, nfs4_value_rdattr_error),
	BOTH(ACL, acl, 0, NFS4_ATTR_ACLS | NFS4_ATTR_ABLE, 4, nfs4_value_acl, nfs4_sattr_acl),
	GET(ACLSUPPORT, aclsupport, 0, NFS4_ATTR_ABLE, 4, nfs4_value_aclsupport),
	GET(CANSETTIME, cansettime, 0, 0, 4, nfs4_value_true),
	GET(CASE_INSENSITIVE, case_insensitive, 0, NFS4_ATTR_FS, 4, nfs4_value_case_insensitive),
	GET(CASE_PRESERVING, case_preserving, 0, 0, 4, nfs4_value_true),
	GET(CHOWN_RESTRICTED, chown_restricted, 0, 0, 4, nfs4_value_true),
	GET(FILEHANDLE, filehandle, 0, 0, FH_MAX, nfs4_value_filehandle),
	GET(FILEID, fileid, 0, 0, 8, nfs4_value_fileid),
	GET(FILES_AVAIL, files_avail, 0, NFS4_ATTR_FS, 8, nfs4_value_files_avail),
	GET(FILES_FREE, files_free, 0, NFS4_ATTR_FS, 8, nfs4_value_files_free),
	GET(FILES_TOTAL, files_total, 0, NFS4_ATTR_FS, 8, nfs4_value_files_total),
	GET(FS_LOCATIONS, fs_locations, 0, 0, 0, nfs4_value_fs_locations),
	GET(HOMOGENEOUS, homogeneous, 0, 0, 4, nfs4_value_true),
	GET(MAXFILESIZE, maxfilesize, 0, NFS4_ATTR_FS, 8, nfs4_value_maxfilesize),
	GET(MAXLINK, maxlink, 0, NFS4_ATTR_FS, 4, nfs4_value_maxlink),
	GET(MAXNAME, maxname, 0, NFS4_ATTR_FS, 4, nfs4_value_maxname),
	GET(MAXREAD, maxread, 0, 0, 8, nfs4_value_maxio),
	GET(MAXWRITE, maxwrite, 0, 0, 8, nfs4_value_maxio),
	BOTH(MODE, mode, 0, 0, 4, nfs4_value_mode, nfs4_sattr_mode),
	GET(NO_TRUNC, no_trunc, 0, 0, 4, nfs4_value_true),
	GET(NUMLINKS, numlinks, 0, 0, 4, nfs4_value_numlinks),
	BOTH(OWNER, owner, 0, NFS4_ATTR_OWNER, 4, nfs4_value_owner, nfs4_sattr_owner),
	BOTH(OWNER_GROUP, owner_group, 0, NFS4_ATTR_GROUP, 4, nfs4_value_owner_group, nfs4_sattr_group),
	GET(QUOTA_AVAIL_HARD, quota_avail_hard, 0, NFS4_ATTR_QUOTA | NFS4_ATTR_ABLE, 8, nfs4_value_quota_avail_hard),
	GET(QUOTA_AVAIL_SOFT, quota_avail_soft, 0, NFS4_ATTR_QUOTA | NFS4_ATTR_ABLE, 8, nfs4_value_quota_avail_soft),
	GET(QUOTA_USED, quota_used, 0, NFS4_ATTR_QUOTA | NFS4_ATTR_ABLE, 8, nfs4_value_quota_used),
	GET(RAWDEV, rawdev, 0, 0, 8, nfs4_value_rawdev),
	GET(SPACE_AVAIL, space_avail, 0, NFS4_ATTR_FS, 8, nfs4_value_space_avail),
	GET(SPACE_FREE, space_free, 0, NFS4_ATTR_FS, 8, nfs4_value_space_free),
	GET(SPACE_TOTAL, space_total, 0, NFS4_ATTR_FS, 8, nfs4_value_space_total),
	GET(SPACE_USED, space_used, 0, 0, 8, nfs4_value_space_used),
	GET(TIME_ACCESS, time_access, 0, 0, TIME, nfs4_value_time_access),
	SET(TIME_ACCESS_SET, time_access_set, 0, nfs4_sattr_atime),
	BOTH(TIME_CREATE, time_create, 0, 0, TIME, nfs4_value_time_create, nfs4_sattr_time_create),
	GET(TIME_DELTA, time_delta, 0, NFS4_ATTR_FS, TIME, nfs4_value_time_delta),
	GET(TIME_METADATA, time_metadata, 0, 0, TIME, nfs4_value_time_metadata),
	GET(TIME_MODIFY, time_modify, 0, 0, TIME, nfs4_value_time_modify),
	SET(TIME_MODIFY_SET, time_modify_set, 0, nfs4_sattr_mtime),
	GET(MOUNTED_ON_FILEID, mounted_on_fileid, 0, 0, 8, nfs4_value_mounted_on_fileid),
	SET(MODE_SET_MASKED, mode_set_masked, 1, nfs4_sattr_mode_masked),
	GET(SUPPATTR_EXCLCREAT, suppattr_exclcreat, 1, NFS4_ATTR_ABLE, MASK, nfs4_value_suppattr_exclcreat),
	GET(FS_CHARSET_CAP, fs_charset_cap, 1, 0, 4, nfs4_value_fs_charset_cap),
	GET(FS_LAYOUT_TYPES, fs_layout_types, 1, 0, 8, nfs4_value_layout_types),
	GET(LAYOUT_TYPES, layout_types, 1, 0, 8, nfs4_value_layout_types),
	GET(LAYOUT_BLKSIZE, layout_blksize, 1, 0, 4, nfs4_value_layout_blksize),
	BOTH(SEC_LABEL, sec_label, 2, NFS4_ATTR_LABEL, LABEL, nfs4_value_sec_label, nfs4_sattr_sec_label),
	SET(MODE_UMASK, mode_umask, 2, nfs4_sattr_mode_umask),
	GET(CLONE_BLKSIZE, clone_blksize, 2, NFS4_ATTR_FS, 4, nfs4_value_clone_blksize),
	GET(SPACE_FREED, space_freed, 2, NFS4_ATTR_FREED, 8, nfs4_value_space_freed),
	GET(CHANGE_ATTR_TYPE, change_attr_type, 2, 0, 4, nfs4_value_change_attr_type),
	GET(XATTR_SUPPORT, xattr_support, 2, NFS4_ATTR_XATTRS, 4, nfs4_value_xattr_support),
	GET(OPEN_ARGUMENTS, open_arguments, 2, 0, OPEN_ARGUMENTS, nfs4_value_open_arguments),
	GET(ACL_TRUEFORM, acl_trueform, POSIX, NFS4_ATTR_ABLE, 4, nfs4_value_acl_trueform),
	GET(ACL_TRUEFORM_SCOPE, acl_trueform_scope, POSIX, 0, 4, nfs4_value_acl_trueform_scope),
	BOTH(POSIX_DEFAULT_ACL, posix_default_acl, POSIX, NFS4_ATTR_ACLS | NFS4_ATTR_ABLE, 4, nfs4_value_posix_default_acl, nfs4_sattr_posix_default),
	BOTH(POSIX_ACCESS_ACL, posix_access_acl, POSIX, NFS4_ATTR_ACLS | NFS4_ATTR_ABLE, 4, nfs4_value_posix_access_acl, nfs4_sattr_posix_access),
};
/* clang-format on */

uint32_t nfs4_attr_level(const struct nfs4_server *s, uint32_t minor)
{
	return minor == NFS4_MINOR_MAX && s->cfg.posix_acls ? NFS4_LEVEL_POSIX_ACLS : minor;
}

const struct nfs4_attr_row *nfs4_attr_find(unsigned number, uint32_t level)
{
	const struct nfs4_attr_row *row;

	if (number >= rn_array_size(rows))
		return NULL;
	row = &rows[number];
	return row->name && level >= row->level ? row : NULL;
}

void nfs4_attr_supported(uint32_t level, struct nfs4_bitmap *out)
{
	*out = (struct nfs4_bitmap){ 0 };
	for (unsigned i = 0; i < rn_array_size(rows); i++) {
		if (nfs4_attr_find(i, level))
			nfs4_bitmap_add(out, i);
	}
}

/* All attributes that can be set, except the times, which hold the verifier, those of SETATTR only,
 * and time_create, whose value is not used. */
void nfs4_attr_exclusive(uint32_t level, struct nfs4_bitmap *out)
{
	*out = (struct nfs4_bitmap){ 0 };
	for (unsigned i = 0; i < rn_array_size(rows); i++) {
		const struct nfs4_attr_row *row = nfs4_attr_find(i, level);

		if (row && row->set)
			nfs4_bitmap_add(out, i);
	}
	nfs4_bitmap_remove(out, FATTR4_TIME_ACCESS_SET);
	nfs4_bitmap_remove(out, FATTR4_TIME_MODIFY_SET);
	nfs4_bitmap_remove(out, FATTR4_MODE_SET_MASKED);
	nfs4_bitmap_remove(out, FATTR4_TIME_CREATE);
}
