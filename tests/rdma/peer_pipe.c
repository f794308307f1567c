/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An RPC-over-RDMA peer that its standard input controls, for tests written in another language.
 * One connection at a time. A command is a line; LEN bytes follow a command that ends in LEN.
 *   connect HOST PORT DATA-SIZE RECV-SIZE RNR-RETRY INVALIDATE   RECV-SIZE 0: no Receives are posted;
 *                      INVALIDATE 1: the server may invalidate the key
 *                      ok RKEY ADDRESS QUEUE-PAIR SERVERS-QUEUE-PAIR
 *   receives           posts them
 *   put OFFSET LEN     writes into the data that the server may read and write
 *   get OFFSET LEN     ok LEN, and the bytes
 *   send LEN           sends a message
 *   wait MILLISECONDS  ok LEN, and a message; closed; or timeout
 *   sinks              ok N, and N lines KEY ADDRESS LENGTH QUEUE-PAIR: destinations of the last
 *                      Reads that the server made over iWARP, newest first
 *   write KEY ADDRESS LEN   writes LEN bytes of the data by RDMA; an error if the server refuses
 *   drop               destroys the queue pair without a disconnect
 *   disconnect         disconnects
 * The answer is a line: ok, or error and the reason. End of input ends the program.
 */
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/rdma/peer.h"
#include "tools/softverbs/sinks.h"

static struct peer peer;

static void answer(int err)
{
	if (err)
		printf("error %s\n", strerror(-err));
	else
		printf("ok\n");
}

static void answer_bytes(const void *p, size_t len)
{
	printf("ok %zu\n", len);
	fwrite(p, 1, len, stdout);
}

static uint32_t servers_qp(void)
{
	struct ibv_qp_attr attr = { 0 };
	struct ibv_qp_init_attr init;

	return ibv_query_qp(peer.id->qp, &attr, IBV_QP_DEST_QPN, &init) ? 0 : attr.dest_qp_num;
}

static void do_connect(const char *line)
{
	char host[64], port[16];
	struct peer_options o = { 0 };
	unsigned invalidate;

	if (peer.id || sscanf(line, "connect %63s %15s %zu %" SCNu32 " %" SCNu8 " %u", host, port,
			      &o.data_size, &o.recv_size, &o.rnr_retry, &invalidate) != 6) {
		answer(-EINVAL);
		return;
	}
	o.no_recvs = o.recv_size == 0;
	o.invalidate = invalidate != 0;
	if (o.recv_size > PEER_RECV_SIZE)
		o.recv_size = PEER_RECV_SIZE;
	int err = peer_connect(&peer, host, port, &o);
	if (err)
		answer(err);
	else
		printf("ok %" PRIu32 " %" PRIuPTR " %" PRIu32 " %" PRIu32 "\n", peer.mr->rkey,
		       (uintptr_t)peer.data, peer.id->qp->qp_num, servers_qp());
}

static void do_put(size_t offset, size_t len)
{
	if (offset > peer.data_size || len > peer.data_size - offset) {
		fprintf(stderr, "peer_pipe: put beyond the data\n");
		exit(2);
	}
	answer(fread(peer.data + offset, 1, len, stdin) == len ? 0 : -EIO);
}

static void do_get(size_t offset, size_t len)
{
	if (offset > peer.data_size || len > peer.data_size - offset)
		answer(-ERANGE);
	else
		answer_bytes(peer.data + offset, len);
}

static void do_send(size_t len)
{
	uint8_t message[PEER_SEND_SIZE];

	if (len > sizeof(message) || fread(message, 1, len, stdin) != len) {
		fprintf(stderr, "peer_pipe: a message of %zu bytes\n", len);
		exit(2);
	}
	answer(peer_send(&peer, message, len));
}

static void do_wait(int ms)
{
	uint8_t message[PEER_RECV_SIZE];
	int n = peer_wait(&peer, message, ms);

	if (n >= 0)
		answer_bytes(message, (size_t)n);
	else
		printf("%s\n", n == PEER_CLOSED ? "closed" : "timeout");
}

static void show_sinks(void)
{
	unsigned (*sinks)(struct softverbs_sink *, unsigned);
	struct softverbs_sink sink[64];

	*(void **)&sinks = dlsym(RTLD_DEFAULT, "softverbs_sinks");
	unsigned n = sinks ? sinks(sink, 64) : 0;
	printf("ok %u\n", n);
	for (unsigned i = 0; i < n; i++)
		printf("%" PRIu32 " %" PRIu64 " %" PRIu32 " %" PRIu32 "\n", sink[i].key,
		       sink[i].address, sink[i].length, sink[i].qp_num);
}

static void end(bool disconnect)
{
	peer_close(&peer, disconnect);
	answer(0);
}

static void obey(const char *line)
{
	size_t a, b;
	uint64_t address;
	uint32_t key, len;
	int ms;

	if (!strncmp(line, "connect ", 8))
		do_connect(line);
	else if (!peer.id)
		answer(-ENOTCONN);
	else if (sscanf(line, "put %zu %zu", &a, &b) == 2)
		do_put(a, b);
	else if (sscanf(line, "get %zu %zu", &a, &b) == 2)
		do_get(a, b);
	else if (!strcmp(line, "sinks\n"))
		show_sinks();
	else if (sscanf(line, "write %" SCNu32 " %" SCNu64 " %" SCNu32, &key, &address, &len) == 3)
		answer(peer_write(&peer, key, address, len));
	else if (sscanf(line, "send %zu", &a) == 1)
		do_send(a);
	else if (sscanf(line, "wait %d", &ms) == 1)
		do_wait(ms);
	else if (!strcmp(line, "receives\n"))
		answer(peer_post_recvs(&peer));
	else if (!strcmp(line, "drop\n") || !strcmp(line, "disconnect\n"))
		end(line[1] == 'i');
	else
		answer(-EINVAL);
}

int main(void)
{
	char line[256];

	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		fflush(stdout);
	}
	return 0;
}
