/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that the server under test exports: a small tmpfs in a mount namespace of this process.
 * No file outside of it can be reached, its disk can get full, and it goes with the process,
 * however that ends.
 */
#ifndef RN_TESTS_FUZZ_SESSION_TREE_H
#define RN_TESTS_FUZZ_SESSION_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define SS_BASE "/mnt"
#define SS_LATE_DIR SS_BASE "/late" /* an export on which another file system is mounted at times */
/* An export with crossmnt; another file system is mounted below it, at SS_SUB_DIR. */
#define SS_CROSS_DIR SS_BASE "/cross"
#define SS_SUB_DIR SS_CROSS_DIR "/sub"
#define SS_DISK_DIR SS_BASE "/disk"
#define SS_KRB_DIR SS_BASE "/krb" /* for krb5p alone, but for the driver's own network */
#define SS_TLS_DIR SS_BASE "/tls" /* for TLS alone, likewise */
#define SS_IDMAP_FILE SS_BASE "/idmapd.conf"
#define SS_LEASED_FILE SS_BASE "/rw/leased"

/* Networks of the clients, beside the admitted 127.0.1.0/24: */
#define SS_NET_READ_ONLY "127.0.2.0/24"
#define SS_NET_SQUASHED "127.0.4.0/24" /* root is squashed; 127.0.3.0/24 is in no export */

/* Names of files in SS_KRB_DIR and SS_TLS_DIR, and what is in them. */
#define SS_KRB_NAME "ringnfs-for-krb5p-alone"
#define SS_TLS_NAME "ringnfs-for-tls-alone"

/* Contents of two files of mode 0600; only root and their owner may read it. */
#define SS_SECRET "ringnfs: nobody's but mine\n"

/* Makes the namespace and mounts. NULL, or the reason why that failed. */
const char *ss_tree_mount(void);
/* Restores the tree's first state. True if something had changed, so that handles are new. anew: the
 * objects are made anew in any case. */
bool ss_tree_reset(bool anew);
/* Makes one of several changes, as a local user might. */
void ss_tree_change(unsigned which);

/* True if mode, owner and data of the secret's files are unchanged, so that the users who may read
 * them are known. */
bool ss_tree_secret_is_kept(void);
/* A file is about to be copied: the users who may read a copy of the secret are not known. False: a
 * copy in another file system would outlast the tree, and must not be made. */
bool ss_tree_may_copy(int from, int to);
/* Times of the empty private file, as the verifier of an EXCLUSIVE create. */
uint64_t ss_tree_exclusive(void);

/* Path of an object in an export that all may only read, if it is not what it was at the start; else NULL. */
const char *ss_tree_changed_read_only(void);

/* Writes the exports file. variant 0: as at the start; others omit some hosts. */
void ss_tree_exports(unsigned variant);
/* Makes the file at path take all free space of its file system, or none. */
void ss_tree_fill(const char *path, bool full);
/* Fills the tree's own file system, or frees it. */
void ss_tree_full(bool full);

#endif
