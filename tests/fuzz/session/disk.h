/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disks that fail: an ext4 in a sparse image, which loses writes while the tmpfs below it is full;
 * the tree's file system full; and system calls of the server that return an error. See
 * doc/design/durability.md for the promises that must hold.
 */
#ifndef RN_TESTS_FUZZ_SESSION_DISK_H
#define RN_TESTS_FUZZ_SESSION_DISK_H

#include "tests/fuzz/session/message.h"

/* Call before the server starts. NULL, or the reason why there is no failing disk; its export
 * exists anyway. */
const char *ss_disk_start(void);
void ss_disk_step(unsigned how, uint16_t port, struct ss_values *v);
/* Repairs all disks. */
void ss_disk_end(void);

/*
 * A changed write verifier of an export that lost nothing is a finding. fh: a file of the export.
 */
void ss_disk_check_verifier(uint16_t port, const struct ss_fh *fh);
/* Call when the server restarts, which changes the verifier. */
void ss_disk_forget_verifier(void);

/* Makes one later system call of the server fail that opens, creates, renames or removes; how:
 * which one, and the number of calls to spare before. */
void ss_errors_arm(unsigned how);
void ss_errors_end(void);
/* Exempts the calling thread from failing calls. */
void ss_errors_spare_me(void);

#endif
