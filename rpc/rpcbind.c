/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpcb_set() of libtirpc makes universal addresses only for the netids that it knows itself, and
 * rdma is none of them. So both calls are made with libtirpc's client and its rpcb structure on
 * rpcbind's local socket, where the socket's credentials tell rpcbind who calls.
 */
#include "rpc/rpcbind.h"

#include <errno.h>
#include <netinet/in.h>
#include <rpc/rpc.h>
#include <rpc/rpcb_prot.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* pmap_prot.h needs the types of rpc/rpc.h. */
#include <rpc/pmap_prot.h>

#define RPCBIND_SOCKET "/run/rpcbind.sock"
#define CALL_SECONDS 5
#define PING_SECONDS 1

/* RFC 5665 section 5.2.3: the address of a wildcard listener and the port's two bytes. */
static int make_uaddr(const char *netid, uint16_t port, char *out, size_t size)
{
	static const struct {
		const char *netid, *any;
	} known[] = { { "tcp", "0.0.0.0" }, { "tcp6", "::" },	   { "udp", "0.0.0.0" },
		      { "udp6", "::" },	    { "rdma", "0.0.0.0" }, { "rdma6", "::" } };

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].netid, netid) == 0) {
			snprintf(out, size, "%s.%u.%u", known[i].any, port >> 8, port & 0xffu);
			return 0;
		}
	}
	return -EINVAL;
}

static int connect_rpcbind(CLIENT **client)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX, .sun_path = RPCBIND_SOCKET };
	struct netbuf addr = { .buf = &sun, .len = sizeof(sun), .maxlen = sizeof(sun) };

	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
		const int ret = errno == ENOENT ? -ECONNREFUSED : -errno;

		close(fd);
		return ret;
	}
	*client = clnt_vc_create(fd, &addr, RPCBPROG, RPCBVERS4, 0, 0);
	if (!*client) {
		close(fd);
		return -ENOMEM;
	}
	clnt_control(*client, CLSET_FD_CLOSE, NULL);
	return 0;
}

/* One call whose result is a boolean: 1, 0 or -errno. */
static int call_rpcbind(CLIENT *client, rpcproc_t proc, RPCB *map)
{
	const struct timeval timeout = { .tv_sec = CALL_SECONDS };
	bool_t ok = FALSE;

	switch (clnt_call(client, proc, (xdrproc_t)xdr_rpcb, map, (xdrproc_t)xdr_bool, &ok,
			  timeout)) {
	case RPC_SUCCESS:
		return ok ? 1 : 0;
	case RPC_TIMEDOUT:
		return -ETIMEDOUT;
	default:
		return -EIO;
	}
}

static int change(uint32_t prog, uint32_t vers, const char *netid, const uint16_t *port)
{
	char uaddr[32], owner[] = "", none[] = "";
	CLIENT *client = NULL;

	int ret = make_uaddr(netid, !port ? 0 : *port, uaddr, sizeof(uaddr));
	if (ret < 0)
		return ret;
	ret = connect_rpcbind(&client);
	if (ret < 0)
		return ret;
	RPCB map = {
		.r_prog = prog,
		.r_vers = vers,
		.r_netid = (char *)netid,
		.r_addr = none,
		.r_owner = owner,
	};
	/* rpcbind refuses a second mapping, so an old one is removed first. Removing succeeds if
	 * there is none, and fails for another user's mapping. */
	ret = call_rpcbind(client, RPCBPROC_UNSET, &map);
	if (ret >= 0 && port) {
		map.r_addr = uaddr;
		ret = call_rpcbind(client, RPCBPROC_SET, &map);
	}
	clnt_destroy(client);
	return ret == 0 ? -EPERM : ret < 0 ? ret : 0;
}

int rpcbind_set(uint32_t prog, uint32_t vers, const char *netid, uint16_t port)
{
	return change(prog, vers, netid, &port);
}

int rpcbind_unset(uint32_t prog, uint32_t vers, const char *netid)
{
	return change(prog, vers, netid, NULL);
}

static bool_t xdr_nothing(XDR *x, ...)
{
	(void)x;
	return TRUE;
}

/* A call by UDP to a program of this machine. */
struct local_call {
	uint32_t prog, vers, proc;
	uint16_t port;
	xdrproc_t xdr_args, xdr_result;
	void *args, *result;
};

static bool call_udp(const struct local_call *c)
{
	const struct timeval again = { .tv_usec = 250000 }, timeout = { .tv_sec = PING_SECONDS };
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(c->port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct netbuf to = { .buf = &addr, .len = sizeof(addr), .maxlen = sizeof(addr) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CLIENT *client = fd < 0 ? NULL : clnt_dg_create(fd, &to, c->prog, c->vers, 0, 0);
	bool answered;

	if (!client) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	clnt_control(client, CLSET_FD_CLOSE, NULL);
	clnt_control(client, CLSET_RETRY_TIMEOUT, (char *)&again);
	answered = clnt_call(client, c->proc, c->xdr_args, c->args, c->xdr_result, c->result,
			     timeout) == RPC_SUCCESS;
	clnt_destroy(client);
	return answered;
}

/* Version 2 of rpcbind is asked: later ones look up the transport that the question came by. */
uint16_t rpcbind_find_udp(uint32_t prog, uint32_t vers)
{
	struct pmap map = { prog, vers, IPPROTO_UDP, 0 };
	u_short port = 0;
	const struct local_call ask = { .prog = PMAPPROG,
					.vers = PMAPVERS,
					.proc = PMAPPROC_GETPORT,
					.port = PMAPPORT,
					.xdr_args = (xdrproc_t)xdr_pmap,
					.xdr_result = (xdrproc_t)xdr_u_short,
					.args = &map,
					.result = &port };
	struct local_call ping = { .prog = prog,
				   .vers = vers,
				   .proc = NULLPROC,
				   .xdr_args = xdr_nothing,
				   .xdr_result = xdr_nothing };

	if (!call_udp(&ask) || port == 0)
		return 0;
	ping.port = port;
	return call_udp(&ping) ? port : 0;
}
