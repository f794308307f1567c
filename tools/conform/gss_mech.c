/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/gss_mech.h"

#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cf_login {
	gss_name_t service;
	gss_cred_id_t cred;
};

struct cf_mech {
	const struct cf_login *login;
	gss_ctx_id_t ctx;
	bool complete;
};

/* The library's words for a failure: of GSS-API, then of Kerberos. */
static void cf_mech_explain(char *why, size_t size, const char *call, OM_uint32 major,
			    OM_uint32 minor)
{
	static const int kinds[] = { GSS_C_GSS_CODE, GSS_C_MECH_CODE };
	size_t at = snprintf(why, size, "%s", call);

	for (int i = 0; i < 2; i++) {
		OM_uint32 ignored, more = 0;
		gss_buffer_desc text = GSS_C_EMPTY_BUFFER;

		gss_display_status(&ignored, i ? minor : major, kinds[i], (gss_OID)gss_mech_krb5,
				   &more, &text);
		if (at < size)
			at += snprintf(why + at, size - at, ": %.*s", (int)text.length,
				       (const char *)text.value);
		gss_release_buffer(&ignored, &text);
	}
}

static bool cf_mech_failed(struct cf_test *t, const char *expected, const char *call,
			   OM_uint32 major, OM_uint32 minor)
{
	char why[400];

	cf_mech_explain(why, sizeof(why), call, major, minor);
	return cf_fail(t, expected, "%s", why);
}

static gss_buffer_desc buffer(struct cf_bytes b)
{
	return (gss_buffer_desc){ .length = b.len, .value = b.data };
}

static void cf_mech_take_buffer(struct cf_test *t, gss_buffer_t from, struct cf_bytes *to)
{
	OM_uint32 ignored;

	to->len = from->length;
	to->data = cf_alloc_raw(t, to->len + 1);
	if (to->len)
		memcpy(to->data, from->value, to->len);
	gss_release_buffer(&ignored, from);
}

/* ---- the caller -------------------------------------------------------------------------------
 */

/* A first token needs a ticket for the service: the KDC is asked here, and never in a case. */
static OM_uint32 get_ticket(const struct cf_login *l, OM_uint32 *minor)
{
	gss_ctx_id_t ctx = GSS_C_NO_CONTEXT;
	gss_buffer_desc token = GSS_C_EMPTY_BUFFER;
	OM_uint32 ignored;

	OM_uint32 major = gss_init_sec_context(minor, l->cred, &ctx, l->service,
					       (gss_OID)gss_mech_krb5, GSS_C_MUTUAL_FLAG, 0, NULL,
					       GSS_C_NO_BUFFER, NULL, &token, NULL, NULL);
	gss_release_buffer(&ignored, &token);
	gss_delete_sec_context(&ignored, &ctx, GSS_C_NO_BUFFER);
	return major;
}

/* Tickets that the keytab gets stay in memory: the caller's own cache is left alone. */
static OM_uint32 cf_login_acquire(struct cf_login *l, const char *keytab, OM_uint32 *minor)
{
	gss_key_value_element_desc from[] = { { "client_keytab", keytab },
					      { "ccache", "MEMORY:rpcrdma-conform" } };
	gss_key_value_set_desc store = { .count = keytab ? 2 : 0, .elements = from };
	gss_OID_set_desc mechs = { .count = 1, .elements = (gss_OID)gss_mech_krb5 };

	return gss_acquire_cred_from(minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &mechs, GSS_C_INITIATE,
				     keytab ? &store : NULL, &l->cred, NULL, NULL);
}

struct cf_login *cf_login_new(const char *service, const char *keytab, char *why, size_t size)
{
	struct cf_login *l = calloc(1, sizeof(*l));
	gss_buffer_desc name = { .length = strlen(service), .value = (void *)service };
	const char *call = "the service's name";
	OM_uint32 minor, major;

	if (!l) {
		snprintf(why, size, "out of memory");
		return NULL;
	}
	major = gss_import_name(&minor, &name, GSS_C_NT_HOSTBASED_SERVICE, &l->service);
	if (!GSS_ERROR(major)) {
		call = keytab ? "the client's keytab" : "the ticket cache";
		major = cf_login_acquire(l, keytab, &minor);
	}
	if (!GSS_ERROR(major)) {
		call = "a ticket for the service";
		major = get_ticket(l, &minor);
	}
	if (!GSS_ERROR(major))
		return l;
	cf_mech_explain(why, size, call, major, minor);
	cf_login_free(l);
	return NULL;
}

void cf_login_free(struct cf_login *l)
{
	OM_uint32 ignored;

	if (!l)
		return;
	gss_release_name(&ignored, &l->service);
	gss_release_cred(&ignored, &l->cred);
	free(l);
}

/* ---- contexts ---------------------------------------------------------------------------------
 */

struct cf_mech *cf_mech_new(struct cf_test *t, const struct cf_login *l)
{
	struct cf_mech *m = cf_alloc(t, sizeof(*m));

	m->login = l;
	m->ctx = GSS_C_NO_CONTEXT;
	return m;
}

void cf_mech_free(struct cf_mech *m)
{
	OM_uint32 ignored;

	if (m->ctx)
		gss_delete_sec_context(&ignored, &m->ctx, GSS_C_NO_BUFFER);
}

bool cf_mech_complete(const struct cf_mech *m)
{
	return m->complete;
}

/* Without the library's own detection of replays, as RFC 2203 has its own (section 5.2.2). */
bool cf_mech_step(struct cf_test *t, struct cf_mech *m, struct cf_bytes in, struct cf_bytes *out)
{
	gss_buffer_desc given = buffer(in), token = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	OM_uint32 major =
		gss_init_sec_context(&minor, m->login->cred, &m->ctx, m->login->service,
				     (gss_OID)gss_mech_krb5, GSS_C_MUTUAL_FLAG, 0, NULL,
				     in.len ? &given : GSS_C_NO_BUFFER, NULL, &token, NULL, NULL);
	cf_mech_take_buffer(t, &token, out);
	if (GSS_ERROR(major))
		return cf_mech_failed(t, "a context", "gss_init_sec_context", major, minor);
	m->complete = !(major & GSS_S_CONTINUE_NEEDED);
	return true;
}

bool cf_mech_sign(struct cf_test *t, struct cf_mech *m, struct cf_bytes data, struct cf_bytes *mic)
{
	gss_buffer_desc given = buffer(data), got = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	OM_uint32 major = gss_get_mic(&minor, m->ctx, GSS_C_QOP_DEFAULT, &given, &got);
	cf_mech_take_buffer(t, &got, mic);
	return !GSS_ERROR(major) || cf_mech_failed(t, "a MIC", "gss_get_mic", major, minor);
}

bool cf_mech_wrap(struct cf_test *t, struct cf_mech *m, struct cf_bytes data,
		  struct cf_bytes *token)
{
	gss_buffer_desc given = buffer(data), got = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;

	OM_uint32 major = gss_wrap(&minor, m->ctx, 1, GSS_C_QOP_DEFAULT, &given, NULL, &got);
	cf_mech_take_buffer(t, &got, token);
	return !GSS_ERROR(major) ||
	       cf_mech_failed(t, "an encrypted message", "gss_wrap", major, minor);
}

bool cf_mech_verify(struct cf_test *t, struct cf_mech *m, struct cf_bytes data, struct cf_bytes mic,
		    const char *what)
{
	gss_buffer_desc given = buffer(data), sum = buffer(mic);
	OM_uint32 minor;

	OM_uint32 major = gss_verify_mic(&minor, m->ctx, &given, &sum, NULL);
	return !GSS_ERROR(major) || cf_mech_failed(t, what, "gss_verify_mic", major, minor);
}

bool cf_mech_unwrap(struct cf_test *t, struct cf_mech *m, struct cf_bytes token,
		    struct cf_bytes *data)
{
	gss_buffer_desc given = buffer(token), got = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	int encrypted = 0;

	OM_uint32 major = gss_unwrap(&minor, m->ctx, &given, &got, &encrypted, NULL);
	cf_mech_take_buffer(t, &got, data);
	if (GSS_ERROR(major))
		return cf_mech_failed(t, "results that can be decrypted (RFC 2203 5.3.3.2)",
				      "gss_unwrap", major, minor);
	return encrypted ||
	       cf_fail(t, "encrypted results (RFC 2203 5.3.3.2)", "they are in clear text");
}
