/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Table of the ports of all processes of the fabric: the file `ports` in its directory, which each
 * process maps and changes under its flock. A record belongs to the process of its slot. Records
 * that a killed process left are freed when they are found, or when the slot has a new owner.
 * Values from the file are checked, because another process may have died while it wrote.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/softverbs/cm.h"

#define RECORDS 65536u
#define EPHEMERAL_FIRST 32768u
#define EPHEMERAL_COUNT 28232u

enum { PORT_REUSE = 1, PORT_AF_ONLY = 2, PORT_LISTENING = 4 };

struct port_record {
	uint32_t next; /* next record + 1, in the list of one port or in the free list */
	uint32_t slot;
	uint32_t number; /* number of the id */
	uint16_t used;
	uint16_t flags;
	union cm_addr addr;
};

struct cm_port_file {
	/* Size of this struct; a program of another build cannot share the directory */
	uint32_t size;
	uint32_t free;	/* first free record + 1 */
	uint32_t fresh; /* index of the first record that was never used */
	uint32_t hint;
	uint32_t first[65536]; /* first record + 1 for each port */
	struct port_record record[RECORDS];
};

static struct port_record *cm_port_get_record(struct cm_port_file *f, uint32_t ref)
{
	return ref && ref <= RECORDS ? &f->record[ref - 1] : NULL;
}

static bool slot_is_dead(uint32_t slot)
{
	char path[PATH_MAX];

	if (slot == sv_fabric.slot)
		return false;
	if (slot >= SV_SLOTS)
		return true;
	snprintf(path, sizeof(path), "%s/slot.%u", sv_fabric.dir, slot);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	bool dead = flock(fd, LOCK_SH | LOCK_NB) == 0;
	close(fd);
	return dead;
}

static void unlink_record(struct cm_port_file *f, uint32_t *from)
{
	uint32_t ref = *from;
	struct port_record *r = cm_port_get_record(f, ref);

	*from = r->next;
	memset(r, 0, sizeof(*r));
	r->next = f->free;
	f->free = ref;
}

static uint32_t new_record(struct cm_port_file *f)
{
	uint32_t ref = f->free;

	if (cm_port_get_record(f, ref)) {
		f->free = cm_port_get_record(f, ref)->next;
		return ref;
	}
	return f->fresh < RECORDS ? ++f->fresh : 0;
}

/* Frees the records of this slot if own is true (its process is new), else the records of all dead
 * slots. */
static void purge(struct cm_port_file *f, bool own)
{
	uint8_t dead[SV_SLOTS] = { 0 }; /* state of each slot: 0 unknown, 1 alive, 2 dead */

	for (unsigned p = 0; p < 65536; p++) {
		uint32_t *from = &f->first[p];
		for (unsigned n = 0; n < RECORDS && cm_port_get_record(f, *from); n++) {
			struct port_record *r = cm_port_get_record(f, *from);
			uint8_t *d = &dead[r->slot % SV_SLOTS];
			if (!own && !*d)
				*d = slot_is_dead(r->slot) ? 2 : 1;
			if (own ? r->slot == sv_fabric.slot : *d == 2)
				unlink_record(f, from);
			else
				from = &r->next;
		}
	}
}

int cm_port_open(struct sv_cm *cm)
{
	char path[PATH_MAX];
	struct cm_port_file *f;

	snprintf(path, sizeof(path), "%s/ports", sv_fabric.dir);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	flock(fd, LOCK_EX);
	if (ftruncate(fd, sizeof(*f)) < 0)
		goto fail;
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (f == MAP_FAILED)
		goto fail;
	if (f->size != sizeof(*f)) {
		memset(f, 0, offsetof(struct cm_port_file, record));
		f->size = sizeof(*f);
	}
	purge(f, true);
	flock(fd, LOCK_UN);
	cm->ports = f;
	cm->ports_fd = fd;
	return 0;
fail:;
	int err = -errno;
	close(fd);
	return err;
}

void cm_port_close(struct sv_cm *cm)
{
	munmap(cm->ports, sizeof(*cm->ports));
	close(cm->ports_fd);
}

static bool cm_port_covers_family(const struct port_record *r, int family)
{
	return r->addr.sa.sa_family == family || !(r->flags & PORT_AF_ONLY);
}

/* Follows the kernel's rules: addresses of two families conflict unless both are restricted to
 * their family. */
static int conflict(const struct port_record *r, const struct cm_id *c, const union cm_addr *addr,
		    bool reuse)
{
	if (reuse && (r->flags & PORT_REUSE))
		return 0;
	if (c->af_only && (r->flags & PORT_AF_ONLY) && r->addr.sa.sa_family != addr->sa.sa_family)
		return 0;
	if (cm_addr_any(addr) || cm_addr_any(&r->addr))
		return -EADDRNOTAVAIL;
	return cm_addr_same(addr, &r->addr) ? -EADDRINUSE : 0;
}

static int check_port(struct cm_port_file *f, struct cm_id *c, bool reuse)
{
	uint32_t *from = &f->first[cm_addr_port(cm_src(c))];

	for (unsigned n = 0; n < RECORDS && cm_port_get_record(f, *from); n++) {
		struct port_record *r = cm_port_get_record(f, *from);
		int err = *from == c->port ? 0 : conflict(r, c, cm_src(c), reuse);
		if (!err) {
			from = &r->next;
			continue;
		}
		if (!slot_is_dead(r->slot))
			return err;
		unlink_record(f, from);
	}
	return 0;
}

static int choose_port(struct cm_port_file *f)
{
	for (int again = 0; again < 2; again++) {
		for (unsigned i = 0; i < EPHEMERAL_COUNT; i++) {
			uint32_t p = EPHEMERAL_FIRST + f->hint++ % EPHEMERAL_COUNT;
			if (!cm_port_get_record(f, f->first[p]))
				return p;
		}
		purge(f, false);
	}
	return -EADDRNOTAVAIL;
}

static int bind_locked(struct cm_port_file *f, struct cm_id *c)
{
	int port = cm_addr_port(cm_src(c));
	int err = 0;

	if (port)
		err = check_port(f, c, c->reuse_addr);
	else
		port = choose_port(f);
	if (err || port < 0)
		return err ? err : port;
	uint32_t ref = new_record(f);
	if (!ref)
		return -ENOBUFS;
	cm_addr_set_port(cm_src(c), port);
	struct port_record *r = cm_port_get_record(f, ref);
	*r = (struct port_record){ .slot = sv_fabric.slot, .number = c->number, .used = 1 };
	r->flags = (c->reuse_addr ? PORT_REUSE : 0) | (c->af_only ? PORT_AF_ONLY : 0);
	r->addr = *cm_src(c);
	r->next = f->first[port];
	f->first[port] = ref;
	c->port = ref;
	return 0;
}

int cm_port_bind(struct cm_id *c)
{
	struct sv_cm *cm = cm_root();

	flock(cm->ports_fd, LOCK_EX);
	int err = bind_locked(cm->ports, c);
	flock(cm->ports_fd, LOCK_UN);
	return err;
}

int cm_port_listen(struct cm_id *c)
{
	struct sv_cm *cm = cm_root();

	flock(cm->ports_fd, LOCK_EX);
	int err = check_port(cm->ports, c, false);
	if (!err)
		cm_port_get_record(cm->ports, c->port)->flags |= PORT_LISTENING;
	flock(cm->ports_fd, LOCK_UN);
	return err;
}

void cm_port_release(struct cm_id *c)
{
	struct sv_cm *cm = cm_root();

	if (!c->port)
		return;
	flock(cm->ports_fd, LOCK_EX);
	uint32_t *from =
		&cm->ports->first[cm_addr_port(&cm_port_get_record(cm->ports, c->port)->addr)];
	for (unsigned n = 0; n < RECORDS && cm_port_get_record(cm->ports, *from); n++) {
		if (*from == c->port) {
			unlink_record(cm->ports, from);
			break;
		}
		from = &cm_port_get_record(cm->ports, *from)->next;
	}
	flock(cm->ports_fd, LOCK_UN);
	c->port = 0;
}

int cm_port_lookup(const union cm_addr *dst, uint32_t *slot, uint32_t *number)
{
	struct sv_cm *cm = cm_root();
	const struct port_record *best = NULL;

	flock(cm->ports_fd, LOCK_EX);
	uint32_t ref = cm->ports->first[cm_addr_port(dst)];
	for (unsigned n = 0; n < RECORDS && cm_port_get_record(cm->ports, ref); n++) {
		const struct port_record *r = cm_port_get_record(cm->ports, ref);
		ref = r->next;
		if (!(r->flags & PORT_LISTENING) || slot_is_dead(r->slot))
			continue;
		if (cm_addr_same(&r->addr, dst)) {
			best = r;
			break;
		}
		if (cm_addr_any(&r->addr) && cm_port_covers_family(r, dst->sa.sa_family) &&
		    (!best || best->addr.sa.sa_family != dst->sa.sa_family))
			best = r;
	}
	if (best) {
		*slot = best->slot;
		*number = best->number;
	}
	flock(cm->ports_fd, LOCK_UN);
	return best ? 0 : -ECONNREFUSED;
}
