/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MOUNT over TCP, and rpcbind before it (RFC 1833 section 3.2, version 2's GETPORT), for servers
 * that answer MOUNT on no RDMA port. One record each way (RFC 5531 section 11).
 */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "tools/conform/conform_call.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/run.h"

#define REPLY_MAX 1024u

static int cf_mount_dial(const char *host, const char *port, int timeout_ms)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *ai, *a;
	struct timeval limit = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	int fd = -1;

	if (getaddrinfo(host, port, &hints, &ai) != 0)
		return -EINVAL;
	for (a = ai; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		/* Servers may want a privileged port, which only root gets. */
		if (a->ai_family == AF_INET && geteuid() == 0)
			bindresvport(fd, NULL);
		if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(ai);
	return fd < 0 ? -ECONNREFUSED : fd;
}

static bool cf_mount_read(int fd, uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = read(fd, p, len);
		if (n <= 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

struct reply {
	uint8_t buf[REPLY_MAX];
	struct rpc_seg seg;
	struct xdr_in x; /* the results */
};

/* One call by TCP, and its reply. */
static int call_tcp(const struct cf_run *run, const char *port, struct cf_call *c, struct reply *r)
{
	struct xdr_in *x = &r->x;
	size_t len = xdr_out_pos(&c->rpc);
	uint8_t mark[4] = { 0x80 | len >> 24, len >> 16, len >> 8, len };
	uint32_t vlen;
	int fd = cf_mount_dial(run->host, port, run->timeout_ms);

	if (fd < 0)
		return fd;
	bool good = write(fd, mark, 4) == 4 && write(fd, c->rpc.base, len) == (ssize_t)len &&
		    cf_mount_read(fd, mark, 4);
	uint32_t n = cf_word(mark) & 0x7fffffff;
	good = good && n <= REPLY_MAX && cf_mount_read(fd, r->buf, n);
	close(fd);
	if (!good)
		return -EIO;
	r->seg = (struct rpc_seg){ .base = r->buf, .len = n };
	xdr_in_init(x, &r->seg, 1, NULL);
	bool ours = xdr_get_u32(x) == c->xid && xdr_get_u32(x) == 1 && xdr_get_u32(x) == 0;
	xdr_get_u32(x);
	xdr_get_opaque(x, 400, &vlen);
	return ours && xdr_get_u32(x) == CF_SUCCESS && !x->err ? 0 : -EPROTO;
}

static int ask_rpcbind(struct cf_test *t, char port[16])
{
	struct cf_call *c = cf_call_new_none(t, 100000, 2, 3);
	struct reply r;

	xdr_put_u32(&c->rpc, CF_PROG_MOUNT);
	xdr_put_u32(&c->rpc, 3);
	xdr_put_u32(&c->rpc, IPPROTO_TCP);
	xdr_put_u32(&c->rpc, 0);
	int rc = call_tcp(t->run, "111", c, &r);
	if (rc)
		return rc;
	uint32_t n = xdr_get_u32(&r.x);
	if (!n || n > 65535)
		return -ENOENT;
	snprintf(port, 16, "%u", n);
	return 0;
}

int cf_mount_by_tcp(const struct cf_run *run, struct cf_fh *fh, char *why, size_t size)
{
	struct cf_run own = *run;
	struct cf_test t;
	char port[16];
	struct reply r;
	int rc = 0;

	cf_test_begin(&t, &own, NULL, 0);
	snprintf(port, sizeof(port), "%s", run->mount_port ? run->mount_port : "");
	if (!port[0])
		rc = ask_rpcbind(&t, port);
	if (rc) {
		snprintf(why, size,
			 "MOUNT is not answered over RDMA, and asking rpcbind: %s (see "
			 "--mount-port)",
			 strerror(-rc));
	} else {
		struct cf_call *c = cf_mount_mnt(&t, run->export_path);
		rc = call_tcp(run, port, c, &r);
		uint32_t status = rc ? 0 : xdr_get_u32(&r.x);
		if (!rc && !status)
			cf_get_fh(&r.x, fh);
		if (rc)
			snprintf(why, size, "MOUNT on TCP port %s: %s", port, strerror(-rc));
		else if (status || r.x.err)
			snprintf(why, size, "MNT %s: MOUNT status %u", run->export_path, status);
		rc = rc || status || r.x.err ? -1 : 0;
	}
	cf_test_end(&t);
	return rc ? -1 : 0;
}
