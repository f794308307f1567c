/* SPDX-License-Identifier: BSD-2-Clause */
/* The map from clients' certificates to users (tls.user_map), as it is in force. Thread-safe. */
#ifndef RN_DAEMON_TLS_SETUP_H
#define RN_DAEMON_TLS_SETUP_H

#include "conf/settings.h"
#include "lib/log.h"
#include "rpc/program.h"
#include "transport/tls/tls.h"

struct idmap;
struct tls_users;

/* Reads the file, whose name is borrowed. 0; -EINVAL, after messages, or another -errno. */
int tls_users_new(const char *file, struct idmap *idmap, const struct rn_logger *log,
		  struct tls_users **out);
void tls_users_free(struct tls_users *u); /* NULL is allowed */
/* Reads the file again. An error is logged, and the old map stays in force. */
int tls_users_reload(struct tls_users *u, const struct rn_logger *log);
unsigned tls_users_count(struct tls_users *u); /* lines */

/*
 * Puts the user of the connection's certificate into the credential of a call under AUTH_SYS or AUTH_NONE, which then
 * counts as AUTH_SYS. A certificate that no line fits, and one whose user the name service does not know, is
 * nobody's: it gets the id -1, which every export makes anonymous. 0, or -RN_EUNNAMED while the name service is being asked.
 */
int tls_users_identify(struct tls_users *u, struct rpc_request *req);

#define TLS_USERS_TEXT_MAX 272u /* bytes, with the NUL */

/* The user whom the map has for a certificate, as text: a name, "uid:gid", "@call" or "@nobody" as in the map. found is
 * rn_certificate.found. False: the map in force was not asked about that certificate yet. */
bool tls_users_describe(struct tls_users *u, uint64_t found, char text[TLS_USERS_TEXT_MAX]);

/* TLS as the settings have it. */

/* Reads the files. *out is NULL without tls.certificate. 0; or -errno, after a message. */
int tls_setup(const struct cfg_tls *set, struct rn_budget *budget, const struct rn_logger *log,
	      struct tls **out);
/* Reads the files again; if they are wrong, logs why, and the old ones stay in use. t may be NULL. */
void tls_setup_reload(struct tls *t, const struct rn_logger *log);

#endif
