/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_SYSTEMD_RESOLVE_H
#define RN_SYSTEMD_RESOLVE_H

/*
* Resolves a cleaned absolute path to one without symbolic links; NULL: no memory. Mount units are named
 * after such paths. Only links of the file system that `root` is the top of are followed: others may not be mounted yet,
 * and one that does not answer would hold up the service manager. The path is left as it is from there on.
 */
char *resolve_path(int root, const char *path);

#endif
