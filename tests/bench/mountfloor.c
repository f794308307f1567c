/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor of an NFSv3 server under Linux's client: mountfloor ADDRESS PORT DIRECTORY
 *
 * Serves what the client sends for attributes, lookups, reads and removals of files below the directory: one thread, one
 * connection, and for each call the system calls on the file that it needs. It checks no permission and believes its peer, so it is
 * for a benchmark alone. MOUNT is another server's: any handle that is not four octets long is the directory's.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "floor.h"

#define FILES 65536u

enum {
	GETATTR = 1,
	LOOKUP = 3,
	ACCESS = 4,
	READ = 6,
	REMOVE = 12,
	FSSTAT = 18,
	FSINFO = 19,
	PATHCONF = 20
};

struct server {
	int dir;
	unsigned nfiles;
	int files[FILES]; /* by handle */
	char *names[FILES];
};

struct call {
	struct server *of;
	struct xdr args, *reply;
	struct chunk chunk; /* for READ's data */
	uint8_t *data;
};

static int get_handle(struct call *c)
{
	uint32_t len, number;
	const uint8_t *handle = get_opaque(&c->args, &len);

	if (!handle || len != sizeof(number))
		return c->of->dir;
	memcpy(&number, handle, sizeof(number));
	return number < c->of->nfiles ? c->of->files[number] : c->of->dir;
}

static void get_name(struct call *c, char name[NAME_MAX + 1])
{
	uint32_t len;
	const uint8_t *at = get_opaque(&c->args, &len);

	if (!at || len > NAME_MAX)
		errx(1, "a name of %u octets", len);
	memcpy(name, at, len);
	name[len] = 0;
}

static void put_time(struct xdr *x, struct statx_timestamp t)
{
	put32(x, (uint32_t)t.tv_sec);
	put32(x, t.tv_nsec);
}

/* fattr3, RFC 1813 section 2.6. */
static void put_attributes(struct xdr *x, int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st))
		err(1, "statx");
	put32(x, S_ISDIR(st.stx_mode) ? 2 : 1);
	put32(x, st.stx_mode & 07777);
	put32(x, st.stx_nlink);
	put32(x, st.stx_uid);
	put32(x, st.stx_gid);
	put64(x, st.stx_size);
	put64(x, st.stx_blocks * 512);
	put64(x, 0);
	put64(x, makedev(st.stx_dev_major, st.stx_dev_minor));
	put64(x, st.stx_ino);
	put_time(x, st.stx_atime);
	put_time(x, st.stx_mtime);
	put_time(x, st.stx_ctime);
}

static void put_post_attributes(struct xdr *x, int fd)
{
	put32(x, 1);
	put_attributes(x, fd);
}

/* The file stays open, as a server keeps what it has looked up. */
static void serve_lookup(struct call *c)
{
	struct server *s = c->of;
	const int dir = get_handle(c);
	char name[NAME_MAX + 1];
	int fd;

	get_name(c, name);
	if (s->nfiles == FILES)
		errx(1, "more than %u files", FILES);
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		put32(c->reply, (uint32_t)errno);
		put_post_attributes(c->reply, dir);
		return;
	}
	s->files[s->nfiles] = fd;
	s->names[s->nfiles] = strdup(name);
	put32(c->reply, 0);
	put_opaque(c->reply, &s->nfiles, sizeof(s->nfiles));
	s->nfiles++;
	put_post_attributes(c->reply, fd);
	put_post_attributes(c->reply, dir);
}

static void serve_access(struct call *c)
{
	const int fd = get_handle(c);

	put32(c->reply, 0);
	put_post_attributes(c->reply, fd);
	put32(c->reply, get32(&c->args));
}

/* Data go by RDMA if the client offers a chunk, else they are in the reply. */
static void serve_read(struct call *c)
{
	const int fd = get_handle(c);
	const uint64_t offset = get64(&c->args);
	const uint32_t count = get32(&c->args);
	ssize_t n;

	if (count > FLOOR_DATA || (!c->chunk.key && count > FLOOR_MESSAGE / 2))
		errx(1, "a READ of %u octets", count);
	n = pread(fd, c->data, count, (off_t)offset);
	if (n < 0)
		err(1, "pread");
	put32(c->reply, 0);
	put_post_attributes(c->reply, fd);
	put32(c->reply, (uint32_t)n);
	put32(c->reply, (uint32_t)n < count);
	if (c->chunk.key)
		put32(c->reply, (uint32_t)n);
	else
		put_opaque(c->reply, c->data, (size_t)n);
	c->chunk.len = (uint32_t)n;
}

/* Closes what bears the name in any directory: a removed file that is open costs its last close later. */
static void forget(struct server *s, const char *name)
{
	for (unsigned i = 0; i < s->nfiles; i++) {
		if (s->names[i] && strcmp(s->names[i], name) == 0) {
			close(s->files[i]);
			free(s->names[i]);
			s->names[i] = NULL;
			s->files[i] = s->dir;
		}
	}
}

/* The removal is on disk before the reply, as ringnfsd's and the kernel's server's are. */
static void serve_remove(struct call *c)
{
	const int dir = get_handle(c);
	char name[NAME_MAX + 1];

	get_name(c, name);
	forget(c->of, name);
	if (unlinkat(dir, name, 0) || fsync(dir))
		err(1, "%s", name);
	put32(c->reply, 0);
	put32(c->reply, 0);
	put_post_attributes(c->reply, dir);
}

static void serve_fsinfo(struct call *c)
{
	const uint32_t sizes[] = {
		FLOOR_DATA, FLOOR_DATA, 4096, FLOOR_DATA, FLOOR_DATA, 4096, 65536
	};

	put32(c->reply, 0);
	put_post_attributes(c->reply, get_handle(c));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		put32(c->reply, sizes[i]);
	put64(c->reply, INT64_MAX);
	put64(c->reply, 1);
	put32(c->reply, 0x1b);
}

static void serve_fsstat(struct call *c)
{
	put32(c->reply, 0);
	put_post_attributes(c->reply, get_handle(c));
	for (int i = 0; i < 6; i++)
		put64(c->reply, 1u << 20);
	put32(c->reply, 0);
}

static void serve_pathconf(struct call *c)
{
	put32(c->reply, 0);
	put_post_attributes(c->reply, get_handle(c));
	put32(c->reply, 32000);
	put32(c->reply, NAME_MAX);
	put32(c->reply, 1), put32(c->reply, 1);
	put32(c->reply, 0), put32(c->reply, 1);
}

static void serve_procedure(struct call *c, uint32_t proc)
{
	switch (proc) {
	case 0:
		break;
	case GETATTR:
		put32(c->reply, 0);
		put_attributes(c->reply, get_handle(c));
		break;
	case LOOKUP:
		serve_lookup(c);
		break;
	case ACCESS:
		serve_access(c);
		break;
	case READ:
		serve_read(c);
		break;
	case REMOVE:
		serve_remove(c);
		break;
	case FSSTAT:
		serve_fsstat(c);
		break;
	case FSINFO:
		serve_fsinfo(c);
		break;
	case PATHCONF:
		serve_pathconf(c);
		break;
	default:
		errx(1, "procedure %u is not one of the benchmark's", proc);
	}
}

static void serve(struct floor *f, unsigned slot, uint32_t len)
{
	struct xdr x = { .p = floor_reply(f, slot), .end = floor_reply(f, slot) + FLOOR_MESSAGE };
	struct call c = { .of = f->server,
			  .args = { .p = floor_call(f, slot), .end = floor_call(f, slot) + len },
			  .reply = &x,
			  .data = floor_data(f, slot) };
	const uint32_t xid = floor_get_header(&c.args, &c.chunk);
	uint8_t *header = x.p;
	uint32_t proc, skip;

	xdr_take(&c.args, 20);
	proc = get32(&c.args);
	for (int i = 0; i < 2; i++) { /* credential and verifier */
		get32(&c.args);
		get_opaque(&c.args, &skip);
	}
	floor_put_header(&x, xid, &c.chunk);
	serve_procedure(&c, proc);
	if (c.args.bad || x.bad)
		errx(1, "procedure %u: bad length", proc);
	floor_receive(f, slot);
	if (c.chunk.key) { /* once more, with the length of what was read */
		x.end = x.p, x.p = header;
		len = (uint32_t)(x.end - header);
		floor_put_header(&x, xid, &c.chunk);
		floor_send(f, slot, len, &c.chunk);
		return;
	}
	floor_send(f, slot, (size_t)(x.p - header), &c.chunk);
}

int main(int argc, char **argv)
{
	struct server *s = calloc(1, sizeof(*s));

	if (argc != 4 || !s)
		errx(2, "usage: mountfloor ADDRESS PORT DIRECTORY");
	s->dir = open(argv[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		err(1, "%s", argv[3]);
	floor_run(argv[1], argv[2], serve, s);
}
