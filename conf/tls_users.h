/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The map from certificates to users (tls.user_map). A line is an identity and a user:
 *
 *   dns:NAME | email:ADDRESS | uri:URI | sha256:FINGERPRINT | *     NAME | UID:GID | @call | @nobody     [root]
 *
 * The first line that fits a certificate counts. A file with an error is refused as a whole.
 */
#ifndef RINGNFS_CONF_TLS_USERS_H
#define RINGNFS_CONF_TLS_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/diag.h"
#include "lib/certificate.h"

enum { CFG_TLS_USERS_MAX = 10000, CFG_TLS_USER_NAME_MAX = 255 };

enum cfg_tls_id { CFG_ID_DNS, CFG_ID_EMAIL, CFG_ID_URI, CFG_ID_SHA256, CFG_ID_ANY };

enum cfg_tls_as {
	CFG_AS_NAME,   /* a user of the name service */
	CFG_AS_NUMBER, /* uid and gid */
	CFG_AS_CALL,   /* users are those of the calls */
	CFG_AS_NOBODY, /* anonymous */
};

struct cfg_tls_user {
	unsigned line;
	enum cfg_tls_id kind;
	char *id; /* without its kind; "" of CFG_ID_ANY */
	enum cfg_tls_as as;
	char *name;	   /* of CFG_AS_NAME, or NULL */
	uint32_t uid, gid; /* of CFG_AS_NUMBER */
	bool root;	   /* the user may be root */
};

struct cfg_tls_users {
	unsigned n;
	struct cfg_tls_user *lines; /* in the order of the file */
};

/* 0 and the map; -EINVAL: messages in diags say why not; -ENOMEM. */
int cfg_tls_users_parse(const char *file, const char *text, size_t len, struct cfg_diags *diags,
			struct cfg_tls_users **out);
/* Like cfg_tls_users_parse(), for a file. */
int cfg_tls_users_load(const char *file, struct cfg_diags *diags, struct cfg_tls_users **out);
void cfg_tls_users_free(struct cfg_tls_users *users); /* NULL is allowed */

/* The first line that fits. NULL: none does. */
const struct cfg_tls_user *cfg_tls_users_find(const struct cfg_tls_users *users,
					      const struct rn_certificate *cert);

#endif
