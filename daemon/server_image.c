/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's state goes into an image (lib/image.h) when the server has come to rest, and comes out of it when the next program or run starts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "config.h"
#include "daemon/server_private.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "rpc/conns.h"
#include "vfs/vfs_image.h"

#define SLOW_CLIENTS_MS 200u /* time for clients that send a call or take a reply slowly */

/* The server's own section of the image. */
#define SERVER_SECTION "server"

struct saved_server {
	uint32_t count;
	uint64_t
		begun_ns; /* CLOCK_MONOTONIC: when the program before this one took no more calls */
	struct image_bytes version, why;
	int instance; /* descriptor of the lock */
	uint64_t begun_wall_ns, last_conn;
};
static const struct image_field saved_server_fields[] = {
	IMAGE_NUMBER(1, struct saved_server, begun_ns),
	IMAGE_BYTES(2, struct saved_server, version),
	IMAGE_BYTES(3, struct saved_server, why),
	IMAGE_FD(4, struct saved_server, instance),
	IMAGE_NUMBER(5, struct saved_server, count),
	IMAGE_NUMBER(6, struct saved_server, begun_wall_ns),
	IMAGE_NUMBER(7, struct saved_server, last_conn),
};
static const struct image_kind saved_server_kind = { 1, rn_array_size(saved_server_fields),
						     saved_server_fields };

static void image_text(char *to, size_t size, const struct image_bytes *from)
{
	snprintf(to, size, "%.*s", (int)from->len, from->at ? (const char *)from->at : "");
}

int server_load_own(struct server *s, int *instance)
{
	struct saved_server saved = { .instance = -1 };
	struct image_at at;

	*instance = -1;
	if (!s->image)
		return 0;
	if (!image_enter(s->image, SERVER_SECTION, &at) ||
	    image_get(&at, &saved_server_kind, &saved) < 0)
		return -EPROTO;
	*instance = saved.instance;
	s->report.begun_ns = saved.begun_ns;
	s->report.count = saved.count + 1;
	s->former_conn = saved.last_conn;
	image_text(s->report.version, sizeof(s->report.version), &saved.version);
	image_text(s->report.why, sizeof(s->report.why), &saved.why);
	s->report.how = saved.why.at ? START_LISTENERS : START_WHOLE;
	return 0;
}

int server_load_moved(struct server *s)
{
	struct saved_server saved = { .instance = -1 };
	struct image_at at;

	if (!s->cluster || s->image)
		return 0;
	cluster_part_take_state(s->cluster, &s->moved);
	if (!s->moved)
		return 0;
	s->image = s->moved;
	s->report.how = START_MOVED;
	if (!image_enter(s->image, SERVER_SECTION, &at) ||
	    image_get(&at, &saved_server_kind, &saved) < 0)
		return -EPROTO;
	s->report.begun_ns = saved.begun_wall_ns;
	image_text(s->report.version, sizeof(s->report.version), &saved.version);
	return 0;
}

static bool datagrams_under_way(const struct server *s)
{
	struct udp_stats udp = { .requests_busy = 0 };

	if (s->udp)
		udp_server_stats(s->udp, &udp);
	return udp.requests_busy > 0;
}

/* Waits until no call is under way. False: some take too long. A moment only is waited for clients that send a call or take a reply slowly, whose
 * connections end then; for records, without which calls are told to come again; and for what clients say to a lock that they have got, or they
 * are told of it twice. */
static bool come_to_rest(struct server *s)
{
	const struct timespec pause = { .tv_nsec = 1000 * 1000 };

	for (unsigned ms = 0; ms < ANSWERS_MS; ms++) {
		const bool slow = (s->tcp && tcp_server_busy(s->tcp) > 0) ||
				  (s->programs.nfs3 && nlm_grants_under_way(s->programs.nfs3) > 0);

		if (ms == SLOW_CLIENTS_MS)
			rpc_waits_close(s->waits, ALL_WAITS);
		if (rpc_conns_under_way(rpc_clients_conns(s->clients)) == 0 &&
		    !datagrams_under_way(s) && (!slow || ms >= SLOW_CLIENTS_MS))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void server_save_own(const struct server *s, const char *why, int instance,
			    uint64_t begun_ns, struct image_writer *w)
{
	struct saved_server saved = {
		.begun_ns = begun_ns,
		.begun_wall_ns = rn_wall_ns() - (rn_now_ns() - begun_ns),
		.count = s->report.count,
		.version = { (const uint8_t *)PACKAGE_VERSION, sizeof(PACKAGE_VERSION) - 1 },
		.instance = instance,
		.last_conn = rpc_conns_last_id(rpc_clients_conns(s->clients)),
	};

	if (why)
		saved.why = (struct image_bytes){ (const uint8_t *)why, (uint32_t)strlen(why) };
	image_begin(w, SERVER_SECTION);
	image_put(w, &saved_server_kind, &saved);
}

/* Takes no new calls, and waits for those under way. NULL, or why the state cannot be handed over. */
static const char *server_rest(struct server *s)
{
	server_silence(s);
	if (s->tcp)
		tcp_server_finish(s->tcp);
	server_quiesce_datagrams(s);
	if (!come_to_rest(s))
		return "calls under way did not end in a second";
	nsm_stop(s->programs.nsm);
	if (!nsm_free_rebooted(s->programs.nsm))
		return "locks of clients that have rebooted are not free yet";
	return NULL;
}

const char *server_save(struct server *s, struct image_writer *w)
{
	const char *why = cluster_part_may_save(s->cluster);

	if (why)
		return why;
	if (s->programs.nfs4 && !nfs4_rest_copies(s->programs.nfs4))
		return "pieces of copies did not end in time";

	const uint64_t begun_ns = rn_now_ns();

	why = server_rest(s);
	if (why)
		return why;
	server_save_own(s, NULL, instance_fd(s->instance), begun_ns, w);

	const struct server_parts parts = server_parts(s);

	counters_save(&s->counters, w);
	numbers_save(&parts, w);
	if (s->tcp)
		tcp_server_save(s->tcp, w);
	if (s->rdma)
		rr_server_save(s->rdma, w);
	why = vfs_save(s->vfs, w);
	if (!why)
		why = programs_save(&s->programs, w);
	if (why)
		return why;
	cluster_part_save(s->cluster, w);
	/* execve(2) would leave the sockets open in a keeper, and their ports taken. */
	udp_server_free(s->udp);
	s->udp = NULL;
	return NULL;
}

/* Writes the state that another machine can use into the state directory. NULL, or why it cannot be written. */
static const char *leave_state(struct server *s, struct image_writer *w)
{
	const uint64_t begun_ns = rn_now_ns();
	const char *why = server_rest(s);

	if (why)
		return why;
	server_save_own(s, NULL, -1, begun_ns, w);
	why = vfs_save(s->vfs, w);
	if (!why)
		why = programs_save(&s->programs, w);
	const int rc = why ? 0 : cluster_part_leave_state(s->cluster, w);

	return rc ? rn_error_text(rc) : why;
}

void server_leave_state(struct server *s)
{
	struct image_writer *w;
	const char *why;
	int rc;

	if (!cluster_part_moves(s->cluster))
		return;
	rc = image_write(&w);
	if (!rc) {
		image_for_elsewhere(w);
		why = leave_state(s, w);
		image_writer_free(w);
	} else {
		why = rn_error_text(rc);
	}
	if (why)
		rn_warn(s->log,
			"the member is moved without its state: %s; clients reclaim what they had",
			why);
	else
		rn_notice(s->log,
			  "the member is moved with its state, which is in %s: nobody has "
			  "to reclaim",
			  s->settings->server.state_dir);
}

void server_save_listeners(struct server *s, const char *why, struct image_writer *w)
{
	server_save_own(s, why, -1, rn_now_ns(), w);
	if (s->tcp)
		tcp_server_save_listeners(s->tcp, w);
}
