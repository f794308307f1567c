/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of attributes. Left out because POSIX file systems have no such data: mimetype,
 * time_backup, retention, layouts, notification delays. Neither statx(2) nor
 * FS_IOC_GETFLAGS tells of archive, hidden and system. sacl needs auditing. dacl has automatic
 * inheritance (RFC 8881 section 6.4.3.2), which POSIX ACLs cannot store.
 */
#include "nfs4/attr/attr_table.h"

#include "lib/util.h"
#include "nfs4/attr/get.h"
#include "nfs4/nfs4_private.h"

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
