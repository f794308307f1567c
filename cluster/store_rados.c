/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store in a pool of RADOS, Ceph's object store, beside the CephFS that the members serve:
 *
 *   ringnfs.NAME          the shared object; its version is RADOS's own
 *   ringnfs.NAME.beats    heartbeats: an omap with the members' names as keys
 *   ringnfs.NAME.mounts   for each run of a member the CephFS clients through which it has its files, as lines of text (struct mount_line)
 *
 * librados is loaded at run time, as is libcephfs to evict: neither is needed where there is no such store. Their prototypes are declared
 * here; they have been the same since Ceph 13.
 *
 * Each call gives up after some time (rados_osd_op_timeout). A change that was given up may yet be made, but only as long as the version is still
 * the one that it replaces, and a member stands by all that it tried to write. A command to a metadata server has no such limit, so a thread
 * waits for it (struct eviction).
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_store.h"
#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"

#define LIBRADOS "librados.so.2"
#define LIBCEPHFS "libcephfs.so.2"
#define MOUNTS_MAX 32768u /* size limit of the object of mounts, bytes */
#define SWAP_MOUNTS_TRIES 16u
#define VICTIMS_MAX 64u /* clients that one eviction ends */
#define KEEPER_HAS_MS                                                                              \
	3000u /* time for a keeper to release the locks of a dead daemon, before its client is evicted */
#define FORGOTTEN_MS 10000u /* after this time without a call, an eviction is given up */
#define BEAT_BYTES (3 * 8u + 8u)

/* ---- librados ---- */

typedef void *rados_handle;
#define OP_EXCLUSIVE 1 /* LIBRADOS_CREATE_EXCLUSIVE */
/* LIBRADOS_OPERATION_FULL_FORCE: a full Ceph must not end all members, whose objects are small. */
#define OP_FULL_FORCE 128

struct librados {
	void *dl;
	int (*create2)(rados_handle *cluster, const char *cluster_name, const char *user,
		       uint64_t flags);
	int (*conf_read_file)(rados_handle cluster, const char *path);
	int (*conf_set)(rados_handle cluster, const char *option, const char *value);
	int (*connect)(rados_handle cluster);
	void (*shutdown)(rados_handle cluster);
	int (*ioctx_create)(rados_handle cluster, const char *pool, rados_handle *io);
	void (*ioctx_destroy)(rados_handle io);
	int (*read)(rados_handle io, const char *oid, char *buf, size_t len, uint64_t off);
	uint64_t (*get_last_version)(rados_handle io);
	rados_handle (*create_write_op)(void);
	void (*release_write_op)(rados_handle op);
	void (*write_op_assert_version)(rados_handle op, uint64_t version);
	void (*write_op_create)(rados_handle op, int exclusive, const char *category);
	void (*write_op_write_full)(rados_handle op, const char *bytes, size_t len);
	void (*write_op_omap_set)(rados_handle op, char const *const *keys,
				  char const *const *values, const size_t *lengths, size_t n);
	int (*write_op_operate)(rados_handle op, rados_handle io, const char *oid,
				const time_t *mtime, int flags);
	rados_handle (*create_read_op)(void);
	void (*release_read_op)(rados_handle op);
	void (*read_op_omap_get_vals_by_keys)(rados_handle op, char const *const *keys, size_t n,
					      rados_handle *iterator, int *rval);
	int (*read_op_operate)(rados_handle op, rados_handle io, const char *oid, int flags);
	int (*omap_get_next)(rados_handle iterator, char **key, char **value, size_t *len);
	void (*omap_get_end)(rados_handle iterator);
	int (*mon_command)(rados_handle cluster, const char **cmd, size_t n, const char *in,
			   size_t in_len, char **out, size_t *out_len, char **text,
			   size_t *text_len);
	void (*buffer_free)(char *buf);
};

struct libcephfs {
	void *dl;
	int (*create)(rados_handle *mount, const char *id);
	int (*conf_read_file)(rados_handle mount, const char *path);
	int (*conf_set)(rados_handle mount, const char *option, const char *value);
	int (*init)(rados_handle mount);
	int (*mds_command)(rados_handle mount, const char *mds, const char **cmd, size_t n,
			   const char *in, size_t in_len, char **out, size_t *out_len, char **text,
			   size_t *text_len);
	void (*buffer_free)(char *buf);
	int (*release)(rados_handle mount);
};

struct dl_symbol {
	const char *name;
	size_t at; /* offset of the pointer in the struct */
};

#define RADOS_SYMBOL(x)                                                                            \
	{                                                                                          \
		"rados_" #x, offsetof(struct librados, x)                                          \
	}
static const struct dl_symbol librados_symbols[] = {
	RADOS_SYMBOL(create2),
	RADOS_SYMBOL(conf_read_file),
	RADOS_SYMBOL(conf_set),
	RADOS_SYMBOL(connect),
	RADOS_SYMBOL(shutdown),
	RADOS_SYMBOL(ioctx_create),
	RADOS_SYMBOL(ioctx_destroy),
	RADOS_SYMBOL(read),
	RADOS_SYMBOL(get_last_version),
	RADOS_SYMBOL(create_write_op),
	RADOS_SYMBOL(release_write_op),
	RADOS_SYMBOL(write_op_assert_version),
	RADOS_SYMBOL(write_op_create),
	RADOS_SYMBOL(write_op_write_full),
	RADOS_SYMBOL(write_op_omap_set),
	RADOS_SYMBOL(write_op_operate),
	RADOS_SYMBOL(create_read_op),
	RADOS_SYMBOL(release_read_op),
	RADOS_SYMBOL(read_op_omap_get_vals_by_keys),
	RADOS_SYMBOL(read_op_operate),
	RADOS_SYMBOL(omap_get_next),
	RADOS_SYMBOL(omap_get_end),
	RADOS_SYMBOL(mon_command),
	RADOS_SYMBOL(buffer_free),
};

#define CEPHFS_SYMBOL(x)                                                                           \
	{                                                                                          \
		"ceph_" #x, offsetof(struct libcephfs, x)                                          \
	}
static const struct dl_symbol libcephfs_symbols[] = {
	CEPHFS_SYMBOL(create),	CEPHFS_SYMBOL(conf_read_file), CEPHFS_SYMBOL(conf_set),
	CEPHFS_SYMBOL(init),	CEPHFS_SYMBOL(mds_command),    CEPHFS_SYMBOL(buffer_free),
	CEPHFS_SYMBOL(release),
};

/* Fills in the pointers. The library stays loaded: its threads may outlive a store. */
static int rados_load(const char *name, const struct dl_symbol *symbols, size_t n, void *into,
		      const struct rn_logger *log)
{
	void *dl = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

	if (!dl) {
		rn_err(log,
		       "cluster.backend = rados: the library %s cannot be loaded: %s; install it "
		       "(librados2 and libcephfs2 on Debian), or say backend = file",
		       name, dlerror());
		return -ELIBACC;
	}
	for (size_t i = 0; i < n; i++) {
		void *p = dlsym(dl, symbols[i].name);

		if (!p) {
			rn_err(log, "cluster.backend = rados: %s has no %s: it is too old", name,
			       symbols[i].name);
			dlclose(dl);
			return -ELIBBAD;
		}
		memcpy((char *)into + symbols[i].at, &p, sizeof(p));
	}
	memcpy(into, &dl, sizeof(dl));
	return 0;
}

/* ---- the store ---- */

/* The eviction of clients by the metadata servers, on a thread of its own, which may hang. Freed by the last of the two. */
struct eviction {
	struct libcephfs lib;
	char *conf, *user;
	uint64_t victim[VICTIMS_MAX];
	unsigned nvictims;
	char (*mds)[24]; /* gids of the metadata servers to ask */
	unsigned nmds;
	int rc;
	atomic_bool done;
	atomic_int users; /* the thread, the store */
};

struct store_rados {
	struct cluster_store store;
	struct librados lib;
	struct libcephfs cephfs;
	rados_handle cluster, io;
	const struct rn_logger *log; /* may be NULL */
	bool caps_told;
	char *conf, *user, *fs;
	char oid[64], beats_oid[72], mounts_oid[72];

	uint64_t own[VICTIMS_MAX]; /* this process's clients, which are not evicted */
	unsigned own_count;
	/* The run whose clients are to be evicted, and how far that is. */
	struct cluster_self dead;
	uint64_t dead_since, dead_asked; /* rn_now_ms() of the first and the last call */
	struct eviction *eviction;
};

static struct store_rados *store_rados_of(struct cluster_store *s)
{
	return rn_container_of(s, struct store_rados, store);
}

/* Bytes of an object and its version, 0 if it is not there (-ENOENT). */
static int rados_read_object(struct store_rados *r, const char *oid, uint8_t *bytes, size_t size,
			     size_t *len, uint64_t *version)
{
	const int rc = r->lib.read(r->io, oid, (char *)bytes, size, 0);

	*version = 0;
	if (rc < 0)
		return rc;
	*version = r->lib.get_last_version(r->io);
	*len = (size_t)rc;
	return *version != 0 ? 0 : -EIO;
}

/* Replaces an object of that version. -RN_ECHANGED: it has another version. */
static int rados_swap_object(struct store_rados *r, const char *oid, uint64_t version,
			     const void *bytes, size_t len)
{
	rados_handle op = r->lib.create_write_op();
	int rc;

	if (version != 0)
		r->lib.write_op_assert_version(op, version);
	else
		r->lib.write_op_create(op, OP_EXCLUSIVE, NULL);
	r->lib.write_op_write_full(op, bytes, len);
	rc = r->lib.write_op_operate(op, r->io, oid, NULL, OP_FULL_FORCE);
	r->lib.release_write_op(op);
	/* RADOS says ERANGE if the object is newer, EOVERFLOW if it is older: it was removed and made anew. */
	if (rc == -ERANGE || rc == -EOVERFLOW || rc == -EEXIST || (rc == -ENOENT && version != 0))
		return -RN_ECHANGED;
	return rc;
}

static int store_rados_read(struct cluster_store *s, uint8_t *bytes, size_t size, size_t *len,
			    uint64_t *version)
{
	struct store_rados *r = store_rados_of(s);

	return rados_read_object(r, r->oid, bytes, size, len, version);
}

static int store_rados_swap(struct cluster_store *s, uint64_t version, const uint8_t *bytes,
			    size_t len)
{
	struct store_rados *r = store_rados_of(s);

	if (len > CLUSTER_BYTES_MAX)
		return -EMSGSIZE;
	return rados_swap_object(r, r->oid, version, bytes, len);
}

static int store_rados_beat(struct cluster_store *s, const struct cluster_beat *beat)
{
	struct store_rados *r = store_rados_of(s);
	rados_handle op = r->lib.create_write_op();
	uint8_t bytes[BEAT_BYTES];
	const char *key = beat->name, *value = (const char *)bytes;
	const size_t len = sizeof(bytes);
	int rc;

	rn_put64(bytes, beat->incarnation);
	rn_put64(bytes + 8, beat->count);
	rn_put64(bytes + 16, beat->wall_ns);
	rn_put64(bytes + 24, XXH3_64bits(bytes, 24));
	r->lib.write_op_omap_set(op, &key, &value, &len, 1);
	rc = r->lib.write_op_operate(op, r->io, r->beats_oid, NULL, OP_FULL_FORCE);
	r->lib.release_write_op(op);
	return rc;
}

static int rados_decode_beat(const char *value, size_t len, struct cluster_beat *beat)
{
	const uint8_t *bytes = (const uint8_t *)value;

	if (len != BEAT_BYTES || rn_get64(bytes + 24) != XXH3_64bits(bytes, 24))
		return -EBADMSG;
	beat->incarnation = rn_get64(bytes);
	beat->count = rn_get64(bytes + 8);
	beat->wall_ns = rn_get64(bytes + 16);
	return 0;
}

static int store_rados_look(struct cluster_store *s, const char *name, struct cluster_beat *beat)
{
	struct store_rados *r = store_rados_of(s);
	rados_handle op = r->lib.create_read_op(), found = NULL;
	char *key = NULL, *value = NULL;
	size_t len = 0;
	int rval = 0, rc;

	r->lib.read_op_omap_get_vals_by_keys(op, &name, 1, &found, &rval);
	rc = r->lib.read_op_operate(op, r->io, r->beats_oid, 0);
	if (rc == 0)
		rc = rval;
	if (rc == 0)
		rc = r->lib.omap_get_next(found, &key, &value, &len);
	if (rc == 0 && !key)
		rc = -ENOENT;
	if (rc == 0)
		rc = rados_decode_beat(value, len, beat);
	if (rc == 0) {
		memset(beat->name, 0, sizeof(beat->name));
		memcpy(beat->name, name, strnlen(name, sizeof(beat->name) - 1));
	}
	if (found)
		r->lib.omap_get_end(found);
	r->lib.release_read_op(op);
	return rc;
}

/* ---- mounts of runs ---- */

/* A line of the object of mounts: "MEMBER INCARNATION CLIENT\n". The incarnation is 0 when the client is being evicted. */
struct mount_line {
	struct cluster_self run;
	uint64_t client;
};

struct mounts {
	struct mount_line *line;
	unsigned n, room;
	uint64_t version;
};

static bool mounts_add(struct mounts *m, const struct mount_line *line)
{
	if (m->n == m->room) {
		const unsigned room = m->room ? 2 * m->room : 16;
		struct mount_line *more = reallocarray(m->line, room, sizeof(*more));

		if (!more)
			return false;
		m->line = more;
		m->room = room;
	}
	m->line[m->n++] = *line;
	return true;
}

/* Splits the text, which ends with a NUL, into lines. */
static int mounts_decode(char *text, struct mounts *m)
{
	char *rest = text;

	for (char *s; (s = strsep(&rest, "\n")) && *s;) {
		struct mount_line line = { 0 };
		int end = 0;

		if (sscanf(s, "%63s %" SCNu64 " %" SCNu64 "%n", line.run.name,
			   &line.run.incarnation, &line.client, &end) != 3 ||
		    s[end] || !cluster_name_is_valid(line.run.name))
			return -EBADMSG;
		if (!mounts_add(m, &line))
			return -ENOMEM;
	}
	return 0;
}

/* m->line is the caller's to free, with an error, too. */
static int mounts_read(struct store_rados *r, struct mounts *m)
{
	uint8_t *bytes = malloc(MOUNTS_MAX + 1);
	size_t len = 0;
	int rc;

	*m = (struct mounts){ 0 };
	if (!bytes)
		return -ENOMEM;
	rc = rados_read_object(r, r->mounts_oid, bytes, MOUNTS_MAX, &len, &m->version);
	if (rc == -ENOENT)
		rc = 0;
	bytes[len] = '\0';
	if (rc == 0)
		rc = mounts_decode((char *)bytes, m);
	free(bytes);
	return rc;
}

static int mounts_swap(struct store_rados *r, const struct mounts *m)
{
	char *text = malloc(MOUNTS_MAX);
	size_t len = 0;
	int rc = text ? 0 : -ENOMEM;

	for (unsigned i = 0; i < m->n && rc == 0; i++) {
		const struct mount_line *l = &m->line[i];

		len += (size_t)snprintf(text + len, MOUNTS_MAX - len,
					"%s %" PRIu64 " %" PRIu64 "\n", l->run.name,
					l->run.incarnation, l->client);
		rc = len < MOUNTS_MAX ? 0 : -ENOSPC;
	}
	if (rc == 0)
		rc = rados_swap_object(r, r->mounts_oid, m->version, text, len);
	free(text);
	return rc;
}

/* Reads the mounts, changes them, and repeats that if others have changed them meanwhile. change: > 0: nothing is to be written. */
static int mounts_change(struct store_rados *r,
			 int (*change)(struct store_rados *r, struct mounts *m, void *ctx),
			 void *ctx)
{
	int rc = -RN_ECHANGED;

	for (unsigned i = 0; i < SWAP_MOUNTS_TRIES && rc == -RN_ECHANGED; i++) {
		struct mounts m;

		rc = mounts_read(r, &m);
		if (rc == 0)
			rc = change(r, &m, ctx);
		if (rc == 0)
			rc = mounts_swap(r, &m);
		free(m.line);
	}
	return rc > 0 ? 0 : rc;
}

static bool is_own(const struct store_rados *r, uint64_t client)
{
	for (unsigned i = 0; i < r->own_count; i++)
		if (r->own[i] == client)
			return true;
	return false;
}

/* The lines of this run become what r->own says. A client that another member has, or that is being evicted, is refused: -EBUSY. */
static int mounts_change_own(struct store_rados *r, struct mounts *m, void *ctx)
{
	const struct cluster_self *self = ctx;
	unsigned n = 0;

	for (unsigned i = 0; i < m->n; i++) {
		const struct mount_line *l = &m->line[i];
		const bool mine = strcmp(l->run.name, self->name) == 0;

		if (is_own(r, l->client) && (!mine || l->run.incarnation == 0))
			return l->run.incarnation == 0 ? -ESHUTDOWN : -EBUSY;
		if (!mine || l->run.incarnation != self->incarnation)
			m->line[n++] = *l;
	}
	m->n = n;
	for (unsigned i = 0; i < r->own_count; i++)
		if (!mounts_add(m, &(struct mount_line){ .run = *self, .client = r->own[i] }))
			return -ENOMEM;
	return 0;
}

static int store_rados_use(struct cluster_store *s, const struct cluster_self *self,
			   const uint64_t *clients, unsigned n)
{
	struct store_rados *r = store_rados_of(s);

	if (n > VICTIMS_MAX)
		return -ENOSPC;
	if (n > 0)
		memcpy(r->own, clients, n * sizeof(*clients));
	r->own_count = n;
	return mounts_change(r, mounts_change_own, (void *)self);
}

/* ---- eviction ---- */

/* True if the line is of that run or an earlier one, but not of this process. */
static bool is_victim(const struct store_rados *r, const struct mounts *m,
		      const struct mount_line *l)
{
	if (strcmp(l->run.name, r->dead.name) != 0 || l->run.incarnation > r->dead.incarnation ||
	    is_own(r, l->client))
		return false;
	/* A later run or another member that uses the same client must not lose it. */
	for (unsigned i = 0; i < m->n; i++)
		if (m->line[i].client == l->client &&
		    (strcmp(m->line[i].run.name, r->dead.name) != 0 ||
		     m->line[i].run.incarnation > r->dead.incarnation))
			return false;
	return true;
}

/* Marks the clients to be evicted, so that no run begins to use one from now on, and lists them. Drops other lines of those runs. 1: there was nothing to do. */
static int mounts_mark_victims(struct store_rados *r, struct mounts *m, void *ctx)
{
	struct eviction *e = ctx;
	unsigned n = 0;

	e->nvictims = 0;
	for (unsigned i = 0; i < m->n; i++) {
		struct mount_line l = m->line[i];

		if (is_victim(r, m, &l)) {
			bool listed = false;

			for (unsigned k = 0; k < e->nvictims; k++)
				listed |= e->victim[k] == l.client;
			if (listed || e->nvictims == VICTIMS_MAX)
				continue;
			e->victim[e->nvictims++] = l.client;
			l.run.incarnation = 0;
		} else if (strcmp(l.run.name, r->dead.name) == 0 &&
			   l.run.incarnation <= r->dead.incarnation) {
			continue;
		}
		m->line[n++] = l;
	}
	const bool unchanged = e->nvictims == 0 && n == m->n;

	m->n = n;
	return unchanged;
}

static int mounts_count_victims(struct store_rados *r, struct mounts *m, void *ctx)
{
	unsigned *n = ctx;

	*n = 0;
	for (unsigned i = 0; i < m->n; i++)
		*n += is_victim(r, m, &m->line[i]);
	return 1;
}

static int mounts_drop_victims(struct store_rados *r, struct mounts *m, void *ctx)
{
	const struct eviction *e = ctx;
	unsigned n = 0;

	(void)r;
	for (unsigned i = 0; i < m->n; i++) {
		bool gone = false;

		for (unsigned k = 0; k < e->nvictims; k++)
			gone |= m->line[i].run.incarnation == 0 &&
				m->line[i].client == e->victim[k];
		if (!gone)
			m->line[n++] = m->line[i];
	}
	m->n = n;
	return 0;
}

static void eviction_put(struct eviction *e)
{
	if (!e || atomic_fetch_sub(&e->users, 1) > 1)
		return;
	free(e->mds);
	free(e->conf);
	free(e->user);
	free(e);
}

/* Asks a metadata server to evict the clients. 0 for a client that the server does not know, too. */
static int eviction_ask(const struct eviction *e, rados_handle mount, const char *mds,
			uint64_t client)
{
	char cmd[96], *out = NULL, *text = NULL;
	const char *cmds[1] = { cmd };
	size_t out_len = 0, text_len = 0;

	snprintf(cmd, sizeof(cmd), "{\"prefix\":\"client evict\",\"filters\":[\"id=%" PRIu64 "\"]}",
		 client);
	const int rc =
		e->lib.mds_command(mount, mds, cmds, 1, "", 0, &out, &out_len, &text, &text_len);

	if (out)
		e->lib.buffer_free(out);
	if (text)
		e->lib.buffer_free(text);
	return rc == -ESRCH ? 0 : rc;
}

static int eviction_run(const struct eviction *e)
{
	rados_handle mount = NULL;
	int rc = e->lib.create(&mount, e->user);

	if (rc != 0)
		return rc;
	rc = e->lib.conf_read_file(mount, e->conf);
	if (rc == 0)
		rc = e->lib.conf_set(mount, "client_mount_timeout", "10");
	if (rc == 0)
		rc = e->lib.init(mount);
	for (unsigned i = 0; i < e->nmds && rc == 0; i++)
		for (unsigned k = 0; k < e->nvictims && rc == 0; k++)
			rc = eviction_ask(e, mount, e->mds[i], e->victim[k]);
	e->lib.release(mount);
	return rc;
}

static void *eviction_main(void *arg)
{
	struct eviction *e = arg;

	e->rc = eviction_run(e);
	atomic_store(&e->done, true);
	eviction_put(e);
	return NULL;
}

/* Value of the next member with that name in a JSON text, which the monitors write without spaces; NULL: there is none. */
static const char *json_next(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? at + strlen(name) : NULL;
}

/* True if the list of ranks with that name is not empty. */
static bool json_ranks(const char *text, const char *name)
{
	while ((text = json_next(text, name)))
		if (*text != ']')
			return true;
	return false;
}

/* Lists the metadata servers that have clients. -RN_ELATER: one of them is just being replaced. */
static int eviction_list_mds(struct eviction *e, const char *json)
{
	static const char active[] = "up:active\"", standby[] = "up:standby";
	const char *at = json, *state;

	if (json_ranks(json, "\"failed\":[") || json_ranks(json, "\"damaged\":["))
		return -RN_ELATER;
	while ((at = json_next(at, "\"gid\":")) && (state = json_next(at, "\"state\":\""))) {
		/* up:standby-replay has none either */
		if (strncmp(state, standby, strlen(standby)) == 0)
			continue;
		if (strncmp(state, active, strlen(active)) != 0)
			return -RN_ELATER;
		void *more = reallocarray(e->mds, e->nmds + 1, sizeof(*e->mds));

		if (!more)
			return -ENOMEM;
		e->mds = more;
		snprintf(e->mds[e->nmds++], sizeof(*e->mds), "%llu", strtoull(at, NULL, 10));
	}
	return e->nmds ? 0 : -RN_ELATER;
}

static int eviction_find_mds(struct store_rados *r, struct eviction *e)
{
	char cmd[256], *out = NULL, *text = NULL, *json;
	const char *cmds[1] = { cmd };
	size_t out_len = 0, text_len = 0;
	int rc;

	if (*r->fs)
		snprintf(cmd, sizeof(cmd),
			 "{\"prefix\":\"fs get\",\"fs_name\":\"%s\",\"format\":\"json\"}", r->fs);
	else
		snprintf(cmd, sizeof(cmd), "{\"prefix\":\"fs dump\",\"format\":\"json\"}");
	rc = r->lib.mon_command(r->cluster, cmds, 1, "", 0, &out, &out_len, &text, &text_len);
	if (rc == 0) {
		json = strndup(out ? out : "", out_len);
		rc = json ? eviction_list_mds(e, json) : -ENOMEM;
		free(json);
	}
	if (out)
		r->lib.buffer_free(out);
	if (text)
		r->lib.buffer_free(text);
	return rc;
}

static int eviction_prepare(struct store_rados *r, struct eviction *e)
{
	int rc;

	e->conf = strdup(r->conf);
	e->user = strdup(r->user);
	if (!e->conf || !e->user)
		return -ENOMEM;
	e->lib = r->cephfs;
	rc = eviction_find_mds(r, e);
	return rc ? rc : mounts_change(r, mounts_mark_victims, e);
}

/* -EINPROGRESS: the thread has begun. */
static int eviction_start(struct store_rados *r)
{
	struct eviction *e = calloc(1, sizeof(*e));
	pthread_t thread;
	int rc = e ? 0 : -ENOMEM;

	if (!rc) {
		e->users = 1;
		rc = eviction_prepare(r, e);
	}
	if (!rc && e->nvictims > 0) {
		e->users = 2;
		rc = -pthread_create(&thread, NULL, eviction_main, e);
		e->users -= rc != 0;
	}
	if (rc || e->nvictims == 0) {
		eviction_put(e);
		return rc;
	}
	pthread_setname_np(thread, "evict");
	pthread_detach(thread);
	r->eviction = e;
	return -EINPROGRESS;
}

static int eviction_result(struct store_rados *r)
{
	struct eviction *e = r->eviction;
	int rc;

	if (!atomic_load(&e->done))
		return -EINPROGRESS;
	rc = e->rc;
	r->eviction = NULL;
	if (rc == -EACCES && !r->caps_told) {
		r->caps_told = true;
		rn_err(r->log,
		       "cluster: metadata servers evict nobody for client.%s: give it the "
		       "capability mds 'allow *' (ceph auth caps)",
		       r->user);
	}
	if (rc == 0)
		rc = mounts_change(r, mounts_drop_victims, e);
	eviction_put(e);
	/* One eviction takes a limited number of clients: the next call looks for more. */
	return rc ? rc : -EINPROGRESS;
}

static int store_rados_evict(struct cluster_store *s, const char *name, uint64_t incarnation)
{
	struct store_rados *r = store_rados_of(s);
	const uint64_t now = rn_now_ms();
	const bool same = strcmp(r->dead.name, name) == 0 && r->dead.incarnation == incarnation;
	unsigned n = 0;
	int rc;

	/* Runs are evicted one after the other. */
	if (!same && (r->eviction || (*r->dead.name && now < r->dead_asked + FORGOTTEN_MS)))
		return r->eviction ? eviction_result(r) : -EINPROGRESS;
	if (!same) {
		r->dead = (struct cluster_self){ .incarnation = incarnation };
		snprintf(r->dead.name, sizeof(r->dead.name), "%s", name);
		r->dead_since = now;
	}
	r->dead_asked = now;
	if (r->eviction)
		return eviction_result(r);
	rc = mounts_change(r, mounts_count_victims, &n);
	if (rc == 0 && n > 0 && now < r->dead_since + KEEPER_HAS_MS)
		return -EINPROGRESS;
	if (rc == 0)
		rc = eviction_start(r); /* without clients to evict it only drops lines */
	if (rc == 0)
		r->dead = (struct cluster_self){ .incarnation = 0 };
	return rc;
}

static void store_rados_close(struct cluster_store *s)
{
	struct store_rados *r = store_rados_of(s);

	eviction_put(r->eviction);
	if (r->io)
		r->lib.ioctx_destroy(r->io);
	if (r->cluster)
		r->lib.shutdown(r->cluster);
	free(r->conf);
	free(r->user);
	free(r->fs);
	free(r);
}

static const struct cluster_store_ops store_rados_ops = {
	.read = store_rados_read,
	.swap = store_rados_swap,
	.beat = store_rados_beat,
	.look = store_rados_look,
	.use = store_rados_use,
	.evict = store_rados_evict,
	.close = store_rados_close,
};

/* ---- opening ---- */

/* Sets time limits, so that each operation returns well within the lease even if the cluster hangs. */
static int rados_set_options(struct store_rados *r, const struct cluster_store_cfg *cfg)
{
	const unsigned seconds = (unsigned)rn_max(1, cfg->dead_ms / 5000);
	char text[16];
	int rc;

	snprintf(text, sizeof(text), "%u", seconds);
	rc = r->lib.conf_set(r->cluster, "rados_osd_op_timeout", text);
	if (rc == 0)
		rc = r->lib.conf_set(r->cluster, "rados_mon_op_timeout", text);
	if (rc == 0)
		rc = r->lib.conf_set(r->cluster, "client_mount_timeout", "10");
	/* The daemon has a log and a control socket of its own. */
	if (rc == 0)
		rc = r->lib.conf_set(r->cluster, "log_file", "");
	if (rc == 0)
		rc = r->lib.conf_set(r->cluster, "admin_socket", "");
	return rc;
}

static int rados_connect_to(struct store_rados *r, const struct cluster_store_cfg *cfg,
			    const struct rn_logger *log)
{
	char user[128];
	int rc;

	snprintf(user, sizeof(user), "client.%s", cfg->ceph_user);
	rc = r->lib.create2(&r->cluster, "ceph", user, 0);
	if (rc == 0)
		rc = r->lib.conf_read_file(r->cluster, cfg->ceph_conf);
	if (rc != 0) {
		rn_err(log, "cluster.ceph_conf %s: cannot be read: %s", cfg->ceph_conf,
		       rn_error_text(rc));
		return rc;
	}
	rc = rados_set_options(r, cfg);
	if (rc == 0)
		rc = r->lib.connect(r->cluster);
	if (rc != 0) {
		rn_err(log,
		       "cluster.ceph_conf %s: cannot connect as client.%s: %s; is the keyring "
		       "there, and do the monitors answer? Try: ceph -c %s -n client.%s -s",
		       cfg->ceph_conf, cfg->ceph_user, rn_error_text(rc), cfg->ceph_conf,
		       cfg->ceph_user);
		return rc;
	}
	rc = r->lib.ioctx_create(r->cluster, cfg->pool, &r->io);
	if (rc != 0)
		rn_err(log,
		       "cluster.pool: no use of pool %s: %s; make it by: ceph osd pool create %s",
		       cfg->pool, rn_error_text(rc), cfg->pool);
	return rc;
}

int cluster_store_rados_open(const struct cluster_store_cfg *cfg, const struct rn_logger *log,
			     struct cluster_store **store)
{
	struct store_rados *r = calloc(1, sizeof(*r));
	int rc;

	if (!r)
		return -ENOMEM;
	r->store.ops = &store_rados_ops;
	r->log = log;
	r->own[0] = cfg->own_client;
	r->own_count = cfg->own_client != 0;
	snprintf(r->oid, sizeof(r->oid), "ringnfs.%s", cfg->cluster);
	snprintf(r->beats_oid, sizeof(r->beats_oid), "%s.beats", r->oid);
	snprintf(r->mounts_oid, sizeof(r->mounts_oid), "%s.mounts", r->oid);
	r->conf = strdup(cfg->ceph_conf);
	r->user = strdup(cfg->ceph_user);
	r->fs = strdup(cfg->ceph_fs);
	rc = !r->conf || !r->user || !r->fs
		     ? -ENOMEM
		     : rados_load(LIBRADOS, librados_symbols, rn_array_size(librados_symbols),
				  &r->lib, log);
	/* Loads libcephfs now, so that a missing library shows before a machine dies. */
	if (rc == 0)
		rc = rados_load(LIBCEPHFS, libcephfs_symbols, rn_array_size(libcephfs_symbols),
				&r->cephfs, log);
	if (rc == 0)
		rc = rados_connect_to(r, cfg, log);
	if (rc != 0) {
		store_rados_close(&r->store);
		return rc;
	}
	*store = &r->store;
	return 0;
}
