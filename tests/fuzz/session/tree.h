/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that the server under test exports: a small tmpfs in a mount namespace of this process,
 * so that nothing outside is reached, a full disk is part of the game, and all of it goes with the
 * process, however that ends.
 */
#ifndef RN_TESTS_FUZZ_SESSION_TREE_H
#define RN_TESTS_FUZZ_SESSION_TREE_H

#include <stdbool.h>

#define SS_BASE "/mnt"

/* Makes the namespace and mounts. NULL, or why it cannot be. */
const char *ss_tree_mount(void);
/* Brings the tree to its first state. True: something had changed, and handles are new. */
bool ss_tree_reset(void);
/* One of several changes that a local user might make. */
void ss_tree_change(unsigned which);

#endif
