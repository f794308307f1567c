/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeds of NFSv2 with MOUNT 1 and 2, NFSACL 2 and NLM 1, over each transport, and of other calls by UDP. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/nfs2_calls.h"
#include "tests/fuzz/session/seed.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"

#define READ_ONLY 4u /* addresses, as for SS_CONNECT */
#define STRANGER 8u
#define SQUASHED 12u
#define OWNER 1u /* users.c */
#define OTHER 2u
#define TWICE 0x10u

/* seed_template() gives the first one for a name that there is not. */
static unsigned call_named(const char *name)
{
	const unsigned i = seed_template(name);

	if (strcmp(ss_template_name(i), name) != 0) {
		fprintf(stderr, "%s: no such call\n", name);
		exit(1);
	}
	return i;
}

static void datagram(uint8_t conn, const char *name, uint8_t how)
{
	seed_set_len(ss_template(call_named(name), seed_add(SS_DATAGRAM, conn, how)));
	seed_add(SS_WAIT, conn, 0);
}

/* A call by TCP, by UDP and by RDMA. */
static void every_call(void)
{
	char name[64];

	for (unsigned i = 0; i < ss_nfs2_call_count; i++) {
		seed_record(0, ss_nfs2_calls[i].name, 0);
		seed_add(SS_WAIT, 0, 0);
		datagram(1, ss_nfs2_calls[i].name, 0);
		seed_record(RDMA, ss_nfs2_calls[i].name, 0);
		snprintf(name, sizeof(name), "nfs2-%s", ss_nfs2_calls[i].name + 3);
		seed_write(name);
	}
}

/* All calls from hosts that may not make them, and by users who may not. */
static void from_others(void)
{
	static const struct {
		const char *name;
		uint8_t address, user;
	} who[] = {
		{ "read-only", READ_ONLY, 0 }, { "stranger", STRANGER, 0 },
		{ "squashed", SQUASHED, 0 },   { "other", 0, OTHER },
		{ "owner", 0, OWNER },
	};
	const unsigned half = (ss_nfs2_call_count + 1) / 2;
	char name[64];

	for (unsigned i = 0; i < sizeof(who) / sizeof(who[0]); i++)
		for (unsigned udp = 0; udp < 2; udp++)
			for (unsigned part = 0; part < 2; part++) {
				seed_add(SS_CONNECT, 0, who[i].address);
				seed_add(SS_AS, 0, who[i].user);
				for (unsigned k = part * half;
				     k < ss_nfs2_call_count && k < (part + 1) * half; k++)
					if (udp)
						datagram(0, ss_nfs2_calls[k].name, who[i].address);
					else
						seed_record(0, ss_nfs2_calls[k].name, 0);
				snprintf(name, sizeof(name), "nfs2-%s-%s-%u", who[i].name,
					 udp ? "udp" : "tcp", part);
				seed_write(name);
			}
}

/* A listing in parts, and one of a directory that changes. */
static void listings(void)
{
	for (unsigned udp = 0; udp < 2; udp++) {
		for (unsigned i = 0; i < 4; i++) {
			const char *call = i ? "v2-readdir-next" : "v2-readdir";

			if (udp) {
				datagram(0, call, 0);
			} else {
				seed_record(0, call, 0);
				seed_add(SS_WAIT, 0, 0);
			}
		}
		seed_write(udp ? "nfs2-listing-udp" : "nfs2-listing");
	}
}

/* Calls of other versions and programs, twice, by strangers too, and what is no call. */
static void datagrams(void)
{
	static const char *const calls[] = { "NULL",	  "GETATTR",	 "WRITE",
					     "CREATE",	  "READDIRPLUS", "MNT3_MNT",
					     "MNT3_DUMP", "MNT3_EXPORT", "MNT2_PATHCONF",
					     "NLM4_LOCK", "ACL3_GETACL", "RQUOTA1_GETQUOTA",
					     "root-4.0" };
	static const uint8_t from[] = { 0, READ_ONLY, STRANGER, SQUASHED };
	char name[64];

	for (unsigned i = 0; i < sizeof(from); i++) {
		for (unsigned k = 0; k < sizeof(calls) / sizeof(calls[0]); k++)
			datagram(0, calls[k], (uint8_t)(from[i] | TWICE));
		seed_set_len(
			ss_template_read(seed_add(SS_DATAGRAM, 1, from[i]), SS_FH_BIG, 0, 65536));
		seed_set_len(ss_template_write(seed_add(SS_DATAGRAM, 1, from[i]), SS_FH_BIG, 0, 2,
					       20)); /* 32768 octets */
		seed_set_len(ss_template_write(seed_add(SS_DATAGRAM, 1, from[i]), SS_FH_BIG, 0, 2,
					       21)); /* more than a call may have */
		seed_set_len(ss_template(0, seed_add(SS_DATAGRAM, 1, from[i] | SS_DATAGRAM_RAW)) /
			     2);
		seed_add(SS_REPEAT, 0, 2);
		snprintf(name, sizeof(name), "datagrams-%u", i);
		seed_write(name);
	}
	for (unsigned i = 0; i < 40; i++)
		seed_set_len(ss_template(seed_template("v2-read"),
					 seed_add(SS_DATAGRAM, (uint8_t)(i % SS_CONNS), 0x70)));
	seed_write("datagrams-many");
}

void seed_nfs2(void)
{
	every_call();
	from_others();
	listings();
	datagrams();
}
