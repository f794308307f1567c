/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the software fabric, at either end of the connections: both are in this process. */
#ifndef RN_TESTS_FUZZ_SESSION_FAULTS_H
#define RN_TESTS_FUZZ_SESSION_FAULTS_H

/* One fault that will happen once: which in the low four bits, at the how manieth occasion in the
 * others. */
void ss_fault_arm(unsigned how);
/* What has not happened will not. */
void ss_faults_clear(void);

#endif
