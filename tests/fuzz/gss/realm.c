/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/gss/realm.h"

#include <gssapi/gssapi_ext.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/gss/der.h"

#define KVNO 2u
#define FAR_END 2114380800 /* 2037 */

static const char conf[] = "[libdefaults]\n default_realm = FUZZ\n dns_lookup_kdc = false\n"
			   " dns_lookup_realm = false\n dns_canonicalize_hostname = false\n"
			   " allow_weak_crypto = true\n clockskew = 60\n";

struct client {
	const char *name, *principal, *cache;
	krb5_enctype cipher;
	bool strict;
};

static const struct client clients[REALM_CLIENTS] = {
	{ "alice", "alice@FUZZ", "MEMORY:alice", ENCTYPE_AES256_CTS_HMAC_SHA1_96, true },
	{ "bob", "bob@FUZZ", "MEMORY:bob", ENCTYPE_AES128_CTS_HMAC_SHA256_128, true },
	{ "carol", "carol@FUZZ", "MEMORY:carol", ENCTYPE_ARCFOUR_HMAC, false },
	{ "dave", "dave@FUZZ", "MEMORY:dave", ENCTYPE_DES3_CBC_SHA1, false },
	{ "alice", "alice@FUZZ", "MEMORY:liar", ENCTYPE_AES256_CTS_HMAC_SHA1_96, true },
};

static struct {
	krb5_context krb;
	krb5_keytab keytab; /* keeps the keys in memory */
	krb5_keyblock key, wrong;
	krb5_principal service;
	gss_cred_id_t creds[REALM_CLIENTS];
	krb5_ccache caches[REALM_CLIENTS];
	gss_name_t target;
} realm;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "the realm of this test: %s\n", what);
	abort();
}

const char *realm_principal(unsigned who)
{
	return clients[who].principal;
}

bool realm_is_strict(unsigned who)
{
	return clients[who].strict;
}

/* The libraries' configuration, which outlives the call as a descriptor. */
static void configure(void)
{
	const int fd = memfd_create("krb5.conf", 0);
	char path[64];

	must(fd >= 0 && write(fd, conf, sizeof(conf) - 1) == (ssize_t)sizeof(conf) - 1, "memfd");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	setenv("KRB5_CONFIG", path, 1);
	setenv("KRB5RCACHENAME", "none:", 1);
}

static void make_keytab(void)
{
	krb5_keytab_entry e = { .vno = KVNO };

	must(!krb5_kt_resolve(realm.krb, REALM_KEYTAB, &realm.keytab), "keytab");
	must(!krb5_parse_name(realm.krb, REALM_SERVICE, &realm.service), "service");
	must(!krb5_c_make_random_key(realm.krb, ENCTYPE_AES256_CTS_HMAC_SHA1_96, &realm.key) &&
		     !krb5_c_make_random_key(realm.krb, ENCTYPE_AES256_CTS_HMAC_SHA1_96,
					     &realm.wrong),
	     "keys");
	e.principal = realm.service;
	e.key = realm.key;
	must(!krb5_kt_add_entry(realm.krb, realm.keytab, &e), "keytab entry");
}

/* The ticket of a client, in `out`. */
static void make_ticket(unsigned who, const krb5_keyblock *session, time_t end, struct der *out)
{
	static const struct der_name service = { "nfs", "server" };
	const krb5_keyblock *key = who == REALM_LIAR ? &realm.wrong : &realm.key;
	const struct der_name name = { clients[who].name, NULL };
	uint8_t secret[1024];
	char end_time[DER_TIME + 1];
	struct der part;
	struct tm tm;
	krb5_enc_data e = { .ciphertext = { .data = (char *)secret, .length = sizeof(secret) } };

	must(gmtime_r(&end, &tm) && strftime(end_time, sizeof(end_time), "%Y%m%d%H%M%SZ", &tm) > 0,
	     "time");
	der_enc_ticket_part(&part, "FUZZ", &name, session, end_time);
	krb5_data plain = { .data = (char *)part.buf + part.at,
			    .length = (unsigned)(sizeof(part.buf) - part.at) };

	must(!krb5_c_encrypt(realm.krb, key, KRB5_KEYUSAGE_KDC_REP_TICKET, NULL, &plain, &e),
	     "ticket");
	e.kvno = KVNO;
	der_ticket(out, "FUZZ", &service, &e);
}

/* The client's cache, with its ticket. */
static void make_cache(unsigned who, time_t end)
{
	krb5_creds creds = { .server = realm.service };
	krb5_keyblock session;
	struct der ticket;

	must(!krb5_c_make_random_key(realm.krb, clients[who].cipher, &session), "session key");
	make_ticket(who, &session, end, &ticket);
	must(!krb5_parse_name(realm.krb, clients[who].principal, &creds.client), "client");
	creds.keyblock = session;
	creds.times.authtime = creds.times.starttime = 1577836800; /* 2020 */
	creds.times.endtime = (krb5_timestamp)end;
	creds.ticket.data = (char *)ticket.buf + ticket.at;
	creds.ticket.length = (unsigned)(sizeof(ticket.buf) - ticket.at);
	must(!krb5_cc_resolve(realm.krb, clients[who].cache, &realm.caches[who]) &&
		     !krb5_cc_initialize(realm.krb, realm.caches[who], creds.client) &&
		     !krb5_cc_store_cred(realm.krb, realm.caches[who], &creds),
	     "cache");
	krb5_free_principal(realm.krb, creds.client);
	krb5_free_keyblock_contents(realm.krb, &session);
}

static void make_cred(unsigned who)
{
	gss_key_value_element_desc element = { .key = "ccache", .value = clients[who].cache };
	const gss_key_value_set_desc store = { .count = 1, .elements = &element };
	krb5_enctype cipher = clients[who].cipher;
	gss_OID_set_desc mechs = { 1, gss_mech_krb5 };
	OM_uint32 minor;

	must(!gss_acquire_cred_from(&minor, GSS_C_NO_NAME, GSS_C_INDEFINITE, &mechs, GSS_C_INITIATE,
				    &store, &realm.creds[who], NULL, NULL),
	     "credential");
	must(!gss_krb5_set_allowable_enctypes(&minor, realm.creds[who], 1, &cipher), "cipher");
}

void realm_init(void)
{
	gss_buffer_desc text = { strlen(REALM_SERVICE), (void *)(uintptr_t)REALM_SERVICE };
	OM_uint32 minor;

	configure();
	must(!krb5_init_context(&realm.krb), "libkrb5");
	make_keytab();
	for (unsigned i = 0; i < REALM_CLIENTS; i++) {
		make_cache(i, FAR_END);
		make_cred(i);
	}
	must(!gss_import_name(&minor, &text, GSS_KRB5_NT_PRINCIPAL_NAME, &realm.target), "target");
}

void realm_renew(unsigned who, unsigned seconds)
{
	OM_uint32 minor;

	gss_release_cred(&minor, &realm.creds[who]);
	must(!krb5_cc_close(realm.krb, realm.caches[who]), "cache");
	make_cache(who, time(NULL) + (time_t)seconds);
	make_cred(who);
}

bool realm_step(unsigned who, OM_uint32 flags, gss_ctx_id_t *ctx, const gss_buffer_desc *in,
		gss_buffer_desc *out)
{
	OM_uint32 minor, major;
	gss_buffer_desc none = GSS_C_EMPTY_BUFFER;

	if (in)
		none = *in;
	major = gss_init_sec_context(&minor, realm.creds[who], ctx, realm.target, gss_mech_krb5,
				     flags, 0, GSS_C_NO_CHANNEL_BINDINGS, &none, NULL, out, NULL,
				     NULL);
	return !GSS_ERROR(major);
}
