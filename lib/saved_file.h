/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small files that the server keeps for its next run. A file is replaced whole: a crash at any step leaves the old bytes or the new ones under
 * its name, and once rn_file_replace() has returned 0 they are the new ones.
 *
 * All functions wait for the disk. They return 0 or -errno; -EIO, too, if the file system takes no bytes and tells no reason. Descriptors stay
 * the caller's, and so do bytes, of which len are written.
 */
#ifndef RN_LIB_SAVED_FILE_H
#define RN_LIB_SAVED_FILE_H

#include <stddef.h>

#define RN_FILE_NEW                                                                                \
	".new" /* suffix of the file that a replacement is written to; a crash leaves it behind */

/* Writes all bytes at the descriptor's position. Does not sync. */
int rn_write_all(int fd, const void *bytes, size_t len);
/*
 * Makes a file of mode 0600 in the directory dirfd, in place of one of that name, and syncs it, but not the directory: the caller gives it another
 * name. After an error there is no such file.
 */
int rn_file_make(int dirfd, const char *name, const void *bytes, size_t len);
/*
 * Replaces the file `name` of the directory dirfd: writes NAME.new, syncs it, renames it, and syncs the directory. After an error the old file is
 * there, unless it was the sync of the directory that failed: then it is the new one, which a crash may undo. One caller at a time for each
 * name. -ENAMETOOLONG: there is no room for the suffix.
 */
int rn_file_replace(int dirfd, const char *name, const void *bytes, size_t len);

#endif
