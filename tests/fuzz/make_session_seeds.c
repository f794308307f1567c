/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the seeds of fuzz_session: every procedure once by each transport, and sessions that do
 * what clients do with connections. make_session_seeds DIRECTORY (tests/fuzz/corpus/fuzz_session)
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/back.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"

#define RDMA SS_TCP_CONNS /* the first RDMA connection */
#define SIZE_4000 13
#define SIZE_4096 15
#define SIZE_64K 22
#define SIZE_1M 28

static struct {
	const char *dir;
	struct ss_step step[SS_STEPS_MAX];
	uint8_t data[SS_STEPS_MAX][SS_DATA_MAX];
	unsigned n;
	int err;
} seed;

static uint8_t *add(uint8_t op, uint8_t conn, uint8_t how)
{
	struct ss_step *s = &seed.step[seed.n];

	*s = (struct ss_step){ .op = op, .conn = conn, .how = how, .data = seed.data[seed.n] };
	return seed.data[seed.n++];
}

static void set_len(size_t len)
{
	seed.step[seed.n - 1].len = (uint16_t)len;
}

static void write_seed(const char *name)
{
	static uint8_t out[SS_INPUT_MAX];
	char path[1024];
	size_t size = ss_encode(seed.step, seed.n, out, sizeof(out));

	snprintf(path, sizeof(path), "%s/%s", seed.dir, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(out, 1, size, f) != size || fclose(f)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		seed.err = 1;
	}
	seed.n = 0;
}

static unsigned template_of(const char *name)
{
	for (unsigned i = 0; i < ss_template_count(); i++)
		if (!strcmp(ss_template_name(i), name))
			return i;
	return 0;
}

static void record(uint8_t conn, const char *name, uint8_t how)
{
	set_len(ss_template(template_of(name), add(SS_RECORD, conn, how)));
}

static void reading(uint8_t op, uint8_t conn, uint8_t how, uint32_t count)
{
	set_len(ss_template_read(add(op, conn, how), SS_FH_BIG, 0, count));
}

static void writing(uint8_t conn, uint8_t how, uint32_t stable, uint8_t size)
{
	set_len(ss_template_write(add(SS_RECORD, conn, how), SS_FH_FILE, 0, stable, size));
}

static void listing(uint8_t conn, bool plus, bool from_cookie)
{
	set_len(ss_template_readdir(add(SS_RECORD, conn, 0), SS_FH_RO_MANY, plus, from_cookie,
				    4096));
}

static void every_procedure(void)
{
	char name[64];

	for (unsigned i = 0; i < ss_template_count(); i++) {
		if (strstr(ss_template_name(i), "-4."))
			continue; /* compounds() writes these */
		for (unsigned rdma = 0; rdma < 2; rdma++) {
			set_len(ss_template(i, add(SS_RECORD, rdma ? RDMA : 0, 0)));
			add(SS_WAIT, rdma ? RDMA : 0, 0);
			snprintf(name, sizeof(name), "%s-%02u-%s", rdma ? "rdma" : "tcp", i,
				 ss_template_name(i));
			write_seed(name);
		}
	}
}

static void data_of_all_sizes(void)
{
	static const uint8_t sizes[] = { 0, 3, SIZE_4000, SIZE_4096, SIZE_64K, SIZE_1M };
	char name[64];

	for (unsigned i = 0; i < rn_array_size(sizes); i++) {
		for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
			reading(SS_RECORD, conn, 0, ss_sizes[sizes[i]]);
			writing(conn, 0, i % 3, sizes[i]);
			record(conn, "COMMIT", 0);
			snprintf(name, sizeof(name), "%s-data-%u", conn ? "rdma" : "tcp",
				 ss_sizes[sizes[i]]);
			write_seed(name);
		}
	}
}

static void directories(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		for (unsigned plus = 0; plus < 2; plus++) {
			listing(conn, plus, false);
			add(SS_WAIT, conn, 0);
			listing(conn, plus, true);
			add(SS_WAIT, conn, 0);
			listing(conn, plus, true);
			write_seed(conn	  ? plus ? "rdma-readdirplus" : "rdma-readdir"
				   : plus ? "tcp-readdirplus"
					  : "tcp-readdir");
		}
	}
}

static void streams(void)
{
	record(0, "GETATTR", 5);
	writing(0, 9 | SS_CUT_SLOWLY, 0, SIZE_64K);
	write_seed("stream-fragments");

	record(0, "GETATTR", SS_CUT_HELD);
	record(0, "LOOKUP", SS_CUT_HELD);
	record(0, "READ", SS_CUT_SLOWLY);
	write_seed("stream-together");

	record(0, "GETATTR", 0);
	writing(0, SS_CUT_SHORT, 2, SIZE_1M);
	add(SS_SHUT, 0, 0);
	record(1, "GETATTR", 0);
	write_seed("stream-cut-short");

	record(0, "FSINFO", 0);
	add(SS_SHUT, 0, 0);
	add(SS_WAIT, 0, 0);
	write_seed("stream-half-closed");

	memcpy(add(SS_RAW, 0, 0), "\xff\xff\xff\xff", 4);
	set_len(4);
	write_seed("stream-too-long");

	memcpy(add(SS_RAW, 0, 0), "\0\0\0\0\0\0\0\0\0\0\0\4\1\2\3\4\x80\0\0\4\0\0\0\1", 24);
	set_len(24);
	write_seed("stream-empty-fragments");
}

static void retransmissions(void)
{
	record(0, "CREATE", 0);
	add(SS_REPEAT, 0, 0);
	add(SS_REPEAT, 0, 1);
	add(SS_WAIT, 0, 0);
	add(SS_REPEAT, 0, 2);
	write_seed("retransmit-create");

	writing(0, 0, 2, SIZE_64K);
	add(SS_RESET, 0, 0);
	add(SS_REPEAT, 0, 0);
	add(SS_CLOSE, 0, 0);
	add(SS_REPEAT, 0, 0);
	write_seed("retransmit-after-reset");

	record(RDMA, "MKDIR", 0);
	add(SS_RESET, RDMA, 0);
	add(SS_REPEAT, RDMA, RDMA + 1);
	add(SS_REPEAT, RDMA, 0);
	write_seed("retransmit-rdma");
}

static void crowds(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		set_len(ss_template(template_of("NULL"), add(SS_FLOOD, conn, 150)));
		reading(SS_FLOOD, conn + 1, 40, 65536);
		record(conn, "GETATTR", 0);
		write_seed(conn ? "rdma-flood" : "tcp-flood");

		add(SS_CONNECT, conn, 1);
		add(SS_MUTE, conn, 0);
		reading(SS_FLOOD, conn, 60, 1 << 20);
		record(conn + 1, "READDIRPLUS", 0);
		add(SS_WAIT, conn + 1, 0);
		reading(SS_FLOOD, conn, 20, 1 << 20);
		add(SS_RESET, conn, 0);
		write_seed(conn ? "rdma-mute" : "tcp-mute");
	}
}

static void rdma_send(const struct ss_chunks *c, const uint8_t *msg, size_t len)
{
	set_len(ss_template_rdma(c, msg, len, add(SS_RAW, RDMA, 0)));
}

/* WRITE with its data in a Read chunk: the message keeps the data's length and omits the data. */
static size_t reduced_write(uint8_t *msg, uint8_t size)
{
	size_t len = ss_template_write(msg, SS_FH_FILE, 0, 2, size);

	ss_set_word(msg + len - 4, ss_sizes[size]); /* overwrites the mark of the data */
	return len;
}

static void rdma_chunks(void)
{
	uint8_t msg[SS_TEMPLATE_MAX];
	/* Position of WRITE's data behind a handle of 36 octets. */
	struct ss_chunks c = { .read = SIZE_64K, .read_position = 124 };

	rdma_send(&c, msg, reduced_write(msg, SIZE_64K));
	add(SS_REPEAT, RDMA, RDMA);
	write_seed("rdma-read-chunk");

	c = (struct ss_chunks){ .write = SIZE_64K };
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 1, 65535));
	/* the Write chunk is too short for the data */
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 1, 1 << 20));
	c.reply = SIZE_4096;
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 1, 65535));
	rdma_send(&c, msg, ss_template(template_of("GETATTR"), msg));
	write_seed("rdma-write-chunk");

	c = (struct ss_chunks){ .write = SIZE_4096 };
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_SECRET, 0, 2000));
	write_seed("rdma-write-secret");

	c = (struct ss_chunks){ .reply = SIZE_64K };
	rdma_send(&c, msg, ss_template_readdir(msg, SS_FH_RO_MANY, true, false, 65536));
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 0, 60000));
	c.reply = SIZE_4096;
	rdma_send(&c, msg, ss_template_readdir(msg, SS_FH_RO_MANY, true, false, 65536));
	write_seed("rdma-reply-chunk");

	c = (struct ss_chunks){ .read = SIZE_4096, .long_call = true, .reply = SIZE_4096 };
	record(RDMA, "SYMLINK", SS_CUT_HELD);
	rdma_send(&c, msg, ss_template(template_of("SYMLINK"), msg));
	c.read = 0;
	rdma_send(&c, msg, ss_template(template_of("SYMLINK"), msg));
	write_seed("rdma-position-zero");
}

/* Transport headers without a call, and calls with invalid transport headers. */
static void rdma_headers(void)
{
	uint8_t msg[SS_TEMPLATE_MAX];
	const struct ss_chunks none = { 0 };
	size_t len = ss_template(template_of("NULL"), msg);

	for (uint32_t proc = 2; proc < 6; proc++) {
		rdma_send(&none, msg, len);
		ss_set_word(seed.data[seed.n - 1] + 12, proc);
	}
	write_seed("rdma-procedures");

	rdma_send(&none, msg, len);
	ss_set_word(seed.data[seed.n - 1] + 4, 2);
	rdma_send(&none, msg, len);
	ss_set_word(seed.data[seed.n - 1] + 8, 0xffffffff);
	rdma_send(&none, msg, len);
	set_len(12);
	write_seed("rdma-versions");

	for (uint8_t manners = 0; manners < 64; manners += 9) {
		add(SS_CONNECT, RDMA, manners);
		record(RDMA, "GETATTR", 0);
		reading(SS_RECORD, RDMA, 0, 65536);
		writing(RDMA, 0, 1, SIZE_64K);
		add(manners & 1 ? SS_RESET : SS_CLOSE, RDMA, 0);
	}
	write_seed("rdma-manners");
}

/* Each fault of the fabric, with calls that read, write and list before and after it. */
static void faults(void)
{
	char name[32];

	for (uint8_t what = 0; what < 13; what++) {
		record(RDMA, "GETATTR", 0);
		add(SS_WAIT, RDMA, 0);
		add(SS_FAULT, 0, (uint8_t)(what | (what & 3) << 4));
		reading(SS_RECORD, RDMA, 0, 65536);
		writing(RDMA, 0, 2, SIZE_64K);
		listing(RDMA, true, false);
		record(RDMA + 1, "READ", 0);
		add(SS_WAIT, RDMA, 0);
		add(SS_CLOSE, RDMA, 0);
		record(RDMA, "GETATTR", 0);
		snprintf(name, sizeof(name), "fault-%02u", what);
		write_seed(name);
	}
}

static void changes_below(void)
{
	char name[32];

	for (uint8_t what = 0; what < 8; what++) {
		record(0, "READ", 0);
		record(1, "READDIRPLUS", 0);
		add(SS_LOCAL, 0, what);
		add(SS_ADMIN, 0, what);
		record(0, "READ", 0);
		record(0, "WRITE", 0);
		record(1, "LOOKUP", 0);
		record(2, "RENAME", 0);
		snprintf(name, sizeof(name), "local-%u", what);
		write_seed(name);
	}
}

/* Waits for each answer, because it holds ids and stateids for the next call. */
static void compound(uint8_t conn, const char *name, unsigned minor)
{
	char full[32];

	snprintf(full, sizeof(full), "%s-4.%u", name, minor);
	if (strcmp(ss_template_name(template_of(full)), full) != 0)
		return; /* not in this minor version */
	record(conn, full, 0);
	add(SS_WAIT, conn, 0);
}

static void begin_client(uint8_t conn, unsigned minor)
{
	static const char *const first[] = { "clientid", "confirm", "exchange", "session",
					     "reclaimed" };

	for (unsigned i = 0; i < rn_array_size(first); i++)
		compound(conn, first[i], minor);
}

/*
 * NLM locks that are taken, tested and released over both transports, and conflict with each other.
 */
static void locks(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		record(conn, "NLM4_LOCK", 0);
		add(SS_WAIT, conn, 0);
		record(conn + 1, "NLM4_TEST", 0);
		record(conn, "NLM4_NM_LOCK", 0);
		record(conn, "NLM4_CANCEL", 0);
		add(SS_REPEAT, conn, conn + 1);
		record(conn, "NLM4_UNLOCK", 0);
		add(SS_LOCAL, 0, 1);
		record(conn, "NLM4_LOCK", 0);
		add(SS_RESET, conn, 0);
		record(conn + 1, "NLM4_FREE_ALL", 0);
		write_seed(conn ? "rdma-nlm" : "tcp-nlm");
	}
}

static void compounds(void)
{
	static const char *const files[] = { "open",	"openconf",  "write",	 "writes",
					     "read",	"lock",	     "locked",	 "space",
					     "setattr", "downgrade", "hardlink", "stateids",
					     "close",	"release" };
	static const char *const names[] = { "root", "down",	 "attr",   "lookup",  "list",
					     "link", "readlink", "rename", "secinfo", "noname" };
	char name[32];

	for (unsigned k = 0; k < 6; k++) {
		uint8_t conn = k % 2 ? RDMA : 0;
		unsigned minor = k / 2;

		begin_client(conn, minor);
		for (unsigned i = 0; i < rn_array_size(files); i++)
			compound(conn, files[i], minor);
		snprintf(name, sizeof(name), "%s-v4%u-files", conn ? "rdma" : "tcp", minor);
		write_seed(name);

		begin_client(conn, minor);
		for (unsigned i = 0; i < rn_array_size(names); i++)
			compound(conn, names[i], minor);
		compound(conn, "bind", minor);
		compound(conn, "unsession", minor);
		compound(conn, "unclient", minor);
		snprintf(name, sizeof(name), "%s-v4%u-names", conn ? "rdma" : "tcp", minor);
		write_seed(name);

		/* State that outlives its connection, and calls over another connection. */
		begin_client(conn, minor);
		compound(conn, "open", minor);
		compound(conn, "lock", minor);
		record(conn, minor ? "write-4.1" : "write-4.0", 0);
		add(SS_RESET, conn, 0);
		add(SS_REPEAT, conn, conn + 1);
		add(SS_WAIT, conn + 1, 0);
		compound(conn + 1, "read", minor);
		compound(conn + 1, "renew", minor);
		snprintf(name, sizeof(name), "%s-v4%u-again", conn ? "rdma" : "tcp", minor);
		write_seed(name);
	}
}

static void answer(uint8_t conn, unsigned how)
{
	add(SS_ANSWER, conn, (uint8_t)how);
}

/* A client with a back channel, whose first callback is answered in this way, and a lock for which
 * another lock-owner waits. */
static void begin_back(uint8_t conn, unsigned minor, unsigned how)
{
	static const char *const first[] = { "exchange", "backsession", "reclaimed" };
	static const char *const then[] = { "open", "lock", "waits" };

	for (unsigned i = 0; i < rn_array_size(first); i++)
		compound(conn, first[i], minor);
	answer(conn, how);
	for (unsigned i = 0; i < rn_array_size(then); i++)
		compound(conn, then[i], minor);
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
			compound(conn, "locked", 1 + kind % 2);
			answer(conn, kind | (kind % 4) << 4);
			compound(conn, "backbind", 1 + kind % 2);
			compound(conn, "reclaimed", 1 + kind % 2);
			answer(conn, SS_ANSWER_RIGHT);
			compound(conn, "waits", 1 + kind % 2);
			compound(conn, "close", 1 + kind % 2);
			answer(conn, SS_ANSWER_RIGHT);
			snprintf(name, sizeof(name), "%s-back-%02u", rdma ? "rdma" : "tcp", kind);
			write_seed(name);

			begin_back(conn, 1, kind | SS_ANSWER_AGAIN);
			answer(conn, SS_ANSWER_RIGHT | SS_ANSWER_AGAIN);
			answer(conn, SS_ANSWER_RIGHT);
			compound(conn, "locked", 1);
			snprintf(name, sizeof(name), "%s-back-probe-%02u", rdma ? "rdma" : "tcp",
				 kind);
			write_seed(name);
		}
		begin_back(conn, 1, SS_ANSWER_RIGHT);
		compound(conn, "locked", 1);
		answer(conn, SS_ANSWER_DATA);
		memcpy(seed.data[seed.n - 1], junk, sizeof(junk));
		set_len(sizeof(junk));
		answer(conn, SS_ANSWER_RIGHT);
		compound(conn, "backctl", 1);
		write_seed(rdma ? "rdma-back-junk" : "tcp-back-junk");

		/* Never answered; over a second connection after the first is lost; too late. */
		begin_back(conn, 1, SS_ANSWER_RIGHT);
		compound(conn + 1, "backbind", 1);
		compound(conn, "locked", 1);
		add(SS_RESET, conn, 0);
		compound(conn + 1, "reclaimed", 1);
		answer(conn + 1, SS_ANSWER_RIGHT);
		compound(conn + 1, "unsession", 1);
		compound(conn + 1, "unclient", 1);
		answer(conn + 1, SS_ANSWER_RIGHT);
		write_seed(rdma ? "rdma-back-lost" : "tcp-back-lost");

		begin_back(conn, 1, SS_ANSWER_RIGHT);
		compound(conn, "locked", 1);
		compound(conn, "unsession", 1);
		answer(conn, SS_ANSWER_RIGHT);
		begin_back(conn, 2, SS_ANSWER_DELAY);
		add(SS_TIME, 0, 1);
		compound(conn, "reclaimed", 2);
		add(SS_CLOSE, conn, 0);
		write_seed(rdma ? "rdma-back-late" : "tcp-back-late");
	}
}

#define SECOND_CLIENT 0x80 /* SS_AS */

/* A client that can be called back, on one connection. */
static void begin_called(uint8_t conn, unsigned minor)
{
	static const char *const first[] = { "clientid", "confirm", "renew", "exchange",
					     "backsession" };

	for (unsigned i = 0; i < rn_array_size(first); i++)
		compound(conn, first[i], minor);
	if (minor > 0)
		compound(conn, "reclaimed", minor);
	answer(conn, SS_ANSWER_RIGHT);
}

/* A second client on another connection, which does something that needs the first one's
 * delegation back. */
static void begin_rival(uint8_t conn, unsigned minor)
{
	add(SS_AS, conn, SECOND_CLIENT);
	begin_client(conn, minor);
}

static void delegated(uint8_t conn, unsigned minor)
{
	begin_called(conn, minor);
	compound(conn, "deleg", minor);
	compound(conn, "delegconf", minor);
	compound(conn, "deleg", minor);
	answer(conn, SS_ANSWER_RIGHT); /* a probe that was late */
}

/* Uses that recall a delegation: by another client, by NFSv3, by local processes. */
static void take_away(unsigned what, uint8_t conn, unsigned minor)
{
	static const char *const by_client[] = { "rival", "chmodfile", "removefile", "linkfile" };

	if (what < rn_array_size(by_client)) {
		begin_rival(conn, minor);
		compound(conn, by_client[what], minor);
	} else if (what == 4) {
		record(conn, "WRITE", 0);
	} else if (what == 5) {
		record(conn, "REMOVE", 0);
	} else {
		add(SS_LOCAL, 0, (uint8_t)(what - 6)); /* unlink, rename, truncate; chmod */
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
		compound(conn, "readdeleg", minor);
		take_away(what, 1, minor);
		answer(conn, SS_ANSWER_RIGHT);
		compound(conn, minor && what % 2 ? "curfh" : "cur", minor);
		compound(conn, "return", minor);
		compound(conn, "return", minor);
		take_away(what < 4 ? 4 : what, 1, minor);
		snprintf(name, sizeof(name), "deleg-v4%u-%u", minor, what);
		write_seed(name);
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
		add(SS_TIME, 0, 1); /* 45 seconds */
		compound(conn, "readdeleg", minor);
		compound(1, "rival", minor);
		answer(conn, kind | (kind & 1 ? SS_ANSWER_AGAIN : 0));
		add(SS_TIME, 0, 1 | 1 << 3);
		compound(conn, "renew", minor);
		compound(conn, "reclaimed", minor);
		add(SS_TIME, 0, 1 | 2 << 3);
		compound(1, "rival", minor);
		compound(conn, "readdeleg", minor);
		compound(conn, "cur", minor);
		compound(conn, "freedeleg", minor);
		compound(conn, "deleg", minor);
		snprintf(name, sizeof(name), "deleg-revoked-%02u", kind);
		write_seed(name);
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
		compound(1, "deleg", minor);
		for (unsigned i = 0; i < rn_array_size(theirs); i++)
			compound(1, theirs[i], minor);
		compound(0, "prev", minor);
		compound(0, "wantprev", minor);
		compound(0, "freedeleg", minor);
		compound(0, "delegclose", minor);
		compound(0, "want", minor);
		compound(0, "purge", minor);
		compound(0, "return", minor);
		snprintf(name, sizeof(name), "deleg-theirs-v4%u", minor);
		write_seed(name);

		delegated(0, minor);
		add(SS_RESET, 0, 0);
		take_away(0, 1, minor);
		compound(2, "reclaimed", minor);
		compound(2, "backbind", minor);
		add(SS_ADMIN, 0, 2);
		answer(2, SS_ANSWER_RIGHT);
		compound(2, "return", minor);
		snprintf(name, sizeof(name), "deleg-lost-v4%u", minor);
		write_seed(name);

		delegated(0, minor);
		take_away(0, 1, minor);
		compound(0, "clientid", minor);
		compound(0, "confirm", minor);
		compound(0, "unsession", minor);
		compound(0, "unclient", minor);
		answer(0, SS_ANSWER_RIGHT);
		compound(1, "rival", minor);
		snprintf(name, sizeof(name), "deleg-gone-v4%u", minor);
		write_seed(name);
	}
	for (unsigned what = 0; what < 2 * TAKERS; what++) {
		const unsigned minor = 1 + what % 2;
		const uint8_t conn = what % 2 ? RDMA : 0;

		begin_called(conn, minor);
		compound(conn, "dirdeleg", minor);
		compound(conn, "root", minor);
		take_away(what / 2, 1, minor);
		answer(conn, SS_ANSWER_RIGHT);
		compound(conn, "dirreturn", minor);
		compound(conn, "dirdeleg", minor);
		snprintf(name, sizeof(name), "deleg-dir-%02u", what);
		write_seed(name);
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
		compound(conn, "rival", 2);
		compound(conn, "far", 2);
		compound(conn, "copyfar", 2);
		compound(conn, then[i], 2);
		answer(conn, i);
		compound(conn, "copying", 2);
		answer(conn, SS_ANSWER_RIGHT);
		compound(conn, "read", 2);
		if (i % 2)
			add(SS_RESET, conn, 0);
		snprintf(name, sizeof(name), "copy-long-%u", i);
		write_seed(name);
	}
}

#define OWNER 1 /* indexes of users[] in users.c */
#define OTHER 2
#define READ_ONLY 4 /* addresses as ss_tcp_open() takes them */
#define STRANGER 8
#define SQUASHED 12

/* Copies by one client; and by users who may not read the secret, or may make it known. */
static void copies(void)
{
	static const char *const files[] = { "open", "write", "copy",  "copydisk", "copyfrom",
					     "read", "lock",  "space", "copy",	   "close" };
	char name[32];

	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		begin_client(conn, 2);
		for (unsigned i = 0; i < rn_array_size(files); i++)
			compound(conn, files[i], 2);
		write_seed(conn ? "rdma-v42-copies" : "tcp-v42-copies");
	}
	for (uint8_t user = 0; user < 8; user++) {
		add(SS_AS, 0, user);
		add(SS_AS, 1, OTHER);
		begin_client(0, 2);
		compound(0, "open", 2);
		compound(0, "copysecret", 2);
		compound(0, "secret", 2);
		compound(1, "read", 2);
		compound(0, "close", 2);
		snprintf(name, sizeof(name), "user-%u-copies", user);
		write_seed(name);
	}
}

/* READ_PLUS and WRITE_SAME; also by users who may not read the secret. */
static void sparse(void)
{
	static const char *const files[] = { "open", "same",  "readplus", "lock",
					     "same", "space", "readplus", "close" };
	char name[32];

	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		begin_client(conn, 2);
		for (unsigned i = 0; i < rn_array_size(files); i++)
			compound(conn, files[i], 2);
		write_seed(conn ? "rdma-v42-sparse" : "tcp-v42-sparse");
	}
	for (uint8_t user = OWNER; user < 8; user++) {
		add(SS_AS, 0, user);
		begin_client(0, 2);
		compound(0, "secretplus", 2);
		snprintf(name, sizeof(name), "user-%u-sparse", user);
		write_seed(name);
	}
}

static void exclusive(uint8_t conn, bool new_name, uint8_t verifier)
{
	set_len(ss_template_exclusive(add(SS_RECORD, conn, 0), new_name, verifier));
	add(SS_WAIT, conn, 0);
}

/* One user's files and state, and another user who tries to use them. */
static void other_users(void)
{
	static const char *const theirs[] = { "opensecret", "secret", "read",	   "openconf",
					      "lock",	    "locked", "downgrade", "close",
					      "unsession",  "bind",   "reclaimed", "session",
					      "unclient",   "confirm" };
	char name[32];

	for (unsigned minor = 0; minor < 3; minor++) {
		for (uint8_t other = OTHER; other < 8; other++) {
			add(SS_AS, 0, OWNER);
			add(SS_AS, 1, other);
			begin_client(0, minor);
			compound(0, "open", minor);
			compound(0, "openconf", minor);
			compound(0, "opensecret", minor);
			for (unsigned i = 0; i < rn_array_size(theirs); i++)
				compound(1, theirs[i], minor);
			compound(0, "close", minor);
			snprintf(name, sizeof(name), "user-%u-v4%u", other, minor);
			write_seed(name);
		}
	}
	for (uint8_t other = 0; other < 8; other++) {
		add(SS_AS, 0, other);
		set_len(ss_template_read(add(SS_RECORD, 0, 0), SS_FH_SECRET, 0, 4096));
		record(0, "CREATE", 0);
		record(0, "SETATTR", 0);
		add(SS_CONNECT, 1, SQUASHED);
		add(SS_AS, 1, other);
		set_len(ss_template_read(add(SS_RECORD, 1, 0), SS_FH_SECRET, 0, 4096));
		record(1, "WRITE", 0);
		snprintf(name, sizeof(name), "user-%u-v3", other);
		write_seed(name);
	}
}

/* Extended attributes, by both transports; and those of a file that others may not read. */
static void xattrs(void)
{
	char name[32];

	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		begin_client(conn, 2);
		compound(conn, "open", 2);
		compound(conn, "xattr", 2);
		compound(conn, "unxattr", 2);
		compound(conn, "xattr", 2);
		write_seed(conn ? "rdma-xattr" : "tcp-xattr");
	}
	for (uint8_t other = OWNER; other < 8; other++) {
		add(SS_AS, 0, OWNER);
		add(SS_AS, 1, other);
		begin_client(0, 2);
		compound(0, "secretxattr", 2);
		begin_client(1, 2);
		compound(1, "secretxattr", 2);
		add(SS_CONNECT, 1, SQUASHED);
		begin_client(1, 2);
		compound(1, "secretxattr", 2);
		compound(1, "xattr", 2);
		snprintf(name, sizeof(name), "user-%u-xattr", other);
		write_seed(name);
	}
}

static void other_addresses(void)
{
	static const char *const calls[] = { "NULL",   "GETATTR", "WRITE",    "CREATE",
					     "REMOVE", "RENAME",  "NLM4_LOCK" };
	char name[32];

	for (uint8_t net = READ_ONLY; net <= SQUASHED; net += 4) {
		add(SS_CONNECT, 0, net);
		for (unsigned i = 0; i < rn_array_size(calls); i++) {
			record(0, calls[i], 0);
			add(SS_WAIT, 0, 0);
		}
		writing(0, 0, 2, SIZE_64K);
		snprintf(name, sizeof(name), "host-%u-v3", net);
		write_seed(name);
		for (unsigned minor = 0; minor < 3; minor++) {
			/* A host of another kind uses the state of an admitted client. */
			begin_client(1, minor);
			compound(1, "open", minor);
			add(SS_CONNECT, 0, net);
			compound(0, "root", minor);
			compound(0, "write", minor);
			compound(0, "rename", minor);
			compound(0, "close", minor);
			compound(0, "unsession", minor);
			begin_client(0, minor);
			compound(0, "opensecret", minor);
			add(SS_REPEAT, 1, 0);
			snprintf(name, sizeof(name), "host-%u-v4%u", net, minor);
			write_seed(name);
		}
	}
	for (uint8_t variant = 1; variant < 4; variant++) {
		add(SS_CONNECT, 0,
		    (uint8_t)(variant == 1   ? 0
			      : variant == 2 ? READ_ONLY
					     : SQUASHED));
		begin_client(0, 1);
		compound(0, "open", 1);
		add(SS_HOSTS, 0, variant);
		compound(0, "read", 1);
		compound(0, "close", 1);
		record(0, "WRITE", 0);
		add(SS_HOSTS, 0, 0);
		compound(0, "root", 1);
		snprintf(name, sizeof(name), "host-former-%u", variant);
		write_seed(name);
	}
}

static void exclusives(void)
{
	char name[32];

	for (uint8_t verifier = 0; verifier < 4; verifier++) {
		add(SS_AS, 0, OWNER);
		add(SS_AS, 1, OTHER);
		exclusive(0, true, verifier);
		exclusive(0, true, verifier); /* a retransmission */
		exclusive(1, true, verifier); /* another user repeats it */
		exclusive(1, true, (uint8_t)(verifier + 1));
		exclusive(1, false, verifier); /* the file exists */
		add(SS_LOCAL, 0, 8);
		set_len(ss_template_read(add(SS_RECORD, 1, 0), SS_FH_PRIVATE, 0, 100));
		snprintf(name, sizeof(name), "exclusive-%u-v3", verifier);
		write_seed(name);
	}
	for (unsigned minor = 0; minor < 3; minor++) {
		add(SS_AS, 0, OTHER);
		begin_client(0, minor);
		compound(0, "exclusive", minor);
		add(SS_LOCAL, 0, 8);
		compound(0, "private", minor);
		add(SS_LOCAL, 0, 10);
		compound(0, "exclusive", minor);
		compound(0, "exclusive", minor);
		snprintf(name, sizeof(name), "exclusive-v4%u", minor);
		write_seed(name);
	}
}

/* Leases of local processes, and leases of NFSv4 clients that fell silent. */
static void leases(void)
{
	char name[32];

	for (unsigned minor = 0; minor < 3; minor++) {
		for (uint8_t type = 0; type < 2; type++) {
			begin_client(0, minor);
			add(SS_LEASE, 0, type);
			compound(0, "leased", minor);
			compound(0, "readleased", minor);
			set_len(ss_template_read(add(SS_RECORD, 1, 0), SS_FH_LEASED, 0, 100));
			set_len(ss_template_write(add(SS_RECORD, 1, 0), SS_FH_LEASED, 0, 0, 3));
			add(SS_WAIT, 1, 0);
			add(SS_LEASE, 0, 2);
			compound(0, "leased", minor);
			add(SS_LEASE, 0, 3);
			snprintf(name, sizeof(name), "lease-%u-v4%u", type, minor);
			write_seed(name);
		}
		for (uint8_t time = 3; time < 8; time++) {
			begin_client(0, minor);
			compound(0, "open", minor);
			compound(0, "openconf", minor);
			compound(0, "lock", minor);
			add(SS_TIME, 0, (uint8_t)(time | 2 << 3));
			compound(0, "locked", minor);
			record(1, "NLM4_LOCK", 0);
			add(SS_AS, 1, OTHER);
			begin_client(1, minor);
			compound(1, "open", minor);
			compound(0, "close", minor);
			snprintf(name, sizeof(name), "expired-%u-v4%u", time, minor);
			write_seed(name);
		}
	}
}

static void mounts(void)
{
	for (unsigned sub = 0; sub < 2; sub++) {
		unsigned fh = sub ? SS_FH_CROSS : SS_FH_LATE;

		for (uint8_t what = 0; what < 2; what++) {
			set_len(ss_template_readdir(add(SS_RECORD, 0, 0), fh, true, false, 4096));
			add(SS_MOUNT, 0, (uint8_t)(2 * sub));
			set_len(ss_template_readdir(add(SS_RECORD, 0, 0), fh, true, false, 4096));
			record(1, "READDIRPLUS", 0);
			add(SS_MOUNT, 0, (uint8_t)(what ? 4 : 1 + 2 * sub));
			set_len(ss_template_readdir(add(SS_RECORD, 0, 0), fh, true, false, 4096));
			add(SS_MOUNT, 0, (uint8_t)(2 * sub));
			begin_client(0, 1);
			compound(0, "down", 1);
			write_seed(sub	  ? what ? "mount-sub-busy" : "mount-sub"
				   : what ? "mount-late-stays"
					  : "mount-late");
		}
	}
}

static void disks(void)
{
	char name[32];

	for (uint8_t what = 0; what < 7; what++) {
		begin_client(0, 1);
		add(SS_DISK, 0, what);
		set_len(ss_template_write(add(SS_RECORD, 1, 0), SS_FH_DISK_FILE, 0, 0, SIZE_64K));
		set_len(ss_template_write(add(SS_RECORD, 1, 0), SS_FH_DISK_FILE, 65536, 2,
					  SIZE_64K));
		writing(1, 0, 2, SIZE_1M);
		record(1, "CREATE", 0);
		record(1, "COMMIT", 0);
		compound(0, "disk", 1);
		compound(0, "open", 1);
		add(SS_DISK, 0, 1);
		compound(0, "disk", 1);
		snprintf(name, sizeof(name), "disk-%u", what);
		write_seed(name);
	}
	for (uint8_t call = 0; call < 32; call += 3) {
		begin_client(0, 1);
		add(SS_DISK, 0, (uint8_t)(call << 3 | 7));
		compound(0, "open", 1);
		record(1, "WRITE", 0);
		record(1, "MKDIR", 0);
		record(1, "RENAME", 0);
		compound(0, "write", 1);
		compound(0, "rename", 1);
		snprintf(name, sizeof(name), "call-fails-%02u", call);
		write_seed(name);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	seed.dir = argv[1];
	every_procedure();
	data_of_all_sizes();
	directories();
	streams();
	retransmissions();
	crowds();
	rdma_chunks();
	rdma_headers();
	faults();
	changes_below();
	compounds();
	copies();
	sparse();
	callbacks();
	recalls();
	revocations();
	odd_delegations();
	long_copies();
	locks();
	other_users();
	xattrs();
	other_addresses();
	exclusives();
	leases();
	mounts();
	disks();
	return seed.err;
}
