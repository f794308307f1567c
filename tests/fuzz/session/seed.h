/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes seeds of fuzz_session: steps are added one by one, then written as one file. */
#ifndef RN_TESTS_FUZZ_SESSION_SEED_H
#define RN_TESTS_FUZZ_SESSION_SEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RDMA SS_TCP_CONNS /* the first RDMA connection */

/* Directory of the seeds. */
void seed_begin(const char *dir);
/* Adds a step; returns the place of its data, SS_DATA_MAX octets. */
uint8_t *seed_add(uint8_t op, uint8_t conn, uint8_t how);
/* Data of the last step, and their length. */
uint8_t *seed_data(void);
void seed_set_len(size_t len);
/* Writes the steps, and begins the next seed. */
void seed_write(const char *name);
/* True if a seed could not be written. */
bool seed_failed(void);

unsigned seed_template(const char *name);
/* The call of that template. */
void seed_record(uint8_t conn, const char *name, uint8_t how);
/* Likewise a COMPOUND, if the minor version has it. Waits for the answer, because it holds ids and stateids for
 * the next call. */
void seed_compound(uint8_t conn, const char *name, unsigned minor);
/* A client of its own, without callbacks. */
void seed_begin_client(uint8_t conn, unsigned minor);

/* Sessions with callbacks, delegations and long copies (callback_seeds.c). */
void seed_callbacks(void);
/* Sessions by NFSv2, and by UDP (nfs2_seeds.c). */
void seed_nfs2(void);
/* Sessions with Kerberos and TLS (secure_seeds.c). */
void seed_secure(void);

#endif
