/* SPDX-License-Identifier: BSD-2-Clause */
/* struct server and functions that its files share (daemon/daemon_server.c, server_image.c, server_transports.c). */
#ifndef RN_DAEMON_SERVER_PRIVATE_H
#define RN_DAEMON_SERVER_PRIVATE_H

#include <limits.h>
#include <pthread.h>

#include "daemon/admin/control.h"
#include "daemon/cluster_part.h"
#include "daemon/counters/counters.h"
#include "daemon/counters/daemon_trace.h"
#include "daemon/counters/numbers.h"
#include "daemon/daemon_drain.h"
#include "daemon/daemon_instance.h"
#include "daemon/daemon_register.h"
#include "daemon/daemon_server.h"
#include "daemon/exports/export_set.h"
#include "daemon/limits.h"
#include "daemon/names/names.h"
#include "daemon/programs.h"
#include "daemon/server_parts.h"
#include "daemon/service_manager.h"
#include "daemon/tasks.h"
#include "daemon/ticker.h"
#include "daemon/workers/admission.h"
#include "daemon/workers/fs_queues.h"
#include "daemon/workers/workers.h"

#define LOOPS_MAX 8
#define ANSWERS_MS 1000u /* time limit for calls under way */
#define ALL_WAITS UINT_MAX

/* The parts, in the order of their start. */
struct server {
	const struct cfg_settings *settings;
	struct logs *logs;
	const struct rn_logger *log; /* of the daemon itself */
	struct instance *instance;
	struct cluster_part *cluster; /* NULL: the server is alone */
	struct tasks *tasks;	      /* work that the control socket leaves to the main thread */
	struct control *control;      /* NULL: the settings want none */
	struct limits limits;
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct rn_pipe_pool *pipes; /* of NFS over TCP; or NULL */
	struct rpc_waits *waits;
	struct askers *askers;
	struct fs_queues *fs_queues;
	struct ticker *files_ticker, *clients_ticker;
	struct vfs *vfs;
	struct exports *exports;
	struct drain *drain;
	struct admission *admission;
	struct dialer dialer;
	struct programs programs;
	pthread_mutex_t clients_lock; /* outermost lock: one thread at a time ends clients' state */
	struct counters counters;
	struct numbers_former *former; /* what programs before this one have counted; or NULL */
	struct trace trace;
	struct rpc_server rpc;
	struct rpc_clients *clients;
	struct workers *workers;
	struct ev_loop *loops[LOOPS_MAX];
	unsigned nloops;
	struct tcp_server *tcp;
	struct udp_server *udp;
	struct tls *tls; /* NULL: TLS is not offered */
	struct rr_server *rdma;
	struct rr_left rdma_left; /* connections of the program before, while the server starts */
	struct registration_ports ports;
	struct registration *registration;
	_Atomic bool registered; /* with rpcbind, or not to be */
	struct service_manager *manager;
	struct image_reader *
		image; /* of the program or the run before this one, while the server starts; or NULL */
	struct image_reader *
		moved; /* `image`, if it is of the member's last run, which was moved here; or NULL */
	uint64_t former_conn; /* the last connection's id of the program before this one */
	struct start_report report;
};

/* daemon/daemon_server.c */

struct server_parts server_parts(struct server *s);
/* Ends what begins work by itself. True: calls waited for something, and go on to be answered. A second call does nothing. */
bool server_silence(struct server *s);
void server_quiesce_datagrams(struct server *s);

/* Steps of the start: 0 or -errno. daemon/server_transports.c */

int server_start_tcp(struct server *s);
/* Nothing but NFSv3 and what belongs to it is served over UDP. */
int server_start_udp(struct server *s);
int server_start_rdma(struct server *s);
/* All transports have taken their memory before: clients, who come at once after a restart, could take it. */
int server_start_listening(struct server *s);

/* daemon/server_image.c */

/* Takes the server's own state from the image that the program before this one has handed over. *instance: the descriptor of its lock, or -1. */
int server_load_own(struct server *s, int *instance);
/* Takes the state that the run before has left elsewhere. The keeper's copy of the memory has nothing of it. */
int server_load_moved(struct server *s);

#endif
