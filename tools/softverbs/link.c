/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Creates and frees links, and receives frames. If two processes connect to each other at once,
 * there are two streams between them. Each process sends over the one in sv_fabric.links, reads
 * both, and handles all frames as if they came over that one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tools/softverbs/cm_hooks.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/link.h"
#include "tools/softverbs/qp.h"

#define SOCKET_BUFFER (4 << 20)
#define SYNC_WAIT_SEC 2 /* longest wait for a stopped peer */
#define DATA_AT_ONCE (4u << 20)
#define RECEIVES_AT_ONCE 8 /* reads from the socket before the other links have their turn */

static void link_free(struct sv_link *l)
{
	LIST_REMOVE(l, all);
	free(l->in);
	free(l->out);
	free(l);
}

static void reap(void *arg)
{
	struct sv_link *l = arg;
	struct sv_sender *s;

	while ((s = TAILQ_FIRST(&l->senders)))
		sv_link_unqueue(l, s);
	sv_qps_link_lost(l);
	sv_cm_link_lost(l);
	link_free(l);
}

static void kill_one(struct sv_link *l)
{
	if (l->dead)
		return;
	l->dead = true;
	if (l->slot < SV_SLOTS && sv_fabric.links[l->slot] == l)
		sv_fabric.links[l->slot] = NULL;
	pthread_cond_broadcast(&sv_fabric.pulled);
	sv_timer_stop(&l->more);
	sv_watch_remove(&l->watch);
	close(l->watch.fd);
	/* Frees the link later, as the caller may still be using it. */
	sv_timer_start(&l->reaper, 0, reap, l);
}

void sv_link_kill(struct sv_link *l)
{
	struct sv_link *other;
	unsigned slot = l->slot;
	pid_t pid = l->pid;

	kill_one(l);
	if (slot == SV_NO_SLOT)
		return;
	LIST_FOREACH (other, &sv_fabric.all_links, all)
		if (other->slot == slot && other->pid == pid)
			kill_one(other);
}

/* True if this process can read the memory of process pid: the nonce must be at addr. */
static bool can_pull(pid_t pid, uint64_t addr, uint64_t nonce)
{
	uint64_t seen = 0;
	struct iovec local = { &seen, sizeof(seen) };
	struct iovec remote = { (void *)(uintptr_t)addr, sizeof(seen) };

	if (strcmp(sv_env("SOFTVERBS_PULL", "1"), "0") == 0)
		return false;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == sizeof(seen) && seen == nonce;
}

static int say_hello(struct sv_link *l)
{
	struct sv_frame f = {
		.type = SV_FRAME_HELLO,
		.qpn = sv_fabric.slot,
		.raddr = (uintptr_t)&sv_fabric.nonce,
		.value = { sv_fabric.nonce },
	};

	return sv_link_send(l, &f, NULL, 0);
}

static void on_hello(struct sv_link *l, const struct sv_frame *f)
{
	if (f->qpn >= SV_SLOTS || (l->slot != SV_NO_SLOT && l->slot != f->qpn)) {
		sv_link_kill(l);
		return;
	}
	struct sv_link *used = sv_fabric.links[f->qpn];
	if (used && used->pid != l->pid) {
		/* The slot has a new owner, and the end of the old one has not been read yet. */
		sv_link_kill(used);
		used = NULL;
	}
	l->slot = f->qpn;
	if (!used) {
		sv_fabric.links[l->slot] = l;
		used = l;
		say_hello(l);
	}
	if (can_pull(l->pid, f->raddr, f->value[0])) {
		struct sv_frame ok = { .type = SV_FRAME_PULL_OK };
		used->may_pull = true;
		sv_link_send(used, &ok, NULL, 0);
	}
}

static void on_sync(struct sv_link *l, const struct sv_frame *f)
{
	struct sv_frame answer = { .type = SV_FRAME_SYNCED, .value = { f->value[0] } };

	if (f->type == SV_FRAME_SYNC) {
		sv_link_send(l, &answer, NULL, 0);
		return;
	}
	sv_fabric.synced[l->slot] = f->value[0];
	pthread_cond_broadcast(&sv_fabric.pulled);
}

void sv_link_sync(struct sv_link *l)
{
	struct sv_frame f = { .type = SV_FRAME_SYNC, .value = { ++sv_fabric.syncs } };
	unsigned slot = l->slot;
	pid_t pid = l->pid;
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += SYNC_WAIT_SEC;
	sv_link_send(l, &f, NULL, 0);
	sv_engine_waiter();
	while (sv_fabric.synced[slot] < f.value[0]) {
		/* Looks the link up again, as it may be freed during the wait. */
		l = sv_fabric.links[slot];
		if (!l || l->pid != pid ||
		    pthread_cond_timedwait(&sv_fabric.pulled, &sv_fabric.lock, &until) == ETIMEDOUT)
			return;
	}
}

static void dispatch(struct sv_link *l, const struct sv_frame *f, const uint8_t *data)
{
	if (f->type == SV_FRAME_HELLO) {
		on_hello(l, f);
		return;
	}
	struct sv_link *used = l->slot < SV_SLOTS ? sv_fabric.links[l->slot] : NULL;
	if (!used || used->pid != l->pid) {
		sv_link_kill(l);
		return;
	}
	if (f->type == SV_FRAME_PULL_OK)
		used->peer_pulls = true;
	else if (f->type == SV_FRAME_SYNC || f->type == SV_FRAME_SYNCED)
		on_sync(used, f);
	else if (f->type == SV_FRAME_CM)
		sv_cm_receive(used, f->opcode, data, f->len);
	else
		sv_qp_receive(used, f, data);
}

static void take_more(void *arg);

/* Handles whole frames of the buffer, up to the data of one turn, and moves the rest to the start.
 * A small frame may stand for much data in the peer's memory. */
static void take_frames(struct sv_link *l)
{
	uint64_t before = sv_fabric.moved;
	size_t at = 0;
	struct sv_frame f;

	while (!l->dead && l->in_len - at >= sizeof(f)) {
		memcpy(&f, l->in + at, sizeof(f));
		if (f.len > SV_FRAME_DATA) {
			sv_link_kill(l);
			return;
		}
		if (l->in_len - at < sizeof(f) + f.len)
			break;
		if (sv_fabric.moved - before > DATA_AT_ONCE) {
			sv_timer_start(&l->more, 0, take_more, l);
			break;
		}
		dispatch(l, &f, l->in + at + sizeof(f));
		at += sizeof(f) + f.len;
	}
	l->in_len -= at;
	if (at && l->in_len)
		memmove(l->in, l->in + at, l->in_len);
}

static void take_more(void *arg)
{
	take_frames(arg);
	sv_acks_flush();
}

static void read_socket(struct sv_link *l)
{
	for (int i = 0; i < RECEIVES_AT_ONCE && !l->dead && !l->more.armed; i++) {
		size_t room = SV_LINK_RX - l->in_len;
		ssize_t n = recv(l->watch.fd, l->in + l->in_len, room, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			sv_link_kill(l);
		if (n <= 0)
			return;
		l->in_len += (size_t)n;
		take_frames(l);
		if ((size_t)n < room)
			return;
	}
}

static void on_socket(struct sv_watch *w, uint32_t events)
{
	struct sv_link *l = (struct sv_link *)((char *)w - offsetof(struct sv_link, watch));

	if (events & EPOLLOUT)
		sv_link_pump(l);
	if (events & ~(uint32_t)EPOLLOUT)
		read_socket(l);
	sv_acks_flush();
}

static int link_new(int fd, unsigned slot, struct sv_link **out)
{
	struct sv_link *l = calloc(1, sizeof(*l));
	struct ucred cred;
	socklen_t len = sizeof(cred);
	int size = SOCKET_BUFFER;

	if (!l || !(l->in = malloc(SV_LINK_RX))) {
		free(l);
		return -ENOMEM;
	}
	TAILQ_INIT(&l->senders);
	l->slot = slot;
	l->watch = (struct sv_watch){ .fd = fd, .fn = on_socket };
	l->events = EPOLLIN;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	LIST_INSERT_HEAD(&sv_fabric.all_links, l, all);
	int err = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ? -errno : 0;
	l->pid = err ? 0 : cred.pid;
	if (!err)
		err = sv_watch_add(&l->watch, l->events);
	if (err)
		link_free(l);
	else
		*out = l;
	return err;
}

static int connect_slot(unsigned slot)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.90s/slot.%u.sock", sv_fabric.dir, slot);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0) {
		int err = errno == ENOENT ? -ECONNREFUSED : -errno;
		close(fd);
		return err;
	}
	return fd;
}

int sv_link_get(unsigned slot, struct sv_link **out)
{
	struct sv_link *l;

	if (slot >= SV_SLOTS)
		return -EINVAL;
	*out = sv_fabric.links[slot];
	if (*out)
		return 0;
	int fd = connect_slot(slot);
	if (fd < 0)
		return fd;
	int err = link_new(fd, slot, &l);
	if (err) {
		close(fd);
		return err;
	}
	sv_fabric.links[slot] = l;
	err = say_hello(l);
	if (err)
		return err;
	*out = l;
	return 0;
}

void sv_link_accept(struct sv_watch *w, uint32_t events)
{
	struct sv_link *l;
	int fd;

	(void)events;
	while ((fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		if (link_new(fd, SV_NO_SLOT, &l) < 0)
			close(fd);
}

void sv_links_forget(void)
{
	struct sv_link *l;

	LIST_FOREACH (l, &sv_fabric.all_links, all)
		if (!l->dead)
			close(l->watch.fd);
	LIST_INIT(&sv_fabric.all_links);
	memset(sv_fabric.links, 0, sizeof(sv_fabric.links));
}
