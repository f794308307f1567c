/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets that the server listens on: its own, and those that systemd passes. */
#include "daemon/listeners.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "transport/rdma/rdma_server.h"
#include "transport/tcp/tcp_server.h"
#include "transport/udp/udp_server.h"

enum { TEXT_MAX = INET6_ADDRSTRLEN + 8 };

enum { ACTIVATION_MAX = 64 }; /* sockets that may be passed */

struct activation {
	struct activation_socket {
		int fd;	      /* -1: taken */
		bool managed; /* the service manager's */
		struct sockaddr_storage at;
	} socket[ACTIVATION_MAX];
	unsigned n;
};

static const char *text_of(const struct sockaddr_storage *ss, char text[TEXT_MAX])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)ss;
	char addr[INET6_ADDRSTRLEN] = "?";

	if (ss->ss_family == AF_INET6) {
		inet_ntop(AF_INET6, &v6->sin6_addr, addr, sizeof(addr));
		snprintf(text, TEXT_MAX, "[%s]:%u", addr, ntohs(v6->sin6_port));
	} else {
		inet_ntop(AF_INET, &v4->sin_addr, addr, sizeof(addr));
		snprintf(text, TEXT_MAX, "%s:%u", addr, ntohs(v4->sin_port));
	}
	return text;
}

/* The reason why the server cannot take the socket, or NULL. */
static const char *fault_of(int fd, struct sockaddr_storage *at)
{
	socklen_t len = sizeof(*at);
	int v6only = 0;

	*at = (struct sockaddr_storage){ 0 };
	if (sd_is_socket_inet(fd, AF_UNSPEC, SOCK_STREAM, 1, 0) <= 0)
		return "it is no listening TCP socket; use ListenStream= with an address and a "
		       "port";
	if (getsockname(fd, (struct sockaddr *)at, &len) < 0)
		return strerror(errno);
	if (at->ss_family == AF_INET)
		return NULL;
	len = sizeof(v6only);
	if (getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, &len) < 0)
		return strerror(errno);
	return v6only ? NULL
		      : "it takes IPv4, too; set BindIPv6Only=ipv6-only, and name an IPv4 address";
}

/* The server waits for the socket beside others, and its children must not have it. */
static int activation_prepare(int fd)
{
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -errno;
	return 0;
}

static void activation_close_all(struct activation *a)
{
	for (unsigned i = 0; i < a->n; i++)
		if (a->socket[i].fd >= 0)
			close(a->socket[i].fd);
	a->n = 0;
}

/* Takes all that was passed to this process. One that is no listening TCP socket, or an IPv6 one that takes IPv4 too,
 * is an error, which is logged with what to change. 0; -EINVAL, with all of them closed. */
static int activation_take(struct activation *a, const struct rn_logger *log)
{
	const int n = sd_listen_fds(1);
	int rc = n > ACTIVATION_MAX ? -EINVAL : 0;

	a->n = 0;
	if (rc)
		rn_err(log, "the service manager passes %d sockets, and %d are the most", n,
		       ACTIVATION_MAX);
	for (int i = 0; i < n && i < ACTIVATION_MAX; i++) {
		struct activation_socket *s = &a->socket[a->n++];

		s->fd = SD_LISTEN_FDS_START + i;
		s->managed = true;
		const char *fault = fault_of(s->fd, &s->at);

		if (!fault && activation_prepare(s->fd) < 0)
			fault = strerror(errno);
		if (!fault)
			continue;
		rn_err(log, "socket %d of the service manager (ringnfsd.socket): %s", i + 1, fault);
		rc = -EINVAL;
	}
	if (rc)
		activation_close_all(a);
	return rc;
}

/* Takes those that the program before this one listened on. */
static void activation_inherit(struct activation *a, struct image_reader *image)
{
	struct image_at at = { 0 };
	int fd;

	while (image && a->n < ACTIVATION_MAX && (fd = tcp_saved_listener(image, &at)) >= 0) {
		struct activation_socket *s = &a->socket[a->n];

		*s = (struct activation_socket){ .fd = fd };
		if (fault_of(fd, &s->at))
			close(fd);
		else
			a->n++;
	}
}

static bool is_at(const struct sockaddr_storage *is, const struct sockaddr_storage *want)
{
	const struct sockaddr_in *a4 = (const struct sockaddr_in *)is;
	const struct sockaddr_in *b4 = (const struct sockaddr_in *)want;
	const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)is;
	const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)want;

	if (is->ss_family != want->ss_family)
		return false;
	if (is->ss_family == AF_INET6)
		return (b6->sin6_port == 0 || a6->sin6_port == b6->sin6_port) &&
		       memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
	return (b4->sin_port == 0 || a4->sin_port == b4->sin_port) &&
	       a4->sin_addr.s_addr == b4->sin_addr.s_addr;
}

/* The socket that listens at that address and port, which is the caller's from now on; -1: there is none. Port 0 is
 * any. */
static int activation_get(struct activation *a, const struct sockaddr_storage *at)
{
	for (unsigned i = 0; i < a->n; i++) {
		const int fd = a->socket[i].fd;

		if (fd < 0 || !is_at(&a->socket[i].at, at))
			continue;
		a->socket[i].fd = -1;
		return fd;
	}
	return -1;
}

/* Closes those that nobody has asked for, and logs each of the service manager's, with what to change. */
static void activation_end(struct activation *a, const struct rn_logger *log)
{
	char text[TEXT_MAX];

	for (unsigned i = 0; i < a->n; i++)
		if (a->socket[i].fd >= 0 && a->socket[i].managed)
			rn_warn(log,
				"the service manager has a socket at %s, which [tcp] does not "
				"name: it is "
				"not served; change listen, port, mount_port or rquota_port, or "
				"ringnfsd.socket",
				text_of(&a->socket[i].at, text));
	activation_close_all(a);
}

static socklen_t with_port(const struct sockaddr_storage *in, uint16_t port,
			   struct sockaddr_storage *out)
{
	*out = *in;
	if (in->ss_family == AF_INET6) {
		((struct sockaddr_in6 *)out)->sin6_port = htons(port);
		return sizeof(struct sockaddr_in6);
	}
	((struct sockaddr_in *)out)->sin_port = htons(port);
	return sizeof(struct sockaddr_in);
}

static uint16_t listeners_port_of(const struct sockaddr_storage *sa)
{
	return ntohs(sa->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port
					       : ((const struct sockaddr_in *)sa)->sin_port);
}

static const char *addr_text(const struct sockaddr_storage *sa, char *buf, size_t size)
{
	const void *a = sa->ss_family == AF_INET6
				? (const void *)&((const struct sockaddr_in6 *)sa)->sin6_addr
				: (const void *)&((const struct sockaddr_in *)sa)->sin_addr;

	return inet_ntop(sa->ss_family, a, buf, (socklen_t)size) ? buf : "?";
}

/* The addresses to listen on; none named means all of both families. */
static unsigned addresses(const struct cfg_addrs *cfg, struct sockaddr_storage out[CFG_MAX_ADDRS])
{
	if (cfg->n) {
		memcpy(out, cfg->addrs, cfg->n * sizeof(out[0]));
		return cfg->n;
	}
	memset(out, 0, 2 * sizeof(out[0]));
	out[0].ss_family = AF_INET;
	out[1].ss_family = AF_INET6;
	return 2;
}

/* Without IPv6 in the kernel, "all addresses" means those of IPv4. */
static bool no_family(const struct cfg_addrs *cfg, const struct sockaddr_storage *sa, int rc)
{
	return !cfg->n && sa->ss_family == AF_INET6 &&
	       (rc == -EAFNOSUPPORT || rc == -EADDRNOTAVAIL);
}

/* Listens there by a socket that was passed, or by one of its own. */
static int listen_at(struct tcp_server *s, struct activation *passed,
		     const struct sockaddr_storage *sa, socklen_t len,
		     struct sockaddr_storage *bound)
{
	const int fd = activation_get(passed, sa);

	return fd >= 0 ? tcp_server_adopt(s, fd, bound)
		       : tcp_server_listen(s, (const struct sockaddr *)sa, len, bound);
}

static int listen_port(struct tcp_server *s, struct activation *passed, const struct cfg_addrs *cfg,
		       uint16_t port, uint16_t got[2])
{
	struct sockaddr_storage list[CFG_MAX_ADDRS], sa, bound;
	unsigned n = addresses(cfg, list);

	for (unsigned i = 0; i < n; i++) {
		bool v6 = list[i].ss_family == AF_INET6;
		/* Port 0 lets the kernel choose, once for both families. */
		uint16_t want = port ? port : got[0];
		socklen_t len = with_port(&list[i], want, &sa);
		int rc = listen_at(s, passed, &sa, len, &bound);

		if (rc && no_family(cfg, &list[i], rc))
			continue;
		if (rc)
			return rc;
		got[v6] = listeners_port_of(&bound);
	}
	return 0;
}

/* Settings that all TCP ports but the first share. */
struct listening {
	struct tcp_server *s;
	struct activation *passed;
	const struct cfg_tcp *cfg;
	const struct rn_logger *log;
	uint16_t nfs[2]; /* ports of NFS over IPv4 and IPv6, 0: none */
};

/* Listens on a port of a program that the NFS port serves, too, if it has one. got becomes that port
 * over IPv4 and IPv6, or else NFS's. */
static void listen_further(const struct listening *l, const char *name, uint64_t port,
			   uint16_t got[2])
{
	const uint16_t *nfs = l->nfs;
	int rc = 0;

	got[0] = got[1] = 0;
	if (port && port != l->cfg->port)
		rc = listen_port(l->s, l->passed, &l->cfg->listen, (uint16_t)port, got);
	if (rc)
		rn_warn(l->log, "cannot listen on %s's port %llu (%s): %s is on port %u only", name,
			(unsigned long long)port, strerror(-rc), name, nfs[0] | nfs[1]);
	for (unsigned i = 0; i < 2; i++)
		got[i] = got[i] ? got[i] : nfs[i];
}

static int listen_nfs(struct listening *l)
{
	int rc = listen_port(l->s, l->passed, &l->cfg->listen, (uint16_t)l->cfg->port, l->nfs);

	if (rc)
		rn_err(l->log, "cannot listen on TCP port %llu: %s%s",
		       (unsigned long long)l->cfg->port, strerror(-rc),
		       rc == -EADDRINUSE
			       ? "; another NFS server (nfs-server.service?) has it: stop it, or "
				 "set port in [tcp]"
			       : "");
	return rc;
}

static int listen_tcp(struct listening *l, struct registration_ports *ports)
{
	uint16_t mount[2], rquota[2];
	const uint16_t *nfs = l->nfs;
	int rc = listen_nfs(l);

	if (rc)
		return rc;
	ports->tcp4 = nfs[0];
	ports->tcp6 = nfs[1];
	if (!ports->nfs3) {
		rn_notice(l->log, "NFS on TCP port %u", nfs[0] | nfs[1]);
		return 0;
	}
	listen_further(l, "MOUNT", l->cfg->mount_port, mount);
	ports->mount4 = mount[0];
	ports->mount6 = mount[1];
	rn_notice(l->log, "NFS on TCP port %u, MOUNT on TCP port %u", nfs[0] | nfs[1],
		  mount[0] | mount[1]);
	if (!ports->rquota)
		return 0;
	listen_further(l, "RQUOTA", l->cfg->rquota_port, rquota);
	ports->rquota4 = rquota[0];
	ports->rquota6 = rquota[1];
	if (rquota[0] != nfs[0] || rquota[1] != nfs[1])
		rn_notice(l->log, "RQUOTA on TCP port %u", rquota[0] | rquota[1]);
	return 0;
}

int listeners_tcp(struct tcp_server *s, const struct cfg_tcp *cfg, struct image_reader *image,
		  const struct rn_logger *log, struct registration_ports *ports)
{
	struct activation passed;
	struct listening l = { .s = s, .passed = &passed, .cfg = cfg, .log = log };
	int rc = activation_take(&passed, log);

	if (rc)
		return rc;
	activation_inherit(&passed, image);
	rc = listen_tcp(&l, ports);
	activation_end(&passed, log);
	return rc;
}

/* Receives on a port of all addresses; got is filled with it, by family. */
static int receive_port(struct udp_server *s, const struct cfg_addrs *cfg, uint64_t port,
			uint16_t got[2])
{
	struct sockaddr_storage list[CFG_MAX_ADDRS], sa, bound;
	const unsigned n = addresses(cfg, list);

	for (unsigned i = 0; i < n; i++) {
		const socklen_t len = with_port(&list[i], (uint16_t)port, &sa);
		const int rc = udp_server_listen(s, (const struct sockaddr *)&sa, len, &bound);

		if (rc && no_family(cfg, &list[i], rc))
			continue;
		if (rc)
			return rc;
		got[list[i].ss_family == AF_INET6] = listeners_port_of(&bound);
	}
	return 0;
}

/* A further port of a program, which the first one serves, too. */
static void receive_further(struct udp_server *s, const struct cfg_settings *set, uint64_t port,
			    const struct rn_logger *log, uint16_t got[2])
{
	int rc;

	if (!port || port == set->tcp.port)
		return;
	rc = receive_port(s, &set->tcp.listen, port, got);
	if (rc)
		rn_warn(log, "cannot receive on UDP port %llu: %s", (unsigned long long)port,
			strerror(-rc));
}

int listeners_udp(struct udp_server *s, const struct cfg_settings *set, const struct rn_logger *log,
		  struct registration_ports *ports)
{
	uint16_t udp[2] = { 0, 0 }, mount[2], rquota[2];
	const int rc = receive_port(s, &set->tcp.listen, set->tcp.port, udp);

	if (rc) {
		rn_log(log, set->udp.nfs ? RN_ERROR : RN_WARNING,
		       "cannot receive on UDP port %llu: %s; set udp.enabled to no if %s",
		       (unsigned long long)set->tcp.port, strerror(-rc),
		       "no client needs MOUNT, locks or quotas over UDP");
		return rc;
	}
	memcpy(mount, udp, sizeof(mount));
	memcpy(rquota, udp, sizeof(rquota));
	receive_further(s, set, set->tcp.mount_port, log, mount);
	if (ports->rquota)
		receive_further(s, set, set->tcp.rquota_port, log, rquota);
	ports->udp_nfs = set->udp.nfs;
	ports->udp4 = udp[0];
	ports->udp6 = udp[1];
	ports->mount_udp4 = mount[0];
	ports->mount_udp6 = mount[1];
	ports->rquota_udp4 = rquota[0];
	ports->rquota_udp6 = rquota[1];
	rn_notice(log, "%s on UDP port %u, MOUNT on UDP port %u",
		  set->udp.nfs ? "NFS and its locks" : "locks", udp[0] | udp[1],
		  mount[0] | mount[1]);
	return 0;
}

int listeners_rdma(struct rr_server *s, const struct cfg_rdma *cfg, const struct rn_logger *log,
		   struct registration_ports *ports)
{
	struct sockaddr_storage list[CFG_MAX_ADDRS], sa;
	unsigned n = addresses(&cfg->listen, list);
	bool must = cfg->enabled == CFG_YES, absent = false;
	char text[INET6_ADDRSTRLEN];

	for (unsigned i = 0; i < n; i++) {
		socklen_t len = with_port(&list[i], (uint16_t)cfg->port, &sa);
		int rc = rr_server_listen(s, (struct sockaddr *)&sa, len);

		if (rc && no_family(&cfg->listen, &list[i], rc)) {
			rn_notice(log, "RDMA port %llu is not served over IPv6: %s",
				  (unsigned long long)cfg->port, strerror(-rc));
			continue;
		}
		absent |= rc == -ENODEV && !must;
		if (rc == -ENODEV && !must)
			continue;
		if (rc) {
			rn_log(log, must ? RN_ERROR : RN_WARNING,
			       "cannot listen on RDMA port %llu of %s: %s",
			       (unsigned long long)cfg->port,
			       addr_text(&list[i], text, sizeof(text)), strerror(-rc));
			if (must)
				return rc;
			continue;
		}
		*(list[i].ss_family == AF_INET6 ? &ports->rdma6 : &ports->rdma4) =
			(uint16_t)cfg->port;
	}
	if (ports->rdma4 || ports->rdma6)
		rn_notice(log, "NFS on RDMA port %llu", (unsigned long long)cfg->port);
	else if (absent)
		rn_notice(log, "no RDMA device: serving TCP only until there is one");
	return 0;
}

bool listeners_rdma_came(struct rr_server *s, const struct cfg_rdma *cfg,
			 struct registration_ports *ports)
{
	const unsigned serves = rr_server_serves(s);
	const uint16_t port = (uint16_t)cfg->port;
	bool came = false;

	if ((serves & RR_SERVES_IPV4) && !ports->rdma4) {
		ports->rdma4 = port;
		came = true;
	}
	if ((serves & RR_SERVES_IPV6) && !ports->rdma6) {
		ports->rdma6 = port;
		came = true;
	}
	return came;
}
