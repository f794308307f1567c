/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/register.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nsm/nsm.h"
#include "rpc/rpcbind.h"

/* For each version of NFS, MOUNT, NLM, NFSACL, RQUOTA and NSM, six netids. */
#define MAPPINGS (6 * (3 + 3 + 3 + 2 + 2 + 1))

struct mapping {
	uint32_t prog, vers;
	const char *netid;
	uint16_t port;
	bool set;
};

struct registration {
	const struct rn_logger *log;
	struct registration_hook hook;
	uint16_t nsm; /* port of the status monitor, which does not change */
	pthread_t thread;
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	bool stop;
	unsigned n; /* elements of map in use; grows */
	struct mapping map[MAPPINGS];
};

struct ports {
	uint16_t tcp4, tcp6, rdma4, rdma6, udp4, udp6;
};

static bool is_there(const struct registration *r, const struct mapping *m)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->map[i].prog == m->prog && r->map[i].vers == m->vers &&
		    strcmp(r->map[i].netid, m->netid) == 0)
			return true;
	return false;
}

static void add(struct registration *r, uint32_t prog, uint32_t vers, const char *netid,
		uint16_t port)
{
	const struct mapping m = { prog, vers, netid, port, false };

	if (port && r->n < rn_array_size(r->map) && !is_there(r, &m))
		r->map[r->n++] = m;
}

/* A program that answers on these ports, 0 being none. */
static void add_all(struct registration *r, uint32_t prog, uint32_t vers, const struct ports *p)
{
	add(r, prog, vers, "tcp", p->tcp4);
	add(r, prog, vers, "tcp6", p->tcp6);
	add(r, prog, vers, "rdma", p->rdma4);
	add(r, prog, vers, "rdma6", p->rdma6);
	add(r, prog, vers, "udp", p->udp4);
	add(r, prog, vers, "udp6", p->udp6);
}

/* True if another status monitor serves this machine. What an earlier server has left registered does
 * not answer, or is at the port that is this server's now. */
static bool is_taken(struct registration *r, const struct mapping *m)
{
	const uint16_t port = m->prog == NSM_PROGRAM ? rpcbind_find_udp(m->prog, m->vers) : 0;

	if (!port || port == r->nsm)
		return false;
	if (strcmp(m->netid, "udp") == 0)
		rn_notice(r->log,
			  "another status monitor (rpc.statd) serves this machine at UDP port %u: "
			  "it is told when a "
			  "client restarts, and the client's NFSv3 locks are not freed then",
			  port);
	return true;
}

/* Without the lock: existing entries do not change, but for `set`, which only this thread uses. */
static void register_some(struct registration *r, unsigned from, unsigned to)
{
	unsigned failed = 0;
	int rc = 0;

	for (unsigned i = from; i < to; i++) {
		struct mapping *m = &r->map[i];

		if (is_taken(r, m))
			continue;
		int e = rpcbind_set(m->prog, m->vers, m->netid, m->port);

		m->set = e == 0;
		if (e) {
			rc = e;
			failed++;
		}
		if (e == -ECONNREFUSED)
			break;
	}
	if (rc == -ECONNREFUSED)
		rn_warn(r->log, "no rpcbind here: clients must name the ports (port=, mountport=)");
	else if (failed)
		rn_warn(r->log, "rpcbind refused %u of %u registrations: %s", failed, to - from,
			strerror(-rc));
	else
		rn_info(r->log, "registered with rpcbind");
}

static void *register_all(void *arg)
{
	struct registration *r = arg;
	unsigned done = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		const unsigned n = r->n;

		if (done == n) {
			pthread_cond_wait(&r->changed, &r->lock);
			continue;
		}
		pthread_mutex_unlock(&r->lock);
		register_some(r, done, n);
		if (done == 0 && r->hook.registered)
			r->hook.registered(r->hook.ctx);
		done = n;
		pthread_mutex_lock(&r->lock);
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

	if (!r)
		return NULL;
	r->log = log;
	r->hook = *hook;
	r->nsm = p->nsm;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->changed, NULL);
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
