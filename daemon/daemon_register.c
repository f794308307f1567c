/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_register.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nsm/nsm.h"
#include "rpc/rpcbind.h"

/* For each version of NFS, MOUNT, NLM, NFSACL, RQUOTA and NSM, six netids. */
#define MAPPINGS (6 * (3 + 3 + 3 + 2 + 2 + 1))

#define LOOK_SECONDS 30

/* Directory of rpc.statd; its owner is the user that rpc.statd runs and registers as. */
#define STATD_DIR "/var/lib/nfs"

struct mapping {
	uint32_t prog, vers;
	const char *netid;
	uint16_t port;
	bool set;
	bool looked; /* it was met by an earlier look */
	/* The registration that rpcbind had for this program, version and netid at the last look. */
	bool found, trusted;
	uint16_t there;
};

struct registration {
	const struct rn_logger *log;
	struct registration_hook hook;
	pthread_t thread;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	bool stop, look;
	int failed; /* what the last look ended with; 1: there was none. The thread's */
	uid_t statd;
	unsigned n; /* elements of map in use; grows */
	struct mapping map[MAPPINGS];
};

struct ports {
	uint16_t tcp4, tcp6, rdma4, rdma6, udp4, udp6;
};

static bool registration_has_mapping(const struct registration *r, const struct mapping *m)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->map[i].prog == m->prog && r->map[i].vers == m->vers &&
		    strcmp(r->map[i].netid, m->netid) == 0)
			return true;
	return false;
}

static void registration_add(struct registration *r, uint32_t prog, uint32_t vers,
			     const char *netid, uint16_t port)
{
	const struct mapping m = { .prog = prog, .vers = vers, .netid = netid, .port = port };

	if (port && r->n < rn_array_size(r->map) && !registration_has_mapping(r, &m))
		r->map[r->n++] = m;
}

/* A program that answers on these ports, 0 being none. */
static void add_all(struct registration *r, uint32_t prog, uint32_t vers, const struct ports *p)
{
	registration_add(r, prog, vers, "tcp", p->tcp4);
	registration_add(r, prog, vers, "tcp6", p->tcp6);
	registration_add(r, prog, vers, "rdma", p->rdma4);
	registration_add(r, prog, vers, "rdma6", p->rdma6);
	registration_add(r, prog, vers, "udp", p->udp4);
	registration_add(r, prog, vers, "udp6", p->udp6);
}

/* A look at the first n. */
struct looking {
	struct registration *r;
	unsigned n;
};

static void registration_compare(void *ctx, const struct rpcbind_entry *e)
{
	const struct looking *l = ctx;
	struct registration *r = l->r;

	for (unsigned i = 0; i < l->n; i++) {
		struct mapping *m = &r->map[i];

		if (m->prog != e->prog || m->vers != e->vers || strcmp(m->netid, e->netid) != 0)
			continue;
		m->found = true;
		m->there = e->port;
		m->trusted = e->owner_known && (e->owner == 0 || e->owner == geteuid() ||
						(e->owner == r->statd && m->prog == NSM_PROGRAM));
	}
}

/* True if another status monitor serves this machine: rpc.statd, with all that it has registered. What an
 * earlier server has left registered does not answer, or is at the port that is this server's now. */
static bool has_other_monitor(const struct registration *r, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		const struct mapping *m = &r->map[i];

		if (m->prog != NSM_PROGRAM || strcmp(m->netid, "udp") != 0)
			continue;
		if (!m->found || !m->trusted || m->there == m->port ||
		    !rpcbind_answers_udp(m->prog, m->vers, m->there))
			return false;
		if (!m->looked)
			rn_notice(r->log,
				  "another status monitor (rpc.statd) serves this machine at UDP "
				  "port %u: "
				  "it is told when a client restarts, and the client's NFSv3 locks "
				  "are not "
				  "freed then",
				  m->there);
		return true;
	}
	return false;
}

/* True if what rpcbind has, or has not, stays. */
static bool registration_entry_stays(const struct mapping *m, bool other_monitor)
{
	if (m->prog == NSM_PROGRAM && other_monitor)
		return true;
	return m->found && m->trusted &&
	       (m->there == m->port || (m->prog != NSM_PROGRAM && m->looked));
}

static void registration_log(const struct registration *r, int rc, unsigned done, unsigned failed,
			     bool again)
{
	if (rc == -ECONNREFUSED && r->failed != rc)
		rn_warn(r->log, "no rpcbind here: clients must name the ports (port=, mountport=)");
	else if (rc && failed == 0 && r->failed != rc)
		rn_warn(r->log, "rpcbind does not answer: %s", strerror(-rc));
	else if (rc && r->failed != rc)
		rn_warn(r->log, "rpcbind refused %u of %u registrations: %s", failed, done + failed,
			strerror(-rc));
	else if (!rc && !again)
		rn_info(r->log, "registered with rpcbind");
	else if (!rc && done)
		rn_notice(r->log,
			  "registered with rpcbind again: %u registrations were missing or another "
			  "user's",
			  done);
}

/* Looks at the first n. Without the lock: existing entries do not change, but for what only this thread uses. */
static void registration_look_at(struct registration *r, unsigned n)
{
	const bool again = r->failed != 1 && n > 0 && r->map[n - 1].looked;
	unsigned done = 0, failed = 0;
	int rc;

	for (unsigned i = 0; i < n; i++)
		r->map[i].found = false;
	rc = rpcbind_list(registration_compare, &(struct looking){ r, n });
	const bool listed = rc == 0, other_monitor = listed && has_other_monitor(r, n);

	for (unsigned i = 0; listed && i < n; i++) {
		struct mapping *m = &r->map[i];
		const bool as_it_is = registration_entry_stays(m, other_monitor);

		m->looked = true;
		if (as_it_is) {
			m->set = m->found && m->there == m->port;
			continue;
		}
		const int e = rpcbind_set(m->prog, m->vers, m->netid, m->port);

		m->set = e == 0;
		rc = e ? e : rc;
		done += e == 0;
		failed += e != 0;
	}
	registration_log(r, rc, done, failed, again);
	r->failed = rc;
}

/* Waits until there is something to look at. With the lock. */
static void await_look(struct registration *r, unsigned seen)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += LOOK_SECONDS;
	while (!r->stop && !r->look && seen == r->n)
		if (pthread_cond_timedwait(&r->changed, &r->lock, &until) == ETIMEDOUT)
			break;
	r->look = false;
}

static void *register_all(void *arg)
{
	struct registration *r = arg;
	bool first = true;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		const unsigned n = r->n;

		pthread_mutex_unlock(&r->lock);
		registration_look_at(r, n);
		if (first && r->hook.registered)
			r->hook.registered(r->hook.ctx);
		first = false;
		pthread_mutex_lock(&r->lock);
		await_look(r, n);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void add_programs(struct registration *r, const struct registration_ports *p)
{
	const struct ports nfs = { p->tcp4,
				   p->tcp6,
				   p->rdma4,
				   p->rdma6,
				   p->udp_nfs ? p->udp4 : 0,
				   p->udp_nfs ? p->udp6 : 0 };
	const struct ports nfs4 = { p->tcp4, p->tcp6, p->rdma4, p->rdma6, 0, 0 };
	const struct ports locks = { p->tcp4, p->tcp6, p->rdma4, p->rdma6, p->udp4, p->udp6 };
	const struct ports monitor = { p->tcp4, p->tcp6, p->rdma4, p->rdma6, p->nsm, p->nsm };
	const struct ports mount = { p->mount4, p->mount6,     p->rdma4,
				     p->rdma6,	p->mount_udp4, p->mount_udp6 };
	const struct ports rquota = { p->rquota4, p->rquota6,	  p->rdma4,
				      p->rdma6,	  p->rquota_udp4, p->rquota_udp6 };

	const bool served[] = { [2] = p->nfs2, [3] = p->nfs3, [4] = p->nfs4 };

	for (uint32_t v = 2; v < rn_array_size(served); v++)
		if (served[v])
			add_all(r, NFS_PROGRAM, v, v < 4 ? &nfs : &nfs4);
	for (uint32_t v = p->nfs2 ? 1 : 3; p->nfs3 && v <= 3; v++)
		add_all(r, MOUNT_PROGRAM, v, &mount);
	if (p->nfs3) {
		add_all(r, NLM_PROGRAM, 1, &locks);
		add_all(r, NLM_PROGRAM, 3, &locks);
		add_all(r, NLM_PROGRAM, NLM_VERSION, &locks);
		if (p->nfs2)
			add_all(r, NFSACL_PROGRAM, 2, &nfs);
		add_all(r, NFSACL_PROGRAM, NFSACL_VERSION, &nfs);
	}
	for (uint32_t v = 1; p->rquota && v <= 2; v++)
		add_all(r, RQUOTA_PROGRAM, v, &rquota);
	if (p->nsm)
		add_all(r, NSM_PROGRAM, NSM_VERSION, &monitor);
}

static void free_registration(struct registration *r)
{
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

struct registration *registration_start(const struct registration_ports *p,
					const struct registration_hook *hook,
					const struct rn_logger *log)
{
	struct registration *r = calloc(1, sizeof(*r));
	pthread_condattr_t monotonic;
	struct stat st;

	if (!r)
		return NULL;
	r->log = log;
	r->hook = *hook;
	r->failed = 1;
	r->statd = stat(STATD_DIR, &st) == 0 ? st.st_uid : 0;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	add_programs(r, p);
	int rc = pthread_create(&r->thread, NULL, register_all, r);
	if (rc) {
		rn_warn(log, "cannot register with rpcbind: %s", strerror(rc));
		free_registration(r);
		return NULL;
	}
	return r;
}

void registration_rdma(struct registration *r, const struct registration_ports *p)
{
	pthread_mutex_lock(&r->lock);
	add_programs(r, p);
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void registration_look(struct registration *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->look = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

void registration_stop(struct registration *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	for (unsigned i = 0; i < r->n; i++)
		if (r->map[i].set)
			rpcbind_unset(r->map[i].prog, r->map[i].vers, r->map[i].netid);
	free_registration(r);
}
