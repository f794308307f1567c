/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/protection.h"

#include <string.h>

#include "daemon/admin/client_text.h"
#include "lib/util.h"

static void add_subject(json_t *row, const struct rpc_conn_view *v, struct tls_users *users)
{
	char user[TLS_USERS_TEXT_MAX];

	if (!v->subject[0])
		return;
	json_object_set_new(row, "subject", json_string(v->subject));
	if (users && tls_users_describe(users, v->user_found, user))
		json_object_set_new(
			row, "user",
			client_printable((const uint8_t *)user, (uint32_t)strlen(user)));
}

void protection_add_tls(json_t *row, const struct rpc_conn_view *v, struct tls_users *users)
{
	if (v->protection == RPC_PLAIN)
		return;
	json_object_set_new(row, "tls",
			    json_string(v->protection == RPC_MUTUAL_TLS ? "mtls" : "tls"));
	json_object_set_new(row, "encrypted_by", json_string(v->ktls ? "kernel" : "server"));
	if (!v->tls_version)
		return;
	json_object_set_new(row, "tls_version", json_string(v->tls_version));
	json_object_set_new(row, "cipher", json_string(v->tls_cipher));
	json_object_set_new(row, "alpn", v->tls_alpn ? json_string("sunrpc") : json_null());
	add_subject(row, v, users);
}

void protection_add_security(json_t *row, uint8_t secs)
{
	static const char *const names[] = { "none", "sys", "krb5", "krb5i", "krb5p" };
	json_t *list = json_array();

	for (unsigned i = 0; i < rn_array_size(names); i++)
		if (secs & 1u << i)
			json_array_append_new(list, json_string(names[i]));
	json_object_set_new(row, "security", list);
}
