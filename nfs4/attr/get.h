/* SPDX-License-Identifier: BSD-2-Clause */
/* Encoders of attribute values, for the table: get_object.c, get_fs.c and get_locations.c. */
#ifndef RN_NFS4_ATTR_GET_H
#define RN_NFS4_ATTR_GET_H

#include "nfs4/attr/source.h"

#define NFS4_ATTR_GETTER(name)                                                                     \
	void nfs4_value_##name(struct xdr_out *x, const struct nfs4_attr_source *src)

/* Attributes of the object. */
NFS4_ATTR_GETTER(type);
NFS4_ATTR_GETTER(acl);
NFS4_ATTR_GETTER(posix_default_acl);
NFS4_ATTR_GETTER(posix_access_acl);
NFS4_ATTR_GETTER(change);
NFS4_ATTR_GETTER(size);
NFS4_ATTR_GETTER(fsid);
NFS4_ATTR_GETTER(rdattr_error);
NFS4_ATTR_GETTER(filehandle);
NFS4_ATTR_GETTER(fileid);
NFS4_ATTR_GETTER(mode);
NFS4_ATTR_GETTER(numlinks);
NFS4_ATTR_GETTER(owner);
NFS4_ATTR_GETTER(owner_group);
NFS4_ATTR_GETTER(quota_avail_hard);
NFS4_ATTR_GETTER(quota_avail_soft);
NFS4_ATTR_GETTER(quota_used);
NFS4_ATTR_GETTER(rawdev);
NFS4_ATTR_GETTER(space_freed);
NFS4_ATTR_GETTER(space_used);
NFS4_ATTR_GETTER(sec_label);
NFS4_ATTR_GETTER(time_access);
NFS4_ATTR_GETTER(time_create);
NFS4_ATTR_GETTER(time_metadata);
NFS4_ATTR_GETTER(time_modify);
NFS4_ATTR_GETTER(mounted_on_fileid);

/* Attributes of its file system and of the server. */
NFS4_ATTR_GETTER(supported_attrs);
NFS4_ATTR_GETTER(suppattr_exclcreat);
NFS4_ATTR_GETTER(aclsupport);
NFS4_ATTR_GETTER(acl_trueform);
NFS4_ATTR_GETTER(acl_trueform_scope);
NFS4_ATTR_GETTER(zero); /* 0 as uint32_t, or false */
NFS4_ATTR_GETTER(true);
NFS4_ATTR_GETTER(links);
NFS4_ATTR_GETTER(case_insensitive);
NFS4_ATTR_GETTER(lease_time);
NFS4_ATTR_GETTER(fs_locations);
NFS4_ATTR_GETTER(files_avail);
NFS4_ATTR_GETTER(files_free);
NFS4_ATTR_GETTER(files_total);
NFS4_ATTR_GETTER(maxfilesize);
NFS4_ATTR_GETTER(maxlink);
NFS4_ATTR_GETTER(maxname);
NFS4_ATTR_GETTER(maxio);
NFS4_ATTR_GETTER(space_avail);
NFS4_ATTR_GETTER(space_free);
NFS4_ATTR_GETTER(space_total);
NFS4_ATTR_GETTER(time_delta);
NFS4_ATTR_GETTER(fs_charset_cap);
NFS4_ATTR_GETTER(clone_blksize);
NFS4_ATTR_GETTER(change_attr_type);
NFS4_ATTR_GETTER(xattr_support);
NFS4_ATTR_GETTER(open_arguments);

#endif
