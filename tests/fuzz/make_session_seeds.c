/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the seeds of fuzz_session: every procedure once by each transport, and sessions that do
 * what clients do with connections. make_session_seeds DIRECTORY (tests/fuzz/corpus/fuzz_session)
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/seed.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"

#define SIZE_4000 13
#define SIZE_4096 15
#define SIZE_64K 22
#define SIZE_1M 28

static void reading(uint8_t op, uint8_t conn, uint8_t how, uint32_t count)
{
	seed_set_len(ss_template_read(seed_add(op, conn, how), SS_FH_BIG, 0, count));
}

static void writing(uint8_t conn, uint8_t how, uint32_t stable, uint8_t size)
{
	seed_set_len(
		ss_template_write(seed_add(SS_RECORD, conn, how), SS_FH_FILE, 0, stable, size));
}

static void listing(uint8_t conn, bool plus, bool from_cookie)
{
	seed_set_len(ss_template_readdir(seed_add(SS_RECORD, conn, 0), SS_FH_RO_MANY, plus,
					 from_cookie, 4096));
}

static void every_procedure(void)
{
	char name[64];

	for (unsigned i = 0; i < ss_template_count(); i++) {
		if (strstr(ss_template_name(i), "-4.") || !strncmp(ss_template_name(i), "v2-", 3))
			continue; /* compounds() and seed_nfs2() write these */
		for (unsigned rdma = 0; rdma < 2; rdma++) {
			seed_set_len(ss_template(i, seed_add(SS_RECORD, rdma ? RDMA : 0, 0)));
			seed_add(SS_WAIT, rdma ? RDMA : 0, 0);
			snprintf(name, sizeof(name), "%s-%02u-%s", rdma ? "rdma" : "tcp", i,
				 ss_template_name(i));
			seed_write(name);
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
			seed_record(conn, "COMMIT", 0);
			snprintf(name, sizeof(name), "%s-data-%u", conn ? "rdma" : "tcp",
				 ss_sizes[sizes[i]]);
			seed_write(name);
		}
	}
}

static void directories(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		for (unsigned plus = 0; plus < 2; plus++) {
			listing(conn, plus, false);
			seed_add(SS_WAIT, conn, 0);
			listing(conn, plus, true);
			seed_add(SS_WAIT, conn, 0);
			listing(conn, plus, true);
			seed_write(conn	  ? plus ? "rdma-readdirplus" : "rdma-readdir"
				   : plus ? "tcp-readdirplus"
					  : "tcp-readdir");
		}
	}
}

static void streams(void)
{
	seed_record(0, "GETATTR", 5);
	writing(0, 9 | SS_CUT_SLOWLY, 0, SIZE_64K);
	seed_write("stream-fragments");

	seed_record(0, "GETATTR", SS_CUT_HELD);
	seed_record(0, "LOOKUP", SS_CUT_HELD);
	seed_record(0, "READ", SS_CUT_SLOWLY);
	seed_write("stream-together");

	seed_record(0, "GETATTR", 0);
	writing(0, SS_CUT_SHORT, 2, SIZE_1M);
	seed_add(SS_SHUT, 0, 0);
	seed_record(1, "GETATTR", 0);
	seed_write("stream-cut-short");

	seed_record(0, "FSINFO", 0);
	seed_add(SS_SHUT, 0, 0);
	seed_add(SS_WAIT, 0, 0);
	seed_write("stream-half-closed");

	memcpy(seed_add(SS_RAW, 0, 0), "\xff\xff\xff\xff", 4);
	seed_set_len(4);
	seed_write("stream-too-long");

	memcpy(seed_add(SS_RAW, 0, 0), "\0\0\0\0\0\0\0\0\0\0\0\4\1\2\3\4\x80\0\0\4\0\0\0\1", 24);
	seed_set_len(24);
	seed_write("stream-empty-fragments");
}

static void retransmissions(void)
{
	seed_record(0, "CREATE", 0);
	seed_add(SS_REPEAT, 0, 0);
	seed_add(SS_REPEAT, 0, 1);
	seed_add(SS_WAIT, 0, 0);
	seed_add(SS_REPEAT, 0, 2);
	seed_write("retransmit-create");

	writing(0, 0, 2, SIZE_64K);
	seed_add(SS_RESET, 0, 0);
	seed_add(SS_REPEAT, 0, 0);
	seed_add(SS_CLOSE, 0, 0);
	seed_add(SS_REPEAT, 0, 0);
	seed_write("retransmit-after-reset");

	seed_record(RDMA, "MKDIR", 0);
	seed_add(SS_RESET, RDMA, 0);
	seed_add(SS_REPEAT, RDMA, RDMA + 1);
	seed_add(SS_REPEAT, RDMA, 0);
	seed_write("retransmit-rdma");
}

static void crowds(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		seed_set_len(ss_template(seed_template("NULL"), seed_add(SS_FLOOD, conn, 150)));
		reading(SS_FLOOD, conn + 1, 40, 65536);
		seed_record(conn, "GETATTR", 0);
		seed_write(conn ? "rdma-flood" : "tcp-flood");

		seed_add(SS_CONNECT, conn, 1);
		seed_add(SS_MUTE, conn, 0);
		reading(SS_FLOOD, conn, 60, 1 << 20);
		seed_record(conn + 1, "READDIRPLUS", 0);
		seed_add(SS_WAIT, conn + 1, 0);
		reading(SS_FLOOD, conn, 20, 1 << 20);
		seed_add(SS_RESET, conn, 0);
		seed_write(conn ? "rdma-mute" : "tcp-mute");
	}
}

static void rdma_send(const struct ss_chunks *c, const uint8_t *msg, size_t len)
{
	seed_set_len(ss_template_rdma(c, msg, len, seed_add(SS_RAW, RDMA, 0)));
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
	seed_add(SS_REPEAT, RDMA, RDMA);
	seed_write("rdma-read-chunk");

	c = (struct ss_chunks){ .write = SIZE_64K };
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 1, 65535));
	/* the Write chunk is too short for the data */
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 1, 1 << 20));
	c.reply = SIZE_4096;
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 1, 65535));
	rdma_send(&c, msg, ss_template(seed_template("GETATTR"), msg));
	seed_write("rdma-write-chunk");

	c = (struct ss_chunks){ .write = SIZE_4096 };
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_SECRET, 0, 2000));
	seed_write("rdma-write-secret");

	c = (struct ss_chunks){ .reply = SIZE_64K };
	rdma_send(&c, msg, ss_template_readdir(msg, SS_FH_RO_MANY, true, false, 65536));
	rdma_send(&c, msg, ss_template_read(msg, SS_FH_BIG, 0, 60000));
	c.reply = SIZE_4096;
	rdma_send(&c, msg, ss_template_readdir(msg, SS_FH_RO_MANY, true, false, 65536));
	seed_write("rdma-reply-chunk");

	c = (struct ss_chunks){ .read = SIZE_4096, .long_call = true, .reply = SIZE_4096 };
	seed_record(RDMA, "SYMLINK", SS_CUT_HELD);
	rdma_send(&c, msg, ss_template(seed_template("SYMLINK"), msg));
	c.read = 0;
	rdma_send(&c, msg, ss_template(seed_template("SYMLINK"), msg));
	seed_write("rdma-position-zero");
}

/* Transport headers without a call, and calls with invalid transport headers. */
static void rdma_headers(void)
{
	uint8_t msg[SS_TEMPLATE_MAX];
	const struct ss_chunks none = { 0 };
	size_t len = ss_template(seed_template("NULL"), msg);

	for (uint32_t proc = 2; proc < 6; proc++) {
		rdma_send(&none, msg, len);
		ss_set_word(seed_data() + 12, proc);
	}
	seed_write("rdma-procedures");

	rdma_send(&none, msg, len);
	ss_set_word(seed_data() + 4, 2);
	rdma_send(&none, msg, len);
	ss_set_word(seed_data() + 8, 0xffffffff);
	rdma_send(&none, msg, len);
	seed_set_len(12);
	seed_write("rdma-versions");

	for (uint8_t manners = 0; manners < 64; manners += 9) {
		seed_add(SS_CONNECT, RDMA, manners);
		seed_record(RDMA, "GETATTR", 0);
		reading(SS_RECORD, RDMA, 0, 65536);
		writing(RDMA, 0, 1, SIZE_64K);
		seed_add(manners & 1 ? SS_RESET : SS_CLOSE, RDMA, 0);
	}
	seed_write("rdma-manners");
}

/* Each fault of the fabric, with calls that read, write and list before and after it. */
static void faults(void)
{
	char name[32];

	for (uint8_t what = 0; what < 13; what++) {
		seed_record(RDMA, "GETATTR", 0);
		seed_add(SS_WAIT, RDMA, 0);
		seed_add(SS_FAULT, 0, (uint8_t)(what | (what & 3) << 4));
		reading(SS_RECORD, RDMA, 0, 65536);
		writing(RDMA, 0, 2, SIZE_64K);
		listing(RDMA, true, false);
		seed_record(RDMA + 1, "READ", 0);
		seed_add(SS_WAIT, RDMA, 0);
		seed_add(SS_CLOSE, RDMA, 0);
		seed_record(RDMA, "GETATTR", 0);
		snprintf(name, sizeof(name), "fault-%02u", what);
		seed_write(name);
	}
}

static void changes_below(void)
{
	char name[32];

	for (uint8_t what = 0; what < 8; what++) {
		seed_record(0, "READ", 0);
		seed_record(1, "READDIRPLUS", 0);
		seed_add(SS_LOCAL, 0, what);
		seed_add(SS_ADMIN, 0, what);
		seed_record(0, "READ", 0);
		seed_record(0, "WRITE", 0);
		seed_record(1, "LOOKUP", 0);
		seed_record(2, "RENAME", 0);
		snprintf(name, sizeof(name), "local-%u", what);
		seed_write(name);
	}
}

/*
 * NLM locks that are taken, tested and released over both transports, and conflict with each other.
 */
static void locks(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		seed_record(conn, "NLM4_LOCK", 0);
		seed_add(SS_WAIT, conn, 0);
		seed_record(conn + 1, "NLM4_TEST", 0);
		seed_record(conn, "NLM4_NM_LOCK", 0);
		seed_record(conn, "NLM4_CANCEL", 0);
		seed_add(SS_REPEAT, conn, conn + 1);
		seed_record(conn, "NLM4_UNLOCK", 0);
		seed_add(SS_LOCAL, 0, 1);
		seed_record(conn, "NLM4_LOCK", 0);
		seed_add(SS_RESET, conn, 0);
		seed_record(conn + 1, "NLM4_FREE_ALL", 0);
		seed_write(conn ? "rdma-nlm" : "tcp-nlm");
	}
}

/* ACLs that are set, changed by the mode, and shown, by both transports. */
static void acls(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		seed_record(conn, "ACL3_SETACL", 0);
		seed_record(conn, "ACL3_GETACL", 0);
		seed_add(SS_WAIT, conn, 0);
		seed_add(SS_REPEAT, conn, conn + 1);
		seed_record(conn + 1, "SETATTR", 0);
		seed_add(SS_AS, conn + 1, 2);
		seed_record(conn + 1, "ACL3_SETACL", 0);
		seed_record(conn, "ACL3_GETACL", 0);
		seed_write(conn ? "rdma-acl" : "tcp-acl");
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

		seed_begin_client(conn, minor);
		for (unsigned i = 0; i < rn_array_size(files); i++)
			seed_compound(conn, files[i], minor);
		snprintf(name, sizeof(name), "%s-v4%u-files", conn ? "rdma" : "tcp", minor);
		seed_write(name);

		seed_begin_client(conn, minor);
		for (unsigned i = 0; i < rn_array_size(names); i++)
			seed_compound(conn, names[i], minor);
		seed_compound(conn, "bind", minor);
		seed_compound(conn, "unsession", minor);
		seed_compound(conn, "unclient", minor);
		snprintf(name, sizeof(name), "%s-v4%u-names", conn ? "rdma" : "tcp", minor);
		seed_write(name);

		/* State that outlives its connection, and calls over another connection. */
		seed_begin_client(conn, minor);
		seed_compound(conn, "open", minor);
		seed_compound(conn, "lock", minor);
		seed_record(conn, minor ? "write-4.1" : "write-4.0", 0);
		seed_add(SS_RESET, conn, 0);
		seed_add(SS_REPEAT, conn, conn + 1);
		seed_add(SS_WAIT, conn + 1, 0);
		seed_compound(conn + 1, "read", minor);
		seed_compound(conn + 1, "renew", minor);
		snprintf(name, sizeof(name), "%s-v4%u-again", conn ? "rdma" : "tcp", minor);
		seed_write(name);
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
		seed_begin_client(conn, 2);
		for (unsigned i = 0; i < rn_array_size(files); i++)
			seed_compound(conn, files[i], 2);
		seed_write(conn ? "rdma-v42-copies" : "tcp-v42-copies");
	}
	for (uint8_t user = 0; user < 8; user++) {
		seed_add(SS_AS, 0, user);
		seed_add(SS_AS, 1, OTHER);
		seed_begin_client(0, 2);
		seed_compound(0, "open", 2);
		seed_compound(0, "copysecret", 2);
		seed_compound(0, "secret", 2);
		seed_compound(1, "read", 2);
		seed_compound(0, "close", 2);
		snprintf(name, sizeof(name), "user-%u-copies", user);
		seed_write(name);
	}
}

/* READ_PLUS and WRITE_SAME; also by users who may not read the secret. */
static void sparse(void)
{
	static const char *const files[] = { "open", "same",  "readplus", "lock",
					     "same", "space", "readplus", "close" };
	char name[32];

	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		seed_begin_client(conn, 2);
		for (unsigned i = 0; i < rn_array_size(files); i++)
			seed_compound(conn, files[i], 2);
		seed_write(conn ? "rdma-v42-sparse" : "tcp-v42-sparse");
	}
	for (uint8_t user = OWNER; user < 8; user++) {
		seed_add(SS_AS, 0, user);
		seed_begin_client(0, 2);
		seed_compound(0, "secretplus", 2);
		snprintf(name, sizeof(name), "user-%u-sparse", user);
		seed_write(name);
	}
}

static void exclusive(uint8_t conn, bool new_name, uint8_t verifier)
{
	seed_set_len(ss_template_exclusive(seed_add(SS_RECORD, conn, 0), new_name, verifier));
	seed_add(SS_WAIT, conn, 0);
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
			seed_add(SS_AS, 0, OWNER);
			seed_add(SS_AS, 1, other);
			seed_begin_client(0, minor);
			seed_compound(0, "open", minor);
			seed_compound(0, "openconf", minor);
			seed_compound(0, "opensecret", minor);
			for (unsigned i = 0; i < rn_array_size(theirs); i++)
				seed_compound(1, theirs[i], minor);
			seed_compound(0, "close", minor);
			snprintf(name, sizeof(name), "user-%u-v4%u", other, minor);
			seed_write(name);
		}
	}
	for (uint8_t other = 0; other < 8; other++) {
		seed_add(SS_AS, 0, other);
		seed_set_len(ss_template_read(seed_add(SS_RECORD, 0, 0), SS_FH_SECRET, 0, 4096));
		seed_record(0, "CREATE", 0);
		seed_record(0, "SETATTR", 0);
		seed_add(SS_CONNECT, 1, SQUASHED);
		seed_add(SS_AS, 1, other);
		seed_set_len(ss_template_read(seed_add(SS_RECORD, 1, 0), SS_FH_SECRET, 0, 4096));
		seed_record(1, "WRITE", 0);
		snprintf(name, sizeof(name), "user-%u-v3", other);
		seed_write(name);
	}
}

/* POSIX ACLs, by both transports. */
static void posix_acls(void)
{
	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		seed_begin_client(conn, 2);
		seed_compound(conn, "openacl", 2);
		seed_compound(conn, "setacl", 2);
		seed_compound(conn, "sameacl", 2);
		seed_compound(conn, "diracl", 2);
		seed_write(conn ? "rdma-posix-acl" : "tcp-posix-acl");
	}
}

/* Extended attributes, by both transports; and those of a file that others may not read. */
static void xattrs(void)
{
	char name[32];

	for (uint8_t conn = 0; conn <= RDMA; conn += RDMA) {
		seed_begin_client(conn, 2);
		seed_compound(conn, "open", 2);
		seed_compound(conn, "xattr", 2);
		seed_compound(conn, "unxattr", 2);
		seed_compound(conn, "xattr", 2);
		seed_write(conn ? "rdma-xattr" : "tcp-xattr");
	}
	for (uint8_t other = OWNER; other < 8; other++) {
		seed_add(SS_AS, 0, OWNER);
		seed_add(SS_AS, 1, other);
		seed_begin_client(0, 2);
		seed_compound(0, "secretxattr", 2);
		seed_begin_client(1, 2);
		seed_compound(1, "secretxattr", 2);
		seed_add(SS_CONNECT, 1, SQUASHED);
		seed_begin_client(1, 2);
		seed_compound(1, "secretxattr", 2);
		seed_compound(1, "xattr", 2);
		snprintf(name, sizeof(name), "user-%u-xattr", other);
		seed_write(name);
	}
}

static void other_addresses(void)
{
	static const char *const calls[] = { "NULL",   "GETATTR", "WRITE",    "CREATE",
					     "REMOVE", "RENAME",  "NLM4_LOCK" };
	char name[32];

	for (uint8_t net = READ_ONLY; net <= SQUASHED; net += 4) {
		seed_add(SS_CONNECT, 0, net);
		for (unsigned i = 0; i < rn_array_size(calls); i++) {
			seed_record(0, calls[i], 0);
			seed_add(SS_WAIT, 0, 0);
		}
		writing(0, 0, 2, SIZE_64K);
		snprintf(name, sizeof(name), "host-%u-v3", net);
		seed_write(name);
		for (unsigned minor = 0; minor < 3; minor++) {
			/* A host of another kind uses the state of an admitted client. */
			seed_begin_client(1, minor);
			seed_compound(1, "open", minor);
			seed_add(SS_CONNECT, 0, net);
			seed_compound(0, "root", minor);
			seed_compound(0, "write", minor);
			seed_compound(0, "rename", minor);
			seed_compound(0, "close", minor);
			seed_compound(0, "unsession", minor);
			seed_begin_client(0, minor);
			seed_compound(0, "opensecret", minor);
			seed_add(SS_REPEAT, 1, 0);
			snprintf(name, sizeof(name), "host-%u-v4%u", net, minor);
			seed_write(name);
		}
	}
	for (uint8_t variant = 1; variant < 4; variant++) {
		seed_add(SS_CONNECT, 0,
			 (uint8_t)(variant == 1	  ? 0
				   : variant == 2 ? READ_ONLY
						  : SQUASHED));
		seed_begin_client(0, 1);
		seed_compound(0, "open", 1);
		seed_add(SS_HOSTS, 0, variant);
		seed_compound(0, "read", 1);
		seed_compound(0, "close", 1);
		seed_record(0, "WRITE", 0);
		seed_add(SS_HOSTS, 0, 0);
		seed_compound(0, "root", 1);
		snprintf(name, sizeof(name), "host-former-%u", variant);
		seed_write(name);
	}
}

static void exclusives(void)
{
	char name[32];

	for (uint8_t verifier = 0; verifier < 4; verifier++) {
		seed_add(SS_AS, 0, OWNER);
		seed_add(SS_AS, 1, OTHER);
		exclusive(0, true, verifier);
		exclusive(0, true, verifier); /* a retransmission */
		exclusive(1, true, verifier); /* another user repeats it */
		exclusive(1, true, (uint8_t)(verifier + 1));
		exclusive(1, false, verifier); /* the file exists */
		seed_add(SS_LOCAL, 0, 8);
		seed_set_len(ss_template_read(seed_add(SS_RECORD, 1, 0), SS_FH_PRIVATE, 0, 100));
		snprintf(name, sizeof(name), "exclusive-%u-v3", verifier);
		seed_write(name);
	}
	for (unsigned minor = 0; minor < 3; minor++) {
		seed_add(SS_AS, 0, OTHER);
		seed_begin_client(0, minor);
		seed_compound(0, "exclusive", minor);
		seed_add(SS_LOCAL, 0, 8);
		seed_compound(0, "private", minor);
		seed_add(SS_LOCAL, 0, 10);
		seed_compound(0, "exclusive", minor);
		seed_compound(0, "exclusive", minor);
		snprintf(name, sizeof(name), "exclusive-v4%u", minor);
		seed_write(name);
	}
}

/* Leases of local processes, and leases of NFSv4 clients that fell silent. */
static void leases(void)
{
	char name[32];

	for (unsigned minor = 0; minor < 3; minor++) {
		for (uint8_t type = 0; type < 2; type++) {
			seed_begin_client(0, minor);
			seed_add(SS_LEASE, 0, type);
			seed_compound(0, "leased", minor);
			seed_compound(0, "readleased", minor);
			seed_set_len(
				ss_template_read(seed_add(SS_RECORD, 1, 0), SS_FH_LEASED, 0, 100));
			seed_set_len(ss_template_write(seed_add(SS_RECORD, 1, 0), SS_FH_LEASED, 0,
						       0, 3));
			seed_add(SS_WAIT, 1, 0);
			seed_add(SS_LEASE, 0, 2);
			seed_compound(0, "leased", minor);
			seed_add(SS_LEASE, 0, 3);
			snprintf(name, sizeof(name), "lease-%u-v4%u", type, minor);
			seed_write(name);
		}
		for (uint8_t time = 3; time < 8; time++) {
			seed_begin_client(0, minor);
			seed_compound(0, "open", minor);
			seed_compound(0, "openconf", minor);
			seed_compound(0, "lock", minor);
			seed_add(SS_TIME, 0, (uint8_t)(time | 2 << 3));
			seed_compound(0, "locked", minor);
			seed_record(1, "NLM4_LOCK", 0);
			seed_add(SS_AS, 1, OTHER);
			seed_begin_client(1, minor);
			seed_compound(1, "open", minor);
			seed_compound(0, "close", minor);
			snprintf(name, sizeof(name), "expired-%u-v4%u", time, minor);
			seed_write(name);
		}
	}
}

static void mounts(void)
{
	for (unsigned sub = 0; sub < 2; sub++) {
		unsigned fh = sub ? SS_FH_CROSS : SS_FH_LATE;

		for (uint8_t what = 0; what < 2; what++) {
			seed_set_len(ss_template_readdir(seed_add(SS_RECORD, 0, 0), fh, true, false,
							 4096));
			seed_add(SS_MOUNT, 0, (uint8_t)(2 * sub));
			seed_set_len(ss_template_readdir(seed_add(SS_RECORD, 0, 0), fh, true, false,
							 4096));
			seed_record(1, "READDIRPLUS", 0);
			seed_add(SS_MOUNT, 0, (uint8_t)(what ? 4 : 1 + 2 * sub));
			seed_set_len(ss_template_readdir(seed_add(SS_RECORD, 0, 0), fh, true, false,
							 4096));
			seed_add(SS_MOUNT, 0, (uint8_t)(2 * sub));
			seed_begin_client(0, 1);
			seed_compound(0, "down", 1);
			seed_write(sub	  ? what ? "mount-sub-busy" : "mount-sub"
				   : what ? "mount-late-stays"
					  : "mount-late");
		}
	}
}

static void disks(void)
{
	char name[32];

	for (uint8_t what = 0; what < 7; what++) {
		seed_begin_client(0, 1);
		seed_add(SS_DISK, 0, what);
		seed_set_len(ss_template_write(seed_add(SS_RECORD, 1, 0), SS_FH_DISK_FILE, 0, 0,
					       SIZE_64K));
		seed_set_len(ss_template_write(seed_add(SS_RECORD, 1, 0), SS_FH_DISK_FILE, 65536, 2,
					       SIZE_64K));
		writing(1, 0, 2, SIZE_1M);
		seed_record(1, "CREATE", 0);
		seed_record(1, "COMMIT", 0);
		seed_compound(0, "disk", 1);
		seed_compound(0, "open", 1);
		seed_add(SS_DISK, 0, 1);
		seed_compound(0, "disk", 1);
		snprintf(name, sizeof(name), "disk-%u", what);
		seed_write(name);
	}
	for (uint8_t call = 0; call < 32; call += 3) {
		seed_begin_client(0, 1);
		seed_add(SS_DISK, 0, (uint8_t)(call << 3 | 7));
		seed_compound(0, "open", 1);
		seed_record(1, "WRITE", 0);
		seed_record(1, "MKDIR", 0);
		seed_record(1, "RENAME", 0);
		seed_compound(0, "write", 1);
		seed_compound(0, "rename", 1);
		snprintf(name, sizeof(name), "call-fails-%02u", call);
		seed_write(name);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	seed_begin(argv[1]);
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
	seed_callbacks();
	seed_secure();
	locks();
	acls();
	other_users();
	xattrs();
	posix_acls();
	other_addresses();
	exclusives();
	leases();
	mounts();
	disks();
	seed_nfs2();
	return seed_failed();
}
