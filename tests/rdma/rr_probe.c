/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Speaks to an NFS server over RPC-over-RDMA, message by message, good ones and bad ones:
 *   rr_probe HOST PORT [CONNECTIONS [RANDOM-MESSAGES]]
 * Prints a line for each test and a summary; exit status 1 if any failed. CONNECTIONS is how many
 * the flood opens and leaves (default 200).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/peer.h"
#include "tests/unit/rdma_words.h"

#define WAIT_MS 10000
#define QUIET_MS 300

enum { MSG = 0, NOMSG = 1, MSGP = 2, DONE = 3, ERROR = 4 };

static const char *host, *port;
static unsigned passed, failed, skipped;
static char reason[256];

static bool no(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool no(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	return false;
}

static struct peer peer;
static struct msg m;
static uint8_t reply[PEER_RECV_SIZE];
static uint32_t next_xid = 0x5000;

static bool open_peer(const struct peer_options *o)
{
	static const struct peer_options usual;
	int err = peer_connect(&peer, host, port, o ? o : &usual);
	return err ? no("connect: %s", strerror(-err)) : true;
}

/* Puts a transport header up to its lists. */
static uint32_t begin(uint32_t vers, uint32_t credits, uint32_t proc)
{
	m.len = 0;
	put(&m, ++next_xid);
	put(&m, vers);
	put(&m, credits);
	put(&m, proc);
	return next_xid;
}

static void no_lists(void)
{
	put(&m, 0);
	put(&m, 0);
	put(&m, 0);
}

static void put_call(uint32_t xid, uint32_t rpcvers, uint32_t prog, uint32_t proc)
{
	put(&m, xid);
	put(&m, 0);
	put(&m, rpcvers);
	put(&m, prog);
	put(&m, 3);
	put(&m, proc);
	for (int i = 0; i < 4; i++)
		put(&m, 0);
}

/* Sends m and waits; returns the length of the answer. */
static int ask(void)
{
	int err = peer_send(&peer, m.b, m.len);
	return err ? PEER_CLOSED : peer_wait(&peer, reply, WAIT_MS);
}

static bool is_answer(int n, uint32_t xid)
{
	if (n == PEER_CLOSED)
		return no("the connection was closed");
	if (n == PEER_TIMEOUT)
		return no("no answer");
	if (n < 20)
		return no("answer of %d bytes", n);
	if (word(reply, 0) != xid)
		return no("answer to another xid: %x", word(reply, 0));
	if (!word(reply, 2) || word(reply, 2) == 0xffffffff)
		return no("%u credits granted", word(reply, 2));
	return true;
}

static bool is_error(int n, uint32_t xid, uint32_t code)
{
	if (!is_answer(n, xid))
		return false;
	if (word(reply, 3) != ERROR || word(reply, 4) != code)
		return no("not that RDMA_ERROR: proc %u, word %u", word(reply, 3), word(reply, 4));
	return true;
}

/* True if the answer is an accepted, successful, inline reply of a procedure without results,
 * starting at word `at`. */
static bool is_success(int n, uint32_t xid, unsigned at)
{
	if (!is_answer(n, xid))
		return false;
	if (word(reply, 1) != 1 || word(reply, 3) != MSG)
		return no("version %u, proc %u", word(reply, 1), word(reply, 3));
	if (n != (int)(4 * at + 24))
		return no("answer of %d bytes", n);
	if (word(reply, at) != xid || word(reply, at + 1) != 1 || word(reply, at + 2) != 0 ||
	    word(reply, at + 5) != 0)
		return no("not an accepted reply");
	return true;
}

static bool null_works(void)
{
	uint32_t xid = begin(1, 32, MSG);
	no_lists();
	put_call(xid, 2, 100003, 0);
	return is_success(ask(), xid, 7);
}

/* The answer must be an error, and the connection must go on. */
static bool expect_error(uint32_t xid, uint32_t code)
{
	return is_error(ask(), xid, code) && null_works();
}

static void put_seg_of(uint32_t off, uint32_t len)
{
	put_seg(&m, peer.mr->rkey, len, (uintptr_t)peer.data + off);
}

static void put_read_of(uint32_t pos, uint32_t off, uint32_t len)
{
	put(&m, 1);
	put(&m, pos);
	put_seg_of(off, len);
}

/* ---- good messages ----------------------------------------------------------------------------
 */

static bool t_null(void)
{
	for (int i = 0; i < 300; i++)
		if (!null_works())
			return false;
	return true;
}

static bool t_credit_requests(void)
{
	static const uint32_t asked[] = { 0, 1, 0x7fffffff, 0xffffffff };
	uint32_t granted = 0;

	for (int i = 0; i < 4; i++) {
		uint32_t xid = begin(1, asked[i], MSG);
		no_lists();
		put_call(xid, 2, 100003, 0);
		if (!is_success(ask(), xid, 7))
			return false;
		if (granted && word(reply, 2) != granted)
			return no("the grant changes with the request");
		granted = word(reply, 2);
	}
	return true;
}

static bool t_all_credits_at_once(void)
{
	if (!null_works())
		return false;
	uint32_t granted = word(reply, 2);
	for (uint32_t i = 0; i < granted && i < PEER_RECVS; i++) {
		uint32_t xid = begin(1, granted, MSG);
		no_lists();
		put_call(xid, 2, 100003, 0);
		if (peer_send(&peer, m.b, m.len) < 0)
			return no("send");
	}
	for (uint32_t i = 0; i < granted && i < PEER_RECVS; i++)
		if (peer_wait(&peer, reply, WAIT_MS) < 0)
			return no("%u answers of %u", i, granted);
	return null_works();
}

static bool t_chunks_come_back(void)
{
	uint32_t xid = begin(1, 32, MSG);
	put(&m, 0);
	put(&m, 1);
	put(&m, 2);
	put_seg_of(0, 4096);
	put_seg_of(4096, 100);
	put(&m, 1);
	put(&m, 0); /* an empty Write chunk */
	put(&m, 0);
	put(&m, 1);
	put(&m, 1);
	put_seg_of(8192, 4096);
	put_call(xid, 2, 100003, 0);
	/* fixed, Read list, chunk of 2, empty chunk, end, Reply chunk of 1 */
	if (!is_success(ask(), xid, 4 + 1 + 10 + 2 + 1 + 6))
		return false;
	static const uint8_t counts[] = { 6, 2, 16, 0, 19, 1 };
	for (int i = 0; i < 6; i += 2)
		if (word(reply, counts[i]) != counts[i + 1])
			return no("word %u is %u", counts[i], word(reply, counts[i]));
	if (word(reply, 8) || word(reply, 12) || word(reply, 21))
		return no("an unused segment has a length");
	return true;
}

static void position_zero(uint32_t xid, uint32_t first)
{
	struct msg saved = m;
	m.len = 0;
	put_call(xid, 2, 100003, 0);
	memcpy(peer.data, m.b, first);
	memcpy(peer.data + 8192, m.b + first, m.len - first);
	m = saved;
	put_read_of(0, 0, first);
	put_read_of(0, 100, 0);
	put_read_of(0, 8192, 40 - first);
	no_lists();
}

static bool t_position_zero(void)
{
	for (uint32_t first = 1; first < 40; first += 3) {
		uint32_t xid = begin(1, 32, NOMSG);
		position_zero(xid, first);
		if (!is_success(ask(), xid, 7))
			return false;
	}
	return true;
}

static bool rpc_answer(uint32_t rpcvers, uint32_t prog, uint32_t proc, unsigned at, uint32_t want)
{
	uint32_t xid = begin(1, 32, MSG);
	no_lists();
	put_call(xid, rpcvers, prog, proc);
	int n = ask();
	if (!is_answer(n, xid))
		return false;
	if (n < (int)(4 * (7 + at + 1)) || word(reply, 7 + at) != want)
		return no("word %u is %u", at, word(reply, 7 + at));
	return true;
}

static bool t_rpc_refusals(void)
{
	return rpc_answer(3, 100003, 0, 2, 1) &&	       /* MSG_DENIED */
	       rpc_answer(2, 399999, 0, 5, 1) &&	       /* PROG_UNAVAIL */
	       rpc_answer(2, 100003, 99, 5, 3) &&	       /* PROC_UNAVAIL */
	       rpc_answer(2, 100003, 1, 5, 4) && null_works(); /* GARBAGE_ARGS */
}

/* ---- bad messages -----------------------------------------------------------------------------
 */

static bool t_bad_version(void)
{
	static const uint32_t versions[] = { 0, 2, 0xffffffff };
	for (int i = 0; i < 3; i++) {
		uint32_t xid = begin(versions[i], 32, MSG);
		no_lists();
		if (!is_error(ask(), xid, 1))
			return false;
		if (word(reply, 1) != versions[i] || word(reply, 5) != 1 || word(reply, 6) != 1)
			return no("version %u, range %u..%u", word(reply, 1), word(reply, 5),
				  word(reply, 6));
	}
	return null_works();
}

static bool t_bad_proc(void)
{
	static const uint32_t procs[] = { MSGP, 5, 0xffffffff };
	for (int i = 0; i < 3; i++) {
		uint32_t xid = begin(1, 32, procs[i]);
		put(&m, 64);
		put(&m, 64);
		no_lists();
		if (!expect_error(xid, 2))
			return false;
	}
	return true;
}

static bool t_done_and_error_are_dropped(void)
{
	for (uint32_t proc = DONE; proc <= ERROR; proc++) {
		begin(1, 32, proc);
		put(&m, 2);
		peer_send(&peer, m.b, m.len);
		if (peer_wait(&peer, reply, QUIET_MS) != PEER_TIMEOUT)
			return no("proc %u was answered", proc);
	}
	return null_works();
}

static uint32_t long_header(void)
{
	uint32_t xid = begin(1, 32, MSG);
	put_read_of(40, 0, 100);
	put_read_of(40, 200, 100);
	put(&m, 0);
	put(&m, 1);
	put(&m, 2);
	put_seg_of(0, 4096);
	put_seg_of(4096, 4096);
	put(&m, 0);
	put(&m, 1);
	put(&m, 1);
	put_seg_of(8192, 4096);
	return xid;
}

static bool t_truncated_header(void)
{
	long_header();
	size_t full = m.len;
	for (size_t len = 28; len < full; len++) {
		uint32_t xid = long_header();
		m.len = len;
		if (!is_error(ask(), xid, 2))
			return false;
	}
	return null_works();
}

static bool t_truncated_call(void)
{
	/* Too short for an xid: ERR_CHUNK. Later the RPC layer answers. */
	for (unsigned len = 0; len < 40; len++) {
		uint32_t xid = begin(1, 32, MSG);
		no_lists();
		put_call(xid, 2, 100003, 0);
		m.len = 28 + len;
		int n = ask();
		if (!is_answer(n, xid))
			return false;
		if (len < 8 && !is_error(n, xid, 2))
			return false;
	}
	return null_works();
}

/*
 * RFC 8166 section 4.5: messages shorter than a header are discarded, and the connection goes on.
 */
static bool t_no_header(void)
{
	for (unsigned len = 0; len < 28; len += 5) {
		begin(1, 32, MSG);
		no_lists();
		m.len = len;
		peer_send(&peer, m.b, m.len);
		if (peer_wait(&peer, reply, QUIET_MS) != PEER_TIMEOUT)
			return no("%u bytes were answered, or the connection was closed", len);
	}
	return null_works();
}

static bool bad_read(uint32_t pos1, uint32_t len1, uint32_t pos2, uint32_t len2)
{
	uint32_t xid = begin(1, 32, MSG);
	put_read_of(pos1, 0, len1);
	put_read_of(pos2, 4096, len2);
	no_lists();
	put_call(xid, 2, 100003, 0);
	if (expect_error(xid, 2))
		return true;
	char was[sizeof(reason)];
	memcpy(was, reason, sizeof(was));
	return no("%u+%u, %u+%u: %.200s", pos1, len1, pos2, len2, was);
}

static bool t_bad_read_lists(void)
{
	return bad_read(41, 4, 41, 4) && bad_read(40, 16, 44, 4) && bad_read(44, 4, 44, 4) &&
	       bad_read(0, 40, 40, 4) && bad_read(0xfffffffc, 4, 0xfffffffc, 4) &&
	       bad_read(40, 0xffffffff, 40, 0xffffffff) &&
	       bad_read(40, 0x80000000, 40, 0x80000000) && bad_read(40, 4, 0xffffffff, 0);
}

static bool t_too_many_segments(void)
{
	uint32_t xid = begin(1, 32, MSG);
	for (int i = 0; i < 160; i++)
		put_read_of(40, 0, 1);
	no_lists();
	if (!expect_error(xid, 2))
		return false;
	xid = begin(1, 32, MSG);
	put(&m, 0);
	put(&m, 1);
	put(&m, 0x10000000);
	return expect_error(xid, 2);
}

static bool t_nomsg_without_chunk(void)
{
	uint32_t xid = begin(1, 32, NOMSG);
	no_lists();
	put_call(xid, 2, 100003, 0);
	if (!expect_error(xid, 2))
		return false;
	xid = begin(1, 32, NOMSG);
	put_read_of(0, 0, 0);
	no_lists();
	return expect_error(xid, 2);
}

static bool t_two_xids(void)
{
	uint32_t xid = begin(1, 32, MSG);
	no_lists();
	put_call(xid + 1, 2, 100003, 0);
	if (!expect_error(xid, 2))
		return false;
	xid = begin(1, 32, NOMSG);
	position_zero(xid + 1, 20);
	return expect_error(xid, 2);
}

static bool t_reply_from_client_is_dropped(void)
{
	uint32_t xid = begin(1, 32, MSG);
	no_lists();
	put(&m, xid);
	put(&m, 1);
	for (int i = 0; i < 5; i++)
		put(&m, 0);
	peer_send(&peer, m.b, m.len);
	if (peer_wait(&peer, reply, QUIET_MS) != PEER_TIMEOUT)
		return no("it was answered");
	return null_works();
}

/* GETATTR whose handle comes by a Read chunk, although only bulk data may (RFC 8267). */
static bool t_read_chunk_where_none_belongs(void)
{
	uint32_t xid = begin(1, 32, MSG);
	put_read_of(44, 0, 32);
	no_lists();
	put_call(xid, 2, 100003, 1);
	put(&m, 32);
	int n = ask();
	if (!is_answer(n, xid))
		return false;
	bool garbage = word(reply, 3) == MSG && n == 28 + 24 && word(reply, 12) == 4;
	bool err_chunk = word(reply, 3) == ERROR && word(reply, 4) == 2;
	if (!garbage && !err_chunk)
		return no("neither GARBAGE_ARGS nor ERR_CHUNK");
	return null_works();
}

/* RDMA errors end this connection, and no other. */
static bool closes(void)
{
	int n = ask();
	if (n != PEER_CLOSED)
		return no("%d instead of a closed connection", n);
	peer_close(&peer, true);
	return open_peer(NULL) && null_works();
}

static bool t_bad_handle(void)
{
	uint32_t xid = begin(1, 32, NOMSG);
	put(&m, 1);
	put(&m, 0);
	put_seg(&m, peer.mr->rkey ^ 0x5a5a00, 40, (uintptr_t)peer.data);
	no_lists();
	if (!closes())
		return false;
	/* The segment ends beyond the region. */
	xid = begin(1, 32, MSG);
	put_read_of(40, PEER_DATA_SIZE - 4, 4096);
	no_lists();
	put_call(xid, 2, 100003, 0);
	return closes();
}

static bool t_no_read_resources(void)
{
	struct peer_options o = { .no_resources = true };
	peer_close(&peer, true);
	if (peer_connect(&peer, host, port, &o) == 0) {
		/* iWARP may agree on other RDMA Read resources; then the connection must work. */
		if (!null_works())
			return false;
		peer_close(&peer, true);
	}
	return open_peer(NULL) && null_works();
}

static bool t_no_private_message(void)
{
	struct peer_options o = { .no_private = true };
	peer_close(&peer, true);
	return open_peer(&o) && null_works();
}

/* Many more calls than credits, without reading replies: at most, this connection may end. */
static bool t_overrun(void)
{
	struct peer other = peer;
	if (!open_peer(NULL))
		return false;
	for (int i = 0; i < 2000 && !peer.closed; i++) {
		uint32_t xid = begin(1, 32, MSG);
		no_lists();
		put_call(xid, 2, 100003, 0);
		if (peer_send(&peer, m.b, m.len) < 0)
			break;
	}
	peer_close(&peer, false);
	peer = other;
	return null_works();
}

/* Queue pairs are destroyed with calls and RDMA Reads under way. */
static bool t_vanish(void)
{
	struct peer other = peer;
	for (int round = 0; round < 20; round++) {
		if (!open_peer(NULL))
			return false;
		for (int i = 0; i < 20; i++) {
			uint32_t xid = begin(1, 32, NOMSG);
			position_zero(xid, 20);
			peer_send(&peer, m.b, m.len);
		}
		peer_close(&peer, round & 1);
	}
	peer = other;
	return null_works();
}

static unsigned random_messages = 2000;

static void random_message(unsigned *seed, unsigned kind)
{
	size_t len = rand_r(seed) % 200;
	switch (kind) {
	case 0: /* any bytes */
		m.len = 0;
		break;
	case 1: /* a valid beginning, then random bytes */
		begin(1, 32, rand_r(seed) % 2);
		break;
	default: /* a good message with some bytes changed */
		long_header();
		for (int i = 0; i < 3; i++)
			m.b[12 + rand_r(seed) % (m.len - 12)] ^= 1 << rand_r(seed) % 8;
		return;
	}
	while (len--)
		m.b[m.len++] = rand_r(seed) % 4 ? 0 : rand_r(seed);
}

static bool t_random(void)
{
	struct peer other = peer;
	unsigned seed = 1;
	if (!open_peer(NULL))
		return false;
	for (unsigned i = 0; i < random_messages; i++) {
		random_message(&seed, i % 3);
		if (peer_send(&peer, m.b, m.len) == 0) {
			int n = peer_wait(&peer, reply, i % 50 ? 1 : 50);
			if (n != PEER_CLOSED)
				continue;
		}
		peer_close(&peer, true);
		if (!open_peer(NULL))
			return false;
	}
	peer_close(&peer, true);
	peer = other;
	return null_works();
}

/* ---- many connections -------------------------------------------------------------------------
 */

static unsigned flood = 200;

/* Opens connections and abandons them. The server may refuse some for their number or for lack of
 * memory; the first client goes on. */
static bool t_flood(void)
{
	struct peer *many = calloc(flood, sizeof(*many));
	struct peer_options o = { .idle = true };
	unsigned opened = 0, refused = 0;
	bool good = true;

	for (unsigned i = 0; good && i < flood; i++) {
		int err = peer_connect(&many[opened], host, port, &o);
		if (err && !refused++)
			printf("# connection %u: %s\n", i, strerror(-err));
		if (!err)
			opened++;
		if (i % 50 == 0)
			good = null_works();
	}
	printf("# %u connections opened, %u refused\n", opened, refused);
	for (unsigned i = 0; i < opened; i++)
		peer_close(&many[i], i & 1);
	free(many);
	if (good && refused == flood)
		good = no("every connection was refused");
	/* The server must notice in time that the connections are gone. */
	struct peer other = peer;
	good = good && open_peer(NULL) && null_works();
	if (good) {
		peer_close(&peer, true);
		peer = other;
	}
	return good && null_works();
}

static const struct {
	const char *name;
	bool (*run)(void);
} tests[] = {
	{ "300 NULL calls", t_null },
	{ "credit requests of 0 and of 2^32-1", t_credit_requests },
	{ "all credits at once", t_all_credits_at_once },
	{ "unused chunks come back empty", t_chunks_come_back },
	{ "position-zero chunk in pieces", t_position_zero },
	{ "no private message", t_no_private_message },
	{ "refusals of the RPC layer", t_rpc_refusals },
	{ "other versions get ERR_VERS", t_bad_version },
	{ "RDMA_MSGP and unknown procedures get ERR_CHUNK", t_bad_proc },
	{ "RDMA_DONE and RDMA_ERROR are dropped", t_done_and_error_are_dropped },
	{ "header cut at every byte", t_truncated_header },
	{ "call cut at every byte", t_truncated_call },
	{ "less than a header is dropped", t_no_header },
	{ "bad Read lists", t_bad_read_lists },
	{ "too many segments", t_too_many_segments },
	{ "RDMA_NOMSG without a chunk", t_nomsg_without_chunk },
	{ "two xids", t_two_xids },
	{ "a reply from the client is dropped", t_reply_from_client_is_dropped },
	{ "Read chunk where none belongs", t_read_chunk_where_none_belongs },
	{ "bad handle closes that connection only", t_bad_handle },
	{ "no RDMA Read resources", t_no_read_resources },
	{ "overrun of the credits", t_overrun },
	{ "connections that vanish in the middle", t_vanish },
	{ "random messages", t_random },
	{ "many connections opened and left", t_flood },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s HOST PORT [CONNECTIONS [RANDOM-MESSAGES]]\n", argv[0]);
		return 2;
	}
	host = argv[1];
	port = argv[2];
	if (argc > 3)
		flood = strtoul(argv[3], NULL, 10);
	if (argc > 4)
		random_messages = strtoul(argv[4], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		bool good = (peer.id && !peer.closed) || open_peer(NULL);
		if (good && tests[i].run()) {
			passed++;
			printf("ok %s\n", tests[i].name);
			continue;
		}
		failed++;
		printf("FAIL %s: %s\n", tests[i].name, reason);
		if (peer.id)
			peer_close(&peer, false);
	}
	if (peer.id)
		peer_close(&peer, true);
	printf("%u passed, %u failed, %u skipped\n", passed, failed, skipped);
	return failed ? 1 : 0;
}
