/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files, shares and locks as an administrator is shown them. Nothing here waits for a file system or for a
 * caller that does: a lock that is not had soon is answered as unknown.
 */
#ifndef RN_VFS_VIEW_H
#define RN_VFS_VIEW_H

#include "vfs/lock.h"
#include "vfs/share.h"

#define VFS_VIEW_PATH_MAX (2u * 4096u) /* an export's path and one below it */

struct vfs_view_path {
	char text
		[VFS_VIEW_PATH_MAX]; /* path on the server without symbolic links; empty: not known */
	bool removed;		     /* the file has no link left; text is its last one */
};

/* Exports in force. */
struct vfs_view_exports {
	struct vfs_export *const *exp;
	size_t n;
};

/*
 * Path of the file f with the handle fh below exp, by which the kernel knows it at this moment. Not known are
 * files that no descriptor is open for, or that were opened by their handle alone. f and exp may be NULL. A file
 * that a local process has moved out of the export is shown as if it were below it.
 */
void vfs_view_path(const struct vfs_view_exports *all, struct vfs_export *exp,
		   const struct vfs_fh *fh, struct vfs_file *f, struct vfs_view_path *out);

/* The part of a handle that is the kernel's, of *len bytes: it names the file and is no secret. */
const uint8_t *vfs_view_handle(const struct vfs_fh *fh, uint32_t *len);
/* True if f is the file with that part of a handle, on that device (as statx(2) has it of the file). f may be NULL. */
bool vfs_view_is_file(const struct vfs_file *f, uint32_t dev_major, uint32_t dev_minor,
		      const uint8_t *part, uint32_t len);

/*
 * A search for the paths of files of which vfs_view_path() knows none. The kernel may still have a name in memory
 * that a handle leads to. Once the files are added the search uses nothing else of the server, so that a file system
 * which does not answer holds up nothing but the thread that runs it.
 */
struct vfs_view_search;

struct vfs_view_search *vfs_view_search_new(void); /* NULL: no memory */
void vfs_view_search_free(struct vfs_view_search *s);
/* Adds the file with the handle fh below exp. Its number from 0 on, or -errno: it cannot be searched for. */
int vfs_view_search_add(struct vfs_view_search *s, struct vfs_export *exp, const struct vfs_fh *fh);
uint32_t vfs_view_search_count(const struct vfs_view_search *s);
/* Searches for one file: its path, which the caller frees, or NULL. May wait for the file system. */
char *vfs_view_search_run(const struct vfs_view_search *s, uint32_t number);

/* Access and deny bits of a share of f. False: not known now. The caller keeps f and s. */
bool vfs_view_share(struct vfs_file *f, const struct vfs_share *s, struct vfs_share_request *out);

#define VFS_VIEW_RANGES 64u

struct vfs_view_range {
	enum vfs_lock_type type;
	uint64_t offset, length; /* length UINT64_MAX: to the end of the file, whatever that is */
};

struct vfs_view_ranges {
	uint32_t total; /* ranges that the owner has locked */
	uint32_t n;	/* of these, those in range[]: the first ones */
	struct vfs_view_range range[VFS_VIEW_RANGES];
};

/* The ranges that an owner has locked of f. False: not known now. The caller keeps f and o. */
bool vfs_view_ranges(struct vfs_file *f, const struct vfs_lock_owner *o,
		     struct vfs_view_ranges *out);

#endif
