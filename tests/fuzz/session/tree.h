/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that the server under test exports: a small tmpfs in a mount namespace of this process,
 * so that nothing outside is reached, a full disk is part of the game, and all of it goes with the
 * process, however that ends.
 */
#ifndef RN_TESTS_FUZZ_SESSION_TREE_H
#define RN_TESTS_FUZZ_SESSION_TREE_H

#include <stdbool.h>
#include <stdint.h>

#define SS_BASE "/mnt"
#define SS_LATE_DIR SS_BASE "/late" /* an export: another file system is mounted on it at times */
#define SS_CROSS_DIR                                                                               \
	SS_BASE "/cross" /* an export with crossmnt: the same below it, at SS_SUB_DIR */
#define SS_SUB_DIR SS_CROSS_DIR "/sub"
#define SS_DISK_DIR SS_BASE "/disk"
#define SS_LEASED_FILE SS_BASE "/rw/leased"

/* Networks of the clients: 127.0.1.0/24 is admitted, and these: */
#define SS_NET_READ_ONLY "127.0.2.0/24"
#define SS_NET_SQUASHED "127.0.4.0/24" /* root is nobody. 127.0.3.0/24 is in no line */

/* In two files of mode 0600; nobody else may ever be told. */
#define SS_SECRET "ringnfs: nobody's but mine\n"

/* Makes the namespace and mounts. NULL, or why it cannot be. */
const char *ss_tree_mount(void);
/* Brings the tree to its first state. True: something had changed, and handles are new. */
bool ss_tree_reset(void);
/* One of several changes that a local user might make. */
void ss_tree_change(unsigned which);

/* Has nobody changed mode, owner or data of the secret's files, so that who may read them is known? */
bool ss_tree_secret_is_kept(void);
/* The times of the empty one as the verifier of an EXCLUSIVE create. */
uint64_t ss_tree_exclusive(void);

/* Writes the exports file: 0 as it is at the start, else some hosts are in no line any more. */
void ss_tree_exports(unsigned variant);
/* A file at path takes all that is left of its file system, or nothing. */
void ss_tree_fill(const char *path, bool full);
/* The same of the tree's own. */
void ss_tree_full(bool full);

#endif
