/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners and connections on their way to the next program. A connection goes at rest: none of its calls is under way, all its replies
 * are out, and what was read of it is the beginning of a call, which goes along as bytes.
 */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "rpc/backchannel.h"

#define TCP_SECTION "tcp"

struct saved_listener {
	int fd;
};
static const struct image_field listener_fields[] = { IMAGE_FD(1, struct saved_listener, fd) };
static const struct image_kind listener_kind = { 1, 1, listener_fields };

struct saved_conn {
	int fd;
	struct sockaddr_storage peer;
	uint64_t id, session_client, only_client;
	struct image_bytes input; /* read, and not used */
	bool called;		  /* the server has called the client: replies may come */
	uint8_t secs;
	uint32_t window;
};
static const struct image_field conn_fields[] = {
	IMAGE_FD(1, struct saved_conn, fd),
	IMAGE_FIXED(2, struct saved_conn, peer),
	IMAGE_NUMBER(3, struct saved_conn, id),
	IMAGE_NUMBER(4, struct saved_conn, session_client),
	IMAGE_NUMBER(5, struct saved_conn, only_client),
	IMAGE_BYTES(6, struct saved_conn, input),
	IMAGE_NUMBER(7, struct saved_conn, called),
	IMAGE_NUMBER(8, struct saved_conn, secs),
	IMAGE_NUMBER(9, struct saved_conn, window),
};
static const struct image_kind conn_kind = { 2, rn_array_size(conn_fields), conn_fields };

static void tcp_loop_finish(void *arg)
{
	struct tcp_loop *loop = arg;

	loop->finishing = true;
}

void tcp_server_finish(struct tcp_server *srv)
{
	for (unsigned i = 0; i < srv->cfg.nloops; i++)
		ev_loop_call(srv->loops[i].ev, tcp_loop_finish, &srv->loops[i]);
}

/* True if a call is under way, or a reply is not sent. Called on the connection's loop. */
static bool tcp_conn_is_busy(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->lock);
	const bool busy = c->inflight > 0 || c->cur || c->asked;
	pthread_mutex_unlock(&c->lock);
	return busy;
}

struct tcp_count_busy {
	struct tcp_loop *loop;
	unsigned busy;
};

static void count_busy(void *arg)
{
	struct tcp_count_busy *n = arg;
	struct tcp_conn *c;

	TAILQ_FOREACH (c, &n->loop->conns, link) {
		tcp_write_held(c);
		n->busy += tcp_conn_is_busy(c);
	}
}

unsigned tcp_server_busy(struct tcp_server *srv)
{
	struct tcp_count_busy n = { 0 };

	for (unsigned i = 0; i < srv->cfg.nloops; i++) {
		n.loop = &srv->loops[i];
		ev_loop_call(n.loop->ev, count_busy, &n);
	}
	return n.busy;
}

/* Gives the mark of the record that has just begun, as far as it was read, so that the next program reads it again. Returns its bytes. */
static size_t begun_record(const struct tcp_record *rec, uint8_t mark[4])
{
	if (!rec->in_frag) {
		memcpy(mark, rec->mark, rec->mark_len);
		return rec->mark_len;
	}
	rn_put32(mark, rec->frag_left | (rec->last ? 1u << 31 : 0));
	return 4;
}

static void save_conn(struct image_writer *w, struct tcp_conn *c)
{
	uint8_t input[4 + TCP_SCRATCH_SIZE + TCP_HEAD_SIZE];
	struct saved_conn s = {
		.fd = c->fd,
		.peer = c->rpc.peer,
		.id = c->rpc.id,
		.session_client = atomic_load(&c->rpc.session_client),
		.only_client = atomic_load(&c->rpc.only_client),
		.called = atomic_load(&c->rpc.back) != NULL,
		.secs = atomic_load(&c->rpc.secs),
		.window = c->window,
	};
	const size_t mark = begun_record(&c->rec, input);

	if (mark + c->pending_len > sizeof(input))
		return;
	if (c->pending_len)
		memcpy(input + mark, c->pending, c->pending_len);
	s.input = (struct image_bytes){ input, (uint32_t)mark + c->pending_len };
	image_put(w, &conn_kind, &s);
}

struct tcp_save {
	struct tcp_loop *loop;
	struct image_writer *w;
};

/* True if the connection can go on. Not in a record of which more than the present fragment was read: only that would be read again. */
static bool may_go(struct tcp_conn *c)
{
	const bool begun = c->rec.in_frag && c->rec.total != c->rec.frag_left;

	return !tcp_conn_is_busy(c) && !begun && !c->rpc.dialed && !c->eof && !c->broken &&
	       c->io == &tcp_io_plain && !c->shakes;
}

static void tcp_save_loop(void *arg)
{
	struct tcp_save *s = arg;
	struct tcp_conn *c;

	s->loop->quiesced = true;
	TAILQ_FOREACH (c, &s->loop->conns, link) {
		event_del(&c->rd);
		if (may_go(c))
			save_conn(s->w, c);
	}
}

static void stop_accepting(void *arg)
{
	struct tcp_listener *l = arg;

	l->loop->quiesced = true; /* the loop does not end a pause any more */
	event_del(l->ev);
}

void tcp_server_save(struct tcp_server *srv, struct image_writer *w)
{
	struct tcp_save s = { .w = w };
	struct tcp_listener *l;

	image_begin(w, TCP_SECTION);
	SLIST_FOREACH (l, &srv->listeners, link) {
		ev_loop_call(l->loop->ev, stop_accepting, l);
		image_put(w, &listener_kind, &(struct saved_listener){ l->fd });
	}
	for (unsigned i = 0; i < srv->cfg.nloops; i++) {
		s.loop = &srv->loops[i];
		ev_loop_call(s.loop->ev, tcp_save_loop, &s);
	}
}

void tcp_server_save_listeners(struct tcp_server *srv, struct image_writer *w)
{
	const struct tcp_listener *l;

	image_begin(w, TCP_SECTION);
	SLIST_FOREACH (l, &srv->listeners, link)
		image_put(w, &listener_kind,
			  &(struct saved_listener){ fcntl(l->fd, F_DUPFD_CLOEXEC, 0) });
}

int tcp_saved_listener(struct image_reader *r, struct image_at *at)
{
	struct saved_listener s;

	if (!at->reader && !image_enter(r, TCP_SECTION, at))
		return -1;
	return image_next(at) == 1 && image_get(at, &listener_kind, &s) == 0 ? s.fd : -1;
}

/* Takes saved->fd if it succeeds. */
static int load_conn(struct tcp_server *srv, const struct saved_conn *saved)
{
	struct tcp_conn *c = tcp_conn_make(srv, saved->fd, &saved->peer);

	if (!c)
		return -ENOMEM;
	c->rpc.id = saved->id;
	atomic_init(&c->rpc.session_client, saved->session_client);
	atomic_init(&c->rpc.only_client, saved->only_client);
	atomic_init(&c->rpc.secs, saved->secs);
	c->window = (unsigned)rn_max(1, rn_min(saved->window, srv->cfg.max_requests));
	if (saved->input.len) {
		c->pending = malloc(saved->input.len);
		if (!c->pending) {
			tcp_conn_discard(c);
			return 0; /* drops the connection, as whenever memory is short */
		}
		memcpy(c->pending, saved->input.at, saved->input.len);
		c->pending_len = saved->input.len;
	}
	if (saved->called)
		rpc_backchannel_put(rpc_backchannel_get(&c->rpc));
	tcp_conn_admit(c);
	return 0;
}

int tcp_server_load(struct tcp_server *srv, struct image_reader *r)
{
	struct image_at at;
	int rc = 0;

	if (!image_enter(r, TCP_SECTION, &at))
		return 0;
	while (rc == 0 && image_next(&at)) {
		struct saved_conn s = { .window = 1 };

		if (image_next(&at) == conn_kind.kind) {
			rc = image_get(&at, &conn_kind, &s);
			if (rc == 0 && s.fd >= 0)
				rc = load_conn(srv, &s);
		} else if (image_next(&at) == listener_kind.kind) {
			/* Skips the record: the reader closes the descriptor of a listener that the settings no longer want. */
			struct image_kind nothing = { listener_kind.kind, 0, NULL };

			rc = image_get(&at, &nothing, &s);
		} else {
			rc = image_skip(&at);
		}
	}
	return rc;
}
