/* SPDX-License-Identifier: BSD-2-Clause */
/* Seeds in which the server calls its clients. */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/back.h"
#include "tests/fuzz/session/held.h"
#include "tests/fuzz/session/seed.h"
#include "tests/fuzz/session/step.h"

static void answer(uint8_t conn, unsigned how)
{
	seed_add(SS_ANSWER, conn, (uint8_t)how);
}

/* A client with a back channel, whose first callback is answered in this way, and a lock for which
 * another lock-owner waits. */
static void begin_back(uint8_t conn, unsigned minor, unsigned how)
{
	static const char *const first[] = { "exchange", "backsession", "reclaimed" };
	static const char *const then[] = { "open", "lock", "waits" };

	for (unsigned i = 0; i < rn_array_size(first); i++)
		seed_compound(conn, first[i], minor);
	answer(conn, how);
	for (unsigned i = 0; i < rn_array_size(then); i++)
		seed_compound(conn, then[i], minor);
}

/* Callbacks that are answered rightly, wrongly, too late, twice and not at all. */
static void callbacks(void)
{
	static const uint8_t junk[] = { 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0x90 };
	char name[32];

	for (unsigned rdma = 0; rdma < 2; rdma++) {
		const uint8_t conn = rdma ? RDMA : 0;

		for (unsigned kind = 0; kind <= SS_ANSWER_KIND; kind++) {
			begin_back(conn, 1 + kind % 2, SS_ANSWER_RIGHT);
			seed_compound(conn, "locked", 1 + kind % 2);
			answer(conn, kind | (kind % 4) << 4);
			seed_compound(conn, "backbind", 1 + kind % 2);
			seed_compound(conn, "reclaimed", 1 + kind % 2);
			answer(conn, SS_ANSWER_RIGHT);
			seed_compound(conn, "waits", 1 + kind % 2);
			seed_compound(conn, "close", 1 + kind % 2);
			answer(conn, SS_ANSWER_RIGHT);
			snprintf(name, sizeof(name), "%s-back-%02u", rdma ? "rdma" : "tcp", kind);
			seed_write(name);

			begin_back(conn, 1, kind | SS_ANSWER_AGAIN);
			answer(conn, SS_ANSWER_RIGHT | SS_ANSWER_AGAIN);
			answer(conn, SS_ANSWER_RIGHT);
			seed_compound(conn, "locked", 1);
			snprintf(name, sizeof(name), "%s-back-probe-%02u", rdma ? "rdma" : "tcp",
				 kind);
			seed_write(name);
		}
		begin_back(conn, 1, SS_ANSWER_RIGHT);
		seed_compound(conn, "locked", 1);
		memcpy(seed_add(SS_ANSWER, conn, SS_ANSWER_DATA), junk, sizeof(junk));
		seed_set_len(sizeof(junk));
		answer(conn, SS_ANSWER_RIGHT);
		seed_compound(conn, "backctl", 1);
		seed_write(rdma ? "rdma-back-junk" : "tcp-back-junk");

		/* Never answered; over a second connection after the first is lost; too late. */
		begin_back(conn, 1, SS_ANSWER_RIGHT);
		seed_compound(conn + 1, "backbind", 1);
		seed_compound(conn, "locked", 1);
		seed_add(SS_RESET, conn, 0);
		seed_compound(conn + 1, "reclaimed", 1);
		answer(conn + 1, SS_ANSWER_RIGHT);
		seed_compound(conn + 1, "unsession", 1);
		seed_compound(conn + 1, "unclient", 1);
		answer(conn + 1, SS_ANSWER_RIGHT);
		seed_write(rdma ? "rdma-back-lost" : "tcp-back-lost");

		begin_back(conn, 1, SS_ANSWER_RIGHT);
		seed_compound(conn, "locked", 1);
		seed_compound(conn, "unsession", 1);
		answer(conn, SS_ANSWER_RIGHT);
		begin_back(conn, 2, SS_ANSWER_DELAY);
		seed_add(SS_TIME, 0, 1);
		seed_compound(conn, "reclaimed", 2);
		seed_add(SS_CLOSE, conn, 0);
		seed_write(rdma ? "rdma-back-late" : "tcp-back-late");
	}
}

#define SECOND_CLIENT 0x80 /* SS_AS */

/* A client that can be called back, on one connection. */
static void begin_called(uint8_t conn, unsigned minor)
{
	static const char *const first[] = { "clientid", "confirm", "renew", "exchange",
					     "backsession" };

	for (unsigned i = 0; i < rn_array_size(first); i++)
		seed_compound(conn, first[i], minor);
	if (minor > 0)
		seed_compound(conn, "reclaimed", minor);
	answer(conn, SS_ANSWER_RIGHT);
}

/* A second client on another connection, which does something that needs the first one's
 * delegation back. */
static void begin_rival(uint8_t conn, unsigned minor)
{
	seed_add(SS_AS, conn, SECOND_CLIENT);
	seed_begin_client(conn, minor);
}

static void delegated(uint8_t conn, unsigned minor)
{
	begin_called(conn, minor);
	seed_compound(conn, "deleg", minor);
	seed_compound(conn, "delegconf", minor);
	seed_compound(conn, "deleg", minor);
	answer(conn, SS_ANSWER_RIGHT); /* a probe that was late */
}

/* Uses that recall a delegation: by another client, by NFSv3, by local processes. */
static void take_away(unsigned what, uint8_t conn, unsigned minor)
{
	static const char *const by_client[] = { "rival", "chmodfile", "removefile", "linkfile" };

	if (what < rn_array_size(by_client)) {
		begin_rival(conn, minor);
		seed_compound(conn, by_client[what], minor);
	} else if (what == 4) {
		seed_record(conn, "WRITE", 0);
	} else if (what == 5) {
		seed_record(conn, "REMOVE", 0);
	} else {
		seed_add(SS_LOCAL, 0, (uint8_t)(what - 6)); /* unlink, rename, truncate; chmod */
	}
}

#define TAKERS 10u

/* Recalls by everybody, after which the delegation is used and returned. */
static void recalls(void)
{
	char name[32];

	for (unsigned k = 0; k < 3 * TAKERS; k++) {
		const unsigned minor = k % 3, what = k / 3;
		/* Clients of 4.0 are called back over TCP. */
		const uint8_t conn = k % 2 && minor > 0 ? RDMA : 0;

		delegated(conn, minor);
		seed_compound(conn, "readdeleg", minor);
		take_away(what, 1, minor);
		answer(conn, SS_ANSWER_RIGHT);
		seed_compound(conn, minor && what % 2 ? "curfh" : "cur", minor);
		seed_compound(conn, "return", minor);
		seed_compound(conn, "return", minor);
		take_away(what < 4 ? 4 : what, 1, minor);
		snprintf(name, sizeof(name), "deleg-v4%u-%u", minor, what);
		seed_write(name);
	}
}

/* Recalls that are answered wrongly or not at all, so that delegations are revoked. */
static void revocations(void)
{
	char name[32];

	for (unsigned kind = 0; kind <= SS_ANSWER_KIND; kind++) {
		const unsigned minor = kind % 3;
		const uint8_t conn = kind % 2 && minor > 0 ? RDMA : 0;

		delegated(conn, minor);
		take_away(0, 1, minor);
		answer(conn, kind | (kind % 4) << 4);
		seed_add(SS_TIME, 0, 1); /* 45 seconds */
		seed_compound(conn, "readdeleg", minor);
		seed_compound(1, "rival", minor);
		answer(conn, kind | (kind & 1 ? SS_ANSWER_AGAIN : 0));
		seed_add(SS_TIME, 0, 1 | 1 << 3);
		seed_compound(conn, "renew", minor);
		seed_compound(conn, "reclaimed", minor);
		seed_add(SS_TIME, 0, 1 | 2 << 3);
		seed_compound(1, "rival", minor);
		seed_compound(conn, "readdeleg", minor);
		seed_compound(conn, "cur", minor);
		seed_compound(conn, "freedeleg", minor);
		seed_compound(conn, "deleg", minor);
		snprintf(name, sizeof(name), "deleg-revoked-%02u", kind);
		seed_write(name);
	}
}

/* Delegations of others; claims of earlier ones; wants; connections and sessions that go away. */
static void odd_delegations(void)
{
	static const char *const theirs[] = { "theirs", "readtheirs", "curtheirs", "purge" };
	char name[32];

	for (unsigned minor = 0; minor < 3; minor++) {
		delegated(0, minor);
		begin_rival(1, minor);
		seed_compound(1, "deleg", minor);
		for (unsigned i = 0; i < rn_array_size(theirs); i++)
			seed_compound(1, theirs[i], minor);
		seed_compound(0, "prev", minor);
		seed_compound(0, "wantprev", minor);
		seed_compound(0, "freedeleg", minor);
		seed_compound(0, "delegclose", minor);
		seed_compound(0, "want", minor);
		seed_compound(0, "purge", minor);
		seed_compound(0, "return", minor);
		snprintf(name, sizeof(name), "deleg-theirs-v4%u", minor);
		seed_write(name);

		delegated(0, minor);
		seed_add(SS_RESET, 0, 0);
		take_away(0, 1, minor);
		seed_compound(2, "reclaimed", minor);
		seed_compound(2, "backbind", minor);
		seed_add(SS_ADMIN, 0, 2);
		answer(2, SS_ANSWER_RIGHT);
		seed_compound(2, "return", minor);
		snprintf(name, sizeof(name), "deleg-lost-v4%u", minor);
		seed_write(name);

		delegated(0, minor);
		take_away(0, 1, minor);
		seed_compound(0, "clientid", minor);
		seed_compound(0, "confirm", minor);
		seed_compound(0, "unsession", minor);
		seed_compound(0, "unclient", minor);
		answer(0, SS_ANSWER_RIGHT);
		seed_compound(1, "rival", minor);
		snprintf(name, sizeof(name), "deleg-gone-v4%u", minor);
		seed_write(name);
	}
	for (unsigned what = 0; what < 2 * TAKERS; what++) {
		const unsigned minor = 1 + what % 2;
		const uint8_t conn = what % 2 ? RDMA : 0;

		begin_called(conn, minor);
		seed_compound(conn, "dirdeleg", minor);
		seed_compound(conn, "root", minor);
		take_away(what / 2, 1, minor);
		answer(conn, SS_ANSWER_RIGHT);
		seed_compound(conn, "dirreturn", minor);
		seed_compound(conn, "dirdeleg", minor);
		snprintf(name, sizeof(name), "deleg-dir-%02u", what);
		seed_write(name);
	}
}

/* Asynchronous copies: ended, asked for, cancelled, and their client gone. */
static void long_copies(void)
{
	static const char *const then[] = { "copying", "uncopy", "close", "unsession", "copyfar" };
	char name[32];

	for (unsigned i = 0; i < rn_array_size(then); i++) {
		const uint8_t conn = i % 2 ? RDMA : 0;

		begin_called(conn, 2);
		seed_compound(conn, "rival", 2);
		seed_compound(conn, "far", 2);
		seed_compound(conn, "copyfar", 2);
		seed_compound(conn, then[i], 2);
		answer(conn, i);
		seed_compound(conn, "copying", 2);
		answer(conn, SS_ANSWER_RIGHT);
		seed_compound(conn, "read", 2);
		if (i % 2)
			seed_add(SS_RESET, conn, 0);
		snprintf(name, sizeof(name), "copy-long-%u", i);
		seed_write(name);
	}
}

/* Attributes as the holder of a write delegation claims them. */
struct claim {
	uint8_t size, change, shape;
};

static void tell(uint8_t conn, const struct claim *c)
{
	uint8_t *data = seed_add(SS_ANSWER, conn, SS_ANSWER_RIGHT);

	data[0] = c->size;
	data[1] = c->change;
	data[2] = c->shape;
	seed_set_len(3);
}

/* A client with a write delegation, which has looked at the file itself, and another client. */
static void begin_held(uint8_t conn, unsigned minor)
{
	begin_called(conn, minor);
	seed_compound(conn, "rival", minor);
	answer(conn, SS_ANSWER_RIGHT); /* a probe that was late */
	seed_compound(conn, "look", minor);
	begin_rival(1, minor);
}

/* Another client asks for attributes, the holder answers. */
static void ask(uint8_t conn, const char *name, unsigned minor, const struct claim *c)
{
	char full[32];

	snprintf(full, sizeof(full), "%s-4.%u", name, minor);
	seed_record(1, full, 0);
	tell(conn, c);
	seed_add(SS_WAIT, 1, 0);
}

/* One claim, which is looked at and compared, then the truth. */
static void held_seed(const char *name, const struct claim *c, unsigned k)
{
	static const struct claim truth = { SS_SIZE_TRUE, SS_CHANGE_TRUE, SS_SHAPE_RIGHT };
	const unsigned minor = 1 + k % 2;
	const uint8_t conn = k % 2 ? RDMA : 0;

	begin_held(conn, minor);
	ask(conn, "look", minor, c);
	answer(conn, SS_ANSWER_RIGHT); /* the recall that follows nonsense */
	ask(conn, k % 3 ? "compare" : "differ", minor, c);
	ask(conn, "look", minor, &truth);
	seed_compound(conn, "return", minor);
	seed_compound(1, "look", minor);
	seed_write(name);
}

/* Claims about a file that is delegated to write: true ones, lies, and what is no answer. */
static void claims(void)
{
	char name[32];
	unsigned k = 0;

	for (uint8_t size = 0; size < SS_SIZES_HELD; size++) {
		for (uint8_t change = 0; change < SS_CHANGES_HELD; change++) {
			const struct claim c = { size, change, SS_SHAPE_RIGHT };

			snprintf(name, sizeof(name), "held-%u-%u", size, change);
			held_seed(name, &c, k++);
		}
	}
	for (uint8_t shape = 1; shape < SS_SHAPES_HELD; shape++) {
		const struct claim c = { SS_SIZE_ABOVE, SS_CHANGE_NEXT, shape };

		snprintf(name, sizeof(name), "held-shape-%02u", shape);
		held_seed(name, &c, k++);
	}
}

/* Several ask at once; the holder answers one, and none in time. */
static void crowd_asks(void)
{
	static const struct claim grown = { SS_SIZE_ABOVE, SS_CHANGE_NEXT, SS_SHAPE_RIGHT };

	begin_held(0, 1);
	for (unsigned i = 0; i < 4; i++)
		seed_record(1, i % 2 ? "differ-4.1" : "look-4.1", 0);
	tell(0, &grown);
	seed_record(1, "rival-4.1", 0);
	tell(0, &grown);
	seed_add(SS_TIME, 0, 2 | 3 << 3); /* nine seconds, three ticks */
	tell(0, &grown);
	seed_add(SS_WAIT, 1, 0);
	seed_compound(0, "return", 1);
	seed_write("held-crowd");
}

void seed_callbacks(void)
{
	callbacks();
	recalls();
	revocations();
	odd_delegations();
	long_copies();
	claims();
	crowd_asks();
}
