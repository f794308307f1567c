/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses any octets as a map of certificates to users (tls.user_map). A map that is accepted has no root that was not
 * allowed and finds a line for the identity of each of its lines: that one, or an earlier one that fits as well.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/tls_users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const struct cfg_tls_users *users, const struct cfg_tls_user *u)
{
	static const enum rn_cert_kind kinds[] = { RN_CERT_DNS, RN_CERT_EMAIL, RN_CERT_URI };
	struct rn_certificate cert = { .nnames = 0 };

	if (strlen(u->id) > RN_CERT_NAME_MAX || (u->as == CFG_AS_NAME) != (u->name != NULL))
		abort();
	if (u->as == CFG_AS_NUMBER && !u->root && (u->uid == 0 || u->gid == 0))
		abort();
	if (u->kind == CFG_ID_SHA256) {
		if (strlen(u->id) != RN_CERT_SHA256_HEX)
			abort();
		memcpy(cert.sha256, u->id, sizeof(cert.sha256));
	} else if (u->kind != CFG_ID_ANY) {
		cert.nnames = 1;
		cert.names[0].kind = kinds[u->kind];
		snprintf(cert.names[0].text, sizeof(cert.names[0].text), "%s", u->id);
	}
	const struct cfg_tls_user *found = cfg_tls_users_find(users, &cert);

	if (!found || found->line > u->line)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfg_tls_users *users = NULL;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	const int rc = cfg_tls_users_parse("fuzz", (const char *)data, size, &diags, &users);

	if ((rc == 0) != (users != NULL) || (rc == 0) != (diags.errors == 0))
		abort();
	for (unsigned i = 0; users && i < users->n; i++)
		check_line(users, &users->lines[i]);
	cfg_tls_users_free(users);
	cfg_diags_free(&diags);
	return 0;
}
