/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeds with calls under RPCSEC_GSS and TLS. */
#include <stdio.h>
#include <string.h>

#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/sealed.h"
#include "tests/fuzz/session/seed.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"

#define MANY_TIME 6u   /* SS_TIME: 400 seconds, more than a short ticket has */
#define MUTUAL 0x50u   /* a good certificate, and the name of the protocol */
#define STRANGER 0x20u /* a certificate that nobody trusts */

static void context(uint8_t conn, uint8_t k, uint8_t what, uint8_t who)
{
	seed_add(SS_GSS, conn, (uint8_t)(k | what << 2 | who << 4));
}

/* service 0: calls are no longer sealed. */
static void seal(uint8_t conn, uint8_t k, uint8_t service, uint8_t spoil, uint8_t number)
{
	uint8_t *data = seed_add(SS_SEAL, conn, (uint8_t)(k | service << 2 | spoil << 4));

	data[0] = 5;
	data[1] = 9;
	data[2] = number;
	seed_set_len(3);
}

static void listing(uint8_t conn, unsigned handle)
{
	seed_set_len(ss_template_readdir(seed_add(SS_RECORD, conn, 0), handle, true, false, 4096));
	seed_add(SS_WAIT, conn, 0);
}

static void reading(uint8_t conn, unsigned handle, uint32_t count)
{
	seed_set_len(ss_template_read(seed_add(SS_RECORD, conn, 0), handle, 0, count));
}

/* Each service, over both transports, with short and long data. */
static void services(void)
{
	char name[32];

	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA)
		for (uint8_t service = 1; service <= 3; service++) {
			context(0, 0, SS_GSS_MAKE, service % 4);
			seal(conn, 0, service, SS_WHOLE, 0);
			seed_record(conn, "GETATTR", 0);
			seed_record(conn, "WRITE", 0);
			reading(conn, SS_FH_BIG, 65536);
			reading(conn, SS_FH_SECRET, 2000);
			listing(conn, SS_FH_RO_MANY);
			listing(conn, SS_FH_KRB);
			reading(conn, SS_FH_NEW, 100);
			seal(conn, 0, 0, SS_WHOLE, 0);
			reading(conn, SS_FH_NEW, 100);
			listing(conn, SS_FH_KRB);
			context(0, 0, SS_GSS_DESTROY, SS_WHOLE);
			seal(conn, 0, service, SS_WHOLE, 0);
			seed_record(conn, "GETATTR", 0);
			snprintf(name, sizeof(name), "gss-%s-%u", conn ? "rdma" : "tcp", service);
			seed_write(name);
		}
}

/* Replies of many lengths under each cipher, whose tokens grow in different ways. */
static void ciphers(void)
{
	char name[32];

	for (uint8_t who = 0; who < 4; who++) {
		context(0, 0, SS_GSS_MAKE, who);
		seal(0, 0, 3, SS_WHOLE, 0);
		seed_record(0, "GETATTR", 0);
		for (uint32_t count = 1; count <= 65536; count *= 4)
			reading(0, SS_FH_BIG, count + count / 2);
		snprintf(name, sizeof(name), "gss-cipher-%u", who);
		seed_write(name);
	}
}

/* Each defect of a call, and each choice of its number. */
static void defects(void)
{
	char name[32];

	for (uint8_t spoil = 1; spoil < SS_SPOILS; spoil++) {
		context(0, 0, SS_GSS_MAKE, 0);
		context(1, 5 % 4, SS_GSS_MAKE, 1);
		for (uint8_t service = 1; service <= 3; service++) {
			seal(0, 0, service, spoil, 0);
			seed_record(0, "READ", 0);
			seed_record(0, "READ", 0);
			seed_add(SS_WAIT, 0, 0);
		}
		context(0, 0, SS_GSS_DESTROY, spoil);
		seed_record(0, "GETATTR", 0);
		snprintf(name, sizeof(name), "gss-defect-%u", spoil);
		seed_write(name);
	}
	context(0, 0, SS_GSS_MAKE, 0);
	for (uint8_t number = 7; number < 16; number++) {
		seal(number & 1, 0, 1 + number % 3, SS_WHOLE, number);
		seed_record(number & 1, "GETATTR", 0);
		seal(1, 0, 1, SS_WHOLE, 0);
		seed_record(1, "GETATTR", 0);
	}
	seed_write("gss-numbers");
	for (uint8_t value = 0; value < 4; value++) {
		context(0, 0, SS_GSS_SPOILT, 0);
		seed_data()[0] = 100;
		seed_data()[1] = value;
		seed_set_len(2);
		seed_add(SS_WAIT, 0, 0);
	}
	context(0, 0, SS_GSS_MAKE, 4); /* its ticket is under another key */
	seal(0, 0, 1, SS_WHOLE, 0);
	seed_record(0, "GETATTR", 0);
	seed_write("gss-tokens");
}

/* Contexts that end while calls are under way on several connections. */
static void ends(void)
{
	context(0, 0, SS_GSS_MAKE, 1);
	for (uint8_t conn = 0; conn < 3; conn++) {
		seal(conn, 0, 1 + conn, SS_WHOLE, 0);
		seed_set_len(ss_template_read(seed_add(SS_FLOOD, conn, 60), SS_FH_FILE, 0, 4096));
	}
	context(3, 0, SS_GSS_DESTROY, SS_WHOLE);
	for (uint8_t conn = 0; conn < 3; conn++)
		seed_set_len(ss_template_read(seed_add(SS_FLOOD, conn, 60), SS_FH_FILE, 0, 4096));
	seed_write("gss-destroyed-midway");

	context(0, 0, SS_GSS_MAKE, 1);
	context(0, 1, SS_GSS_MAKE, 0);
	for (uint8_t conn = 0; conn < 3; conn++) {
		seal(conn, conn == 2, 2, SS_WHOLE, 0);
		seed_set_len(ss_template_read(seed_add(SS_FLOOD, conn, 60), SS_FH_FILE, 0, 4096));
	}
	seed_add(SS_TIME, 0, MANY_TIME);
	for (uint8_t conn = 0; conn < 3; conn++)
		seed_set_len(ss_template_read(seed_add(SS_FLOOD, conn, 60), SS_FH_FILE, 0, 4096));
	seed_write("gss-expired-midway");

	context(0, 0, SS_GSS_MAKE, 0);
	seal(0, 0, 2, SS_WHOLE, 0);
	seed_record(0, "CREATE", 0);
	seed_add(SS_REPEAT, 0, 0);
	seed_add(SS_REPEAT, 0, 1);
	seed_add(SS_REPEAT, 0, 2);
	context(0, 0, SS_GSS_START, 2); /* in place of the first one */
	seed_record(0, "GETATTR", 0);
	seed_write("gss-replays");
}

/* NFSv4 clients of a principal, and another user who takes their ids. */
static void clients(void)
{
	char name[32];

	for (unsigned minor = 0; minor < 3; minor++) {
		context(0, 0, SS_GSS_MAKE, 0);
		context(0, 1, SS_GSS_MAKE, 1);
		seal(0, 0, 3, SS_WHOLE, 0);
		seed_begin_client(0, minor);
		seed_compound(0, "open", minor);
		seal(1, 1, 2, SS_WHOLE, 0);
		seed_compound(1, "close", minor);
		seed_compound(0, "close", minor);
		snprintf(name, sizeof(name), "gss-client-%u", minor);
		seed_write(name);
	}
}

static uint8_t *tls(uint8_t conn, uint8_t how)
{
	return seed_add(SS_TLS, conn, how);
}

static void tls_with(uint8_t conn, uint8_t how, const char *call)
{
	seed_set_len(ss_template(seed_template(call), tls(conn, how)));
}

static void sessions(void)
{
	char name[32];

	for (unsigned manners = 0; manners < 16; manners++) {
		tls(0, (uint8_t)(SS_TLS_WHOLE | manners << 4));
		seed_record(0, "GETATTR", 3);
		reading(0, SS_FH_BIG, 65536);
		listing(0, SS_FH_TLS);
		tls(0, SS_TLS_REKEY | 8);
		seed_record(0, "WRITE", 0);
		listing(1, SS_FH_TLS);
		snprintf(name, sizeof(name), "tls-manners-%u", manners);
		seed_write(name);
	}
	seed_record(0, "READ", 0);
	tls(0, SS_TLS_ASK);
	seed_add(SS_WAIT, 0, 0);
	for (unsigned i = 0; i < 4; i++) {
		tls(0, SS_TLS_FLY);
		seed_add(SS_ADMIN, 0, 1);
	}
	seed_record(0, "GETATTR", 0);
	seed_write("tls-by-flights");
}

static void breaches(void)
{
	static const uint8_t last[] = { SS_TLS_CLOSE, SS_TLS_RAW, SS_TLS_BENT, SS_TLS_BENT | 0xa8 };
	char name[32];

	for (unsigned i = 0; i < sizeof(last); i++) {
		tls(0, SS_TLS_WHOLE | MUTUAL);
		seed_record(0, "READ", 0);
		tls_with(0, last[i], "WRITE");
		seed_record(0, "GETATTR", 0);
		seed_record(1, "GETATTR", 0);
		snprintf(name, sizeof(name), "tls-breach-%u", i);
		seed_write(name);
	}
	tls(0, SS_TLS_ASK | 8);
	tls(1, SS_TLS_HELLO);
	tls(2, SS_TLS_WHOLE | STRANGER);
	tls(3, SS_TLS_ASK);
	seed_add(SS_WAIT, 3, 0);
	seed_record(3, "GETATTR", 0);
	seed_add(SS_RESET, 3, 0);
	seed_record(2, "GETATTR", 0);
	seed_write("tls-half");

	tls(0, SS_TLS_WHOLE);
	for (unsigned i = 0; i < 10; i++)
		tls(0, SS_TLS_REKEY | (i & 1) << 3);
	seed_write("tls-rekeys");

	tls(0, SS_TLS_WHOLE | MUTUAL);
	context(0, 0, SS_GSS_MAKE, 0);
	seal(0, 0, 3, SS_WHOLE, 0);
	seed_record(0, "WRITE", 0);
	listing(0, SS_FH_TLS);
	listing(0, SS_FH_KRB);
	seal(1, 0, 3, SS_WHOLE, 0);
	listing(1, SS_FH_TLS);
	seed_add(SS_SHUT, 0, 0);
	seed_write("tls-and-gss");
}

void seed_secure(void)
{
	services();
	ciphers();
	defects();
	ends();
	clients();
	sessions();
	breaches();
}
