/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disks that fail: an ext4 in a sparse image, whose writes are lost while the tmpfs that holds it is
 * full; the tree's file system full; and system calls of the server that return an error. See
 * doc/design/durability.md for what holds all the same.
 */
#ifndef RN_TESTS_FUZZ_SESSION_DISK_H
#define RN_TESTS_FUZZ_SESSION_DISK_H

#include "tests/fuzz/session/message.h"

/* Before the server starts. NULL, or why there is no disk that fails; its export is there anyway. */
const char *ss_disk_start(void);
void ss_disk_step(unsigned how, uint16_t port, struct ss_values *v);
/* All disks are well again. */
void ss_disk_end(void);

/* Has the write verifier of an export where nothing was lost changed? fh: a file of it. */
void ss_disk_check_verifier(uint16_t port, const struct ss_fh *fh);
/* Another server: another verifier. */
void ss_disk_forget_verifier(void);

/* The next but how's call of the server that opens, makes, renames or removes something fails. */
void ss_errors_arm(unsigned how);
void ss_errors_end(void);
/* This thread's calls never fail. */
void ss_errors_spare_me(void);

#endif
