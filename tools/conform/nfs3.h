/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSv3 and MOUNT version 3 (RFC 1813): builders that put a call's arguments, decoders of the parts
 * that cases check, and whole operations for set-up. A builder returns the call ready to be sent or
 * changed.
 */
#ifndef RN_CONFORM_NFS3_H
#define RN_CONFORM_NFS3_H

#include "tools/conform/conform_call.h"

enum {
	CF3_NULL,
	CF3_GETATTR,
	CF3_SETATTR,
	CF3_LOOKUP,
	CF3_ACCESS,
	CF3_READLINK,
	CF3_READ,
	CF3_WRITE,
	CF3_CREATE,
	CF3_MKDIR,
	CF3_SYMLINK,
	CF3_MKNOD,
	CF3_REMOVE,
	CF3_RMDIR,
	CF3_RENAME,
	CF3_LINK,
	CF3_READDIR,
	CF3_READDIRPLUS,
	CF3_FSSTAT,
	CF3_FSINFO,
	CF3_PATHCONF,
	CF3_COMMIT
};
enum { CF3_OK = 0, CF3ERR_NOENT = 2, CF3ERR_EXIST = 17, CF3ERR_INVAL = 22, CF3ERR_STALE = 70 };
enum { CF3_UNSTABLE, CF3_DATA_SYNC, CF3_FILE_SYNC };
enum { CF3_UNCHECKED, CF3_GUARDED };

struct cf_call *cf3_new(struct cf_test *t, uint32_t proc); /* no arguments yet */
struct cf_call *cf3_null(struct cf_test *t);
struct cf_call *cf3_getattr(struct cf_test *t, const struct cf_fh *fh);
struct cf_call *cf3_setattr_mode(struct cf_test *t, const struct cf_fh *fh, uint32_t mode);
struct cf_call *cf3_lookup(struct cf_test *t, const struct cf_fh *dir, const char *name);
struct cf_call *cf3_read(struct cf_test *t, const struct cf_fh *fh, uint64_t off, uint32_t count);
/* data NULL: the data are left to the caller, who puts them or calls cf_reduce next. */
struct cf_call *cf3_write(struct cf_test *t, const struct cf_fh *fh, uint64_t off, uint32_t count,
			  const void *data);
struct cf_call *cf3_create(struct cf_test *t, const struct cf_fh *dir, const char *name,
			   uint32_t how);
struct cf_call *cf3_remove(struct cf_test *t, const struct cf_fh *dir, const char *name);
struct cf_call *cf3_rename(struct cf_test *t, const struct cf_fh *dir, const char *from,
			   const char *to);
struct cf_call *cf3_mkdir(struct cf_test *t, const struct cf_fh *dir, const char *name);
struct cf_call *cf3_rmdir(struct cf_test *t, const struct cf_fh *dir, const char *name);
struct cf_call *cf3_readdir(struct cf_test *t, const struct cf_fh *dir, uint32_t count);
struct cf_call *cf3_readdirplus(struct cf_test *t, const struct cf_fh *dir, uint32_t dircount,
				uint32_t maxcount);
struct cf_call *cf3_readlink(struct cf_test *t, const struct cf_fh *fh);
/* text NULL: left to the caller, as with cf3_write; len is its length. */
struct cf_call *cf3_symlink(struct cf_test *t, const struct cf_fh *dir, const char *name,
			    const char *text, uint32_t len);
struct cf_call *cf3_fsinfo(struct cf_test *t, const struct cf_fh *fh);
struct cf_call *cf_mount_null(struct cf_test *t);
struct cf_call *cf_mount_mnt(struct cf_test *t, const char *path);

void cf_put_fh(struct xdr_out *x, const struct cf_fh *fh);
void cf_get_fh(struct xdr_in *x, struct cf_fh *fh);

/* Reads the status word at the start of the results, which must be want. */
bool cf3_status(struct cf_test *t, struct cf_reply *r, uint32_t want);
void cf3_skip_post_attr(struct xdr_in *x);
void cf3_skip_wcc(struct xdr_in *x);

/* The results of READ after its status. data: address of the bytes if they came in the stream; if
 * they were reduced, the caller's window has them and inline_data is false. */
struct cf3_read_result {
	uint32_t count;
	bool eof;
	uint32_t data_len; /* the opaque's length word */
	const uint8_t *data;
};
bool cf3_read_result(struct cf_test *t, struct cf_reply *r, bool reduced,
		     struct cf3_read_result *out);

/* ---- whole operations for set-up: false gives the verdict ------------------------------------ */

/* Creates name in the scratch directory with size bytes of the pattern, or empties and refills. */
bool cf3_make_file(struct cf_test *t, const char *name, uint32_t size, struct cf_fh *fh);
bool cf3_make_dir(struct cf_test *t, const char *name, struct cf_fh *fh);
bool cf3_make_symlink(struct cf_test *t, const char *name, const char *text, struct cf_fh *fh);
/* Reads size bytes back inline or by a Write chunk and compares with data. */
bool cf3_file_is(struct cf_test *t, const struct cf_fh *fh, const void *data, uint32_t size);
bool cf3_file_size(struct cf_test *t, const struct cf_fh *fh, uint64_t *size);
/* Byte i of the pattern that cf3_make_file writes. */
uint8_t cf_pattern(uint32_t i);
void cf_fill_pattern(void *p, uint32_t from, uint32_t len);

#endif
