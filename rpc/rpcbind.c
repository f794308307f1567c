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
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

static int rpcbind_change(uint32_t prog, uint32_t vers, const char *netid, const uint16_t *port)
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
	return rpcbind_change(prog, vers, netid, &port);
}

int rpcbind_unset(uint32_t prog, uint32_t vers, const char *netid)
{
	return rpcbind_change(prog, vers, netid, NULL);
}

static bool_t xdr_nothing(XDR *x, ...)
{
	(void)x;
	return TRUE;
}

/* "superuser", a number, or "unknown". */
static bool read_owner(const char *owner, uid_t *out)
{
	char *end;
	unsigned long uid = strtoul(owner, &end, 10);

	*out = strcmp(owner, "superuser") == 0 ? 0 : (uid_t)uid;
	return strcmp(owner, "superuser") == 0 || (end != owner && *end == '\0');
}

/* The last two numbers of a universal address. */
static uint16_t rpcbind_uaddr_port(const char *uaddr)
{
	const char *low = strrchr(uaddr, '.');
	const char *high = low ? memrchr(uaddr, '.', (size_t)(low - uaddr)) : NULL;

	return high ? (uint16_t)((strtoul(high + 1, NULL, 10) & 0xff) << 8 |
				 (strtoul(low + 1, NULL, 10) & 0xff))
		    : 0;
}

int rpcbind_list(void (*each)(void *ctx, const struct rpcbind_entry *e), void *ctx)
{
	const struct timeval timeout = { .tv_sec = CALL_SECONDS };
	rpcblist_ptr list = NULL;
	CLIENT *client = NULL;
	int rc = connect_rpcbind(&client);

	if (rc < 0)
		return rc;
	rc = clnt_call(client, RPCBPROC_DUMP, xdr_nothing, NULL, (xdrproc_t)xdr_rpcblist_ptr,
		       (char *)&list, timeout) == RPC_SUCCESS
		     ? 0
		     : -EIO;
	for (rpcblist_ptr l = list; rc == 0 && l; l = l->rpcb_next) {
		struct rpcbind_entry e = { .prog = l->rpcb_map.r_prog,
					   .vers = l->rpcb_map.r_vers,
					   .netid = l->rpcb_map.r_netid,
					   .port = rpcbind_uaddr_port(l->rpcb_map.r_addr) };

		e.owner_known = read_owner(l->rpcb_map.r_owner, &e.owner);
		each(ctx, &e);
	}
	clnt_freeres(client, (xdrproc_t)xdr_rpcblist_ptr, (char *)&list);
	clnt_destroy(client);
	return rc;
}

bool rpcbind_answers_udp(uint32_t prog, uint32_t vers, uint16_t port)
{
	const struct timeval again = { .tv_usec = 250000 }, timeout = { .tv_sec = PING_SECONDS };
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(port),
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct netbuf to = { .buf = &addr, .len = sizeof(addr), .maxlen = sizeof(addr) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CLIENT *client = fd < 0 ? NULL : clnt_dg_create(fd, &to, prog, vers, 0, 0);
	bool answered;

	if (!client) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	clnt_control(client, CLSET_FD_CLOSE, NULL);
	clnt_control(client, CLSET_RETRY_TIMEOUT, (char *)&again);
	answered = clnt_call(client, NULLPROC, xdr_nothing, NULL, xdr_nothing, NULL, timeout) ==
		   RPC_SUCCESS;
	clnt_destroy(client);
	return answered;
}
