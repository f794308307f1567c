/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the software fabric, at either end of the connections: both ends are in this process.
 */
#ifndef RN_TESTS_FUZZ_SESSION_FAULTS_H
#define RN_TESTS_FUZZ_SESSION_FAULTS_H

/* Arms one fault, which happens once. Low four bits of how: which fault; high four bits: occasions
 * to let pass first. */
void ss_fault_arm(unsigned how);
/* Disarms faults that have not happened. */
void ss_faults_clear(void);

#endif
