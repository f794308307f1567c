/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_conns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/host.h"
#include "lib/saved_file.h"
#include "lib/util.h"
#include "rpc/address.h"

#define CONNS_NAME "connections"
#define CONNS_MAX 1024u /* connections in the file; further clients wait for their own time-outs */
#define CONNS_OF_HOST                                                                              \
	16u /* connections read for one remote address: Linux makes no more (nconnect) */
#define LINE_BYTES 104u /* longest line: two addresses, a port */
#define CONNS_BYTES (CONNS_MAX * LINE_BYTES)
#define VIEW_MOST 64u

struct former_conn {
	unsigned local; /* index of the member's address */
	uint8_t remote[16];
	uint16_t port;
};

struct cluster_conns {
	const struct cfg_settings *settings;
	struct rpc_conns *conns;
	const struct rn_logger *log;
	uint8_t address[CFG_MEMBER_ADDRS][16];
	int fd[CFG_MEMBER_ADDRS]; /* bound to the address and the port; -1: none */
	unsigned naddresses;
	struct former_conn former[CONNS_MAX];
	unsigned nformer;
	char text[CONNS_BYTES], written[CONNS_BYTES]; /* connections now, and those in the file */
	size_t len, written_len;
	unsigned n; /* lines of text */
	bool failing;
};

/* ---- the file ---- */

static bool conns_find_local(const struct cluster_conns *c, const uint8_t address[16],
			     unsigned *index)
{
	for (*index = 0; *index < c->naddresses; ++*index)
		if (memcmp(c->address[*index], address, 16) == 0)
			return true;
	return false;
}

static bool conns_parse_address(const char *text, uint8_t out[16])
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		rn_address_map((const struct sockaddr *)&v4, out);
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		rn_address_map((const struct sockaddr *)&v6, out);
	else
		return false;
	return rn_address_is_one_machine(out);
}

static bool conns_parse_port(const char *text, uint16_t *out)
{
	char *end;
	const unsigned long n = strtoul(text, &end, 10);

	*out = (uint16_t)n;
	return *text >= '1' && *text <= '9' && !*end && n <= UINT16_MAX;
}

/* Takes a line, which whoever can write to the state directory may have made up: one packet for each, from an address of the member's. */
static bool conns_take_line(struct cluster_conns *c, char *line)
{
	struct former_conn *f = &c->former[c->nformer];
	char *rest = line;
	const char *local = strsep(&rest, " "), *remote = strsep(&rest, " "), *port = rest;
	uint8_t at[16];
	unsigned same = 0;

	if (!port || !conns_parse_address(local, at) || !conns_find_local(c, at, &f->local) ||
	    !conns_parse_address(remote, f->remote) || !conns_parse_port(port, &f->port))
		return false;
	for (unsigned i = 0; i < c->nformer; i++)
		same += memcmp(c->former[i].remote, f->remote, 16) == 0;
	if (same >= CONNS_OF_HOST)
		return false;
	c->nformer++;
	return true;
}

static void conns_take_text(struct cluster_conns *c, char *text)
{
	unsigned refused = 0;
	char *line;

	while (c->nformer < CONNS_MAX && text && (line = strsep(&text, "\n")) != NULL && *line)
		refused += !conns_take_line(c, line);
	if (refused)
		rn_warn(c->log,
			"cluster: %s/" CONNS_NAME ": %u lines are no connections of this member's "
			"clients, or too many of one client",
			c->settings->server.state_dir, refused);
}

/* The state directory. A descriptor, or -errno. */
static int conns_open_dir(const struct cluster_conns *c)
{
	const int fd = open(c->settings->server.state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void conns_read(struct cluster_conns *c)
{
	const int dirfd = conns_open_dir(c);
	ssize_t n = -1;
	int fd;

	if (dirfd < 0)
		return;
	fd = openat(dirfd, CONNS_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	close(dirfd);
	if (fd >= 0) {
		n = read(fd, c->text, sizeof(c->text) - 1);
		close(fd);
	}
	if (n > 0) {
		c->text[n] = '\0';
		conns_take_text(c, c->text);
	}
}

static int conns_replace(const struct cluster_conns *c)
{
	const int dirfd = conns_open_dir(c);
	int rc;

	if (dirfd < 0)
		return dirfd;
	rc = rn_file_replace(dirfd, CONNS_NAME, c->text, c->len);
	close(dirfd);
	return rc;
}

static void conns_put(void *arg, const struct rpc_conn_view *v)
{
	struct cluster_conns *c = arg;
	char local[RN_ADDRESS_TEXT], remote[RN_ADDRESS_TEXT];
	uint8_t at[16], peer[16];
	unsigned index;

	rn_address_map((const struct sockaddr *)&v->local, at);
	rn_address_map((const struct sockaddr *)&v->peer, peer);
	if (c->n == CONNS_MAX || v->dialed || v->closing || strncmp(v->netid, "tcp", 3) != 0 ||
	    rpc_address_port(&v->local) != c->settings->tcp.port ||
	    !conns_find_local(c, at, &index) || !rn_address_is_one_machine(peer))
		return;
	rn_address_text(at, local);
	rn_address_text(peer, remote);
	c->len += (size_t)snprintf(c->text + c->len, LINE_BYTES, "%s %s %u\n", local, remote,
				   rpc_address_port(&v->peer));
	c->n++;
}

void cluster_conns_note(struct cluster_conns *c)
{
	uint64_t after = 0;

	if (!c)
		return;
	c->len = 0;
	c->n = 0;
	while (!rpc_conns_view(c->conns, &after, VIEW_MOST, conns_put, c))
		;
	if (c->len == c->written_len && memcmp(c->text, c->written, c->len) == 0)
		return;
	const int rc = conns_replace(c);

	if (rc && !c->failing)
		rn_warn(c->log,
			"cluster: %s/" CONNS_NAME " cannot be written: %s; clients may wait longer "
			"after the end of this machine",
			c->settings->server.state_dir, rn_error_text(rc));
	c->failing = rc != 0;
	if (rc)
		return;
	memcpy(c->written, c->text, c->len);
	c->written_len = c->len;
}

/* ---- packets ---- */

/* Binds a socket to the member's address. -1: another process listens there already, as the service manager may. */
static int conns_bind(const uint8_t address[16], uint16_t port)
{
	struct sockaddr_storage at;
	const socklen_t len = rn_address_unmap(address, 0, port, &at);
	const int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) == 0 &&
	    bind(fd, (const struct sockaddr *)&at, len) == 0)
		return fd;
	close(fd);
	return -1;
}

/* Sends one SYN. EADDRNOTAVAIL: the client has connected again, from the same port. */
static bool conns_send(int fd, const struct former_conn *f)
{
	const struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_storage to;
	const socklen_t len = rn_address_unmap(f->remote, 0, f->port, &to);
	const bool sent =
		connect(fd, (const struct sockaddr *)&to, len) == 0 || errno == EINPROGRESS;

	(void)connect(fd, &none, sizeof(none)); /* ends the connection; the socket stays bound */
	return sent;
}

static void conns_unbind(struct cluster_conns *c)
{
	for (unsigned i = 0; i < c->naddresses; i++) {
		if (c->fd[i] >= 0)
			close(c->fd[i]);
		c->fd[i] = -1;
	}
}

void cluster_conns_end_former(struct cluster_conns *c)
{
	unsigned sent = 0;

	if (!c)
		return;
	for (unsigned i = 0; i < c->nformer; i++) {
		const int fd = c->fd[c->former[i].local];

		sent += fd >= 0 && conns_send(fd, &c->former[i]);
	}
	conns_unbind(c);
	if (sent)
		rn_info(c->log, "cluster: %u connections of the run before are ended", sent);
}

int cluster_conns_new(const struct cfg_settings *settings, struct rpc_conns *conns, bool continues,
		      const struct rn_logger *log, struct cluster_conns **out)
{
	const struct cfg_addrs *a = &settings->cluster.address;
	struct cluster_conns *c;

	*out = NULL;
	if (!a->n || !settings->tcp.enabled || !settings->tcp.port)
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->settings = settings;
	c->conns = conns;
	c->log = log;
	c->written_len = SIZE_MAX; /* the file is not known, so it is written anew */
	c->naddresses = rn_min(a->n, CFG_MEMBER_ADDRS);
	for (unsigned i = 0; i < c->naddresses; i++) {
		rn_address_map((const struct sockaddr *)&a->addrs[i], c->address[i]);
		c->fd[i] = -1;
	}
	if (!continues)
		conns_read(c);
	for (unsigned i = 0; i < c->naddresses && c->nformer > 0; i++)
		c->fd[i] = conns_bind(c->address[i], (uint16_t)settings->tcp.port);
	*out = c;
	return 0;
}

void cluster_conns_free(struct cluster_conns *c)
{
	if (c)
		conns_unbind(c);
	free(c);
}
