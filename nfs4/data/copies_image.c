/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Copies in the background in the image of the state (nfs4/nfs4_image.c): where each is, whom it is for, and the results of those that have ended.
 * None works, as nfs4_copies_rest() has had them pause; the next program's first tick goes on. A client that was being told, and has not
 * answered, is told once more: one that has missed the result may wait for it for ever.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"
#include "rpc/caller_image.h"

struct saved_copy {
	struct nfs4_stateid sid, from_sid, to_sid;
	uint32_t uid, export_id;
	struct image_bytes from_fh, to_fh;
	bool delegated;
	uint64_t from_at, to_at, count, copied;
	struct nfs4_cb_referring referring;
	bool working, waits, syncing, again, lost;
	uint64_t age; /* seconds since copy->since */
	uint32_t status, committed;
	uint64_t verifier;
	int errors;
	bool remote; /* the source is another server's file */
	struct nfs4_remote_file file;
	struct rpc_saved_caller caller; /* if working */
};
static const struct image_field saved_copy_fields[] = {
	IMAGE_FIXED(1, struct saved_copy, sid),
	IMAGE_FIXED(2, struct saved_copy, from_sid),
	IMAGE_FIXED(3, struct saved_copy, to_sid),
	IMAGE_NUMBER(4, struct saved_copy, uid),
	IMAGE_NUMBER(5, struct saved_copy, export_id),
	IMAGE_BYTES(6, struct saved_copy, from_fh),
	IMAGE_BYTES(7, struct saved_copy, to_fh),
	IMAGE_NUMBER(8, struct saved_copy, delegated),
	IMAGE_NUMBER(9, struct saved_copy, from_at),
	IMAGE_NUMBER(10, struct saved_copy, to_at),
	IMAGE_NUMBER(11, struct saved_copy, count),
	IMAGE_NUMBER(12, struct saved_copy, copied),
	IMAGE_FIXED(13, struct saved_copy, referring),
	IMAGE_NUMBER(14, struct saved_copy, working),
	IMAGE_NUMBER(15, struct saved_copy, waits),
	IMAGE_NUMBER(16, struct saved_copy, syncing),
	IMAGE_NUMBER(17, struct saved_copy, again),
	IMAGE_NUMBER(18, struct saved_copy, lost),
	IMAGE_NUMBER(19, struct saved_copy, age),
	IMAGE_NUMBER(20, struct saved_copy, status),
	IMAGE_NUMBER(21, struct saved_copy, committed),
	IMAGE_NUMBER(22, struct saved_copy, verifier),
	IMAGE_FD(23, struct saved_copy, errors),
	IMAGE_NUMBER(30, struct saved_copy, remote),
	IMAGE_FIXED(31, struct saved_copy, file.route.from),
	IMAGE_FIXED(32, struct saved_copy, file.route.to),
	IMAGE_FIXED(33, struct saved_copy, file.sid),
	IMAGE_NUMBER(34, struct saved_copy, file.served),
	RPC_SAVED_CALLER_FIELDS(40, struct saved_copy, caller),
};
static const struct image_kind saved_copy_kind = { NFS4_IMAGE_COPY,
						   rn_array_size(saved_copy_fields),
						   saved_copy_fields };

struct saved_told {
	struct nfs4_stateid sid;
	uint64_t clientid, copied, age;
	uint32_t uid, status;
	struct image_bytes to_fh;
	uint32_t last_id; /* last id of the table; in the first record, which has no client */
};
static const struct image_field saved_told_fields[] = {
	IMAGE_FIXED(1, struct saved_told, sid),	    IMAGE_NUMBER(2, struct saved_told, clientid),
	IMAGE_NUMBER(3, struct saved_told, copied), IMAGE_NUMBER(4, struct saved_told, age),
	IMAGE_NUMBER(5, struct saved_told, uid),    IMAGE_NUMBER(6, struct saved_told, status),
	IMAGE_BYTES(7, struct saved_told, to_fh),   IMAGE_NUMBER(8, struct saved_told, last_id),
};
static const struct image_kind saved_told_kind = { NFS4_IMAGE_COPY_TOLD,
						   rn_array_size(saved_told_fields),
						   saved_told_fields };

static struct image_bytes bytes_of_fh(const struct vfs_fh *fh)
{
	return (struct image_bytes){ fh->data, fh->len };
}

/* False: the bytes are no file handle. */
static bool take_fh(const struct image_bytes *from, struct vfs_fh *to)
{
	if (!from->at || from->len > sizeof(to->data))
		return false;
	memcpy(to->data, from->at, from->len);
	to->len = from->len;
	return true;
}

/* True if the verifier of this run tells of no loss since its first piece. */
static bool verifier_stands(const struct nfs4_copy *copy)
{
	const struct vfs_exports *exports = &copy->client->srv->cfg.exports;
	struct vfs_access access;
	struct vfs_export *exp;
	bool stands;

	if (!copy->expecting)
		return true;
	if (exports->by_id(exports->ctx, copy->export_id, (const struct sockaddr *)&copy->conn.peer,
			   &exp, &access) != 0)
		return false;
	stands = vfs_write_verifier(exp) == copy->expects;
	vfs_export_put(exp);
	return stands;
}

/* Saves the descriptor by which the next program learns of errors of write-back, and whether copied data are lost already. */
static void save_errors(const struct nfs4_copy *copy, struct saved_copy *out)
{
	if (copy->offload.committed != VFS_UNSTABLE)
		return;
	out->errors = copy->errors >= 0 ? copy->errors : copy->errors_before;
	out->lost = copy->lost || out->errors < 0 || !verifier_stands(copy) ||
		    (copy->errors >= 0 && vfs_errors_seen(copy->errors_before));
}

static void save_copy(struct image_writer *w, const struct nfs4_copy *copy)
{
	struct saved_copy s = {
		.sid = copy->sid,
		.from_sid = copy->from_sid,
		.to_sid = copy->to_sid,
		.uid = copy->uid,
		.export_id = copy->export_id,
		.from_fh = bytes_of_fh(&copy->from_fh),
		.to_fh = bytes_of_fh(&copy->to_fh),
		.delegated = copy->delegated,
		.from_at = copy->from_at,
		.to_at = copy->to_at,
		.count = copy->count,
		.copied = copy->copied,
		.referring = copy->referring,
		.working = copy->phase == NFS4_COPY_PAUSED,
		.waits = copy->waits,
		.syncing = copy->syncing,
		.again = copy->again || copy->phase == NFS4_COPY_TELLING,
		.age = nfs4_clients_now(copy->client->srv) - copy->since,
		.status = copy->offload.status,
		.committed = copy->offload.committed,
		.verifier = copy->offload.verifier,
		.errors = -1,
	};

	if (s.working) {
		save_errors(copy, &s);
		s.caller = rpc_caller_save(w, &copy->conn, &copy->req->call.cred);
	}
	if (s.working && copy->remote.file) {
		s.remote = true;
		s.file = *nfs4_remote_file(copy->remote.file);
	}
	image_put(w, &saved_copy_kind, &s);
	explicit_bzero(&s.file, sizeof(s.file));
}

void nfs4_copies_save(struct nfs4_client *cl, struct image_writer *w)
{
	const struct nfs4_copies *all = cl->srv->copies;
	const struct nfs4_copy *copy;

	if (cl->holdings->dropped)
		return;
	LIST_FOREACH (copy, &all->list, link)
		if (copy->client == cl && !copy->cancelled)
			save_copy(w, copy);
}

void nfs4_copies_save_told(struct nfs4_copies *all, struct image_writer *w)
{
	const uint64_t now = nfs4_clients_now(all->srv);

	image_put(w, &saved_told_kind, &(struct saved_told){ .last_id = all->last_id });
	for (unsigned i = 0; i < NFS4_COPIES_MAX; i++) {
		const struct nfs4_copy_told *t = &all->told[(all->next_told + i) % NFS4_COPIES_MAX];
		const struct saved_told s = {
			.sid = t->sid,
			.clientid = t->clientid,
			.copied = t->copied,
			.age = now - t->at,
			.uid = t->uid,
			.status = t->status,
			.to_fh = bytes_of_fh(&t->to_fh),
		};

		if (t->clientid != 0)
			image_put(w, &saved_told_kind, &s);
	}
}

/* The next program. */

static int load_caller(struct nfs4_copy *copy, const struct rpc_saved_caller *s)
{
	const struct nfs4_config *cfg = &copy->client->srv->cfg;
	struct rpc_loaded_caller c;
	int rc = cfg->rpc ? rpc_caller_load(s, NULL, &c) : -EPROTO;

	if (rc != 0)
		return rc;
	rc = nfs4_copy_work_new(
		copy, &(struct nfs4_copy_caller){ &c.conn, &c.cred, cfg->rpc, cfg->clients });
	rpc_caller_put(&c);
	return rc;
}

/* Fills in the members that need no memory. */
static int fill_copy(struct nfs4_copy *copy, const struct saved_copy *s)
{
	const uint64_t now = nfs4_clients_now(copy->client->srv);

	if (!take_fh(&s->from_fh, &copy->from_fh) || !take_fh(&s->to_fh, &copy->to_fh) ||
	    s->copied > s->count || s->count > INT64_MAX || s->from_at > INT64_MAX ||
	    s->to_at > INT64_MAX)
		return -EPROTO;
	copy->sid = s->sid;
	copy->uid = s->uid;
	copy->export_id = s->export_id;
	copy->from_sid = s->from_sid;
	copy->to_sid = s->to_sid;
	copy->delegated = s->delegated;
	copy->from_at = s->from_at;
	copy->to_at = s->to_at;
	copy->count = s->count;
	copy->copied = s->copied;
	copy->referring = s->referring;
	copy->phase = s->working ? NFS4_COPY_PAUSED : NFS4_COPY_KEPT;
	copy->waits = s->waits;
	copy->syncing = s->syncing;
	copy->again = s->again;
	copy->lost = s->lost || (s->committed == VFS_UNSTABLE && s->errors < 0);
	copy->since = now - rn_min(now, s->age);
	copy->offload.status = s->status;
	copy->offload.committed = s->committed;
	copy->offload.verifier = s->verifier;
	return 0;
}

static void enlist(struct nfs4_copy *copy)
{
	struct nfs4_copies *all = copy->all;

	pthread_mutex_lock(&all->lock);
	LIST_INSERT_HEAD(&all->list, copy, link);
	all->n++;
	pthread_mutex_unlock(&all->lock);
}

/* Makes the copy. Takes the descriptor s->errors. */
static int load_copy(struct nfs4_client *cl, const struct saved_copy *s)
{
	struct nfs4_copy *copy = calloc(1, sizeof(*copy));
	struct nfs4_remote_file file = s->file;
	int rc;

	vfs_errors_load(cl->srv->cfg.vfs, s->errors);
	if (!copy) {
		vfs_errors_close(cl->srv->cfg.vfs, s->errors);
		return -ENOMEM;
	}
	copy->all = cl->srv->copies;
	copy->client = cl;
	nfs4_client_ref(cl);
	copy->errors = -1;
	copy->errors_before = s->errors;
	rc = fill_copy(copy, s);
	if (rc == 0 && !nfs4_copy_charge(copy))
		rc = -ENOMEM;
	if (rc == 0 && s->working)
		rc = load_caller(copy, &s->caller);
	if (rc == 0 && s->working && s->remote) {
		file.fh = copy->from_fh;
		rc = nfs4_copy_remote_new(copy, &file);
	}
	explicit_bzero(&file, sizeof(file));
	if (rc == 0)
		enlist(copy);
	else
		nfs4_copy_free(copy);
	return rc;
}

int nfs4_copy_load(struct nfs4_client *cl, struct image_at *at)
{
	struct saved_copy s = { .errors = -1 };
	int rc = image_get(at, &saved_copy_kind, &s);

	if (rc == 0)
		rc = load_copy(cl, &s);
	explicit_bzero(&s.file, sizeof(s.file));
	return rc;
}

int nfs4_copies_load_told(struct nfs4_copies *all, struct image_at *at)
{
	const uint64_t now = nfs4_clients_now(all->srv);
	struct nfs4_copy_told *t = &all->told[all->next_told];
	struct saved_told s = { .last_id = 0 };
	const int rc = image_get(at, &saved_told_kind, &s);

	if (rc != 0)
		return rc;
	if (s.clientid == 0) {
		all->last_id = s.last_id;
		return 0;
	}
	if (!take_fh(&s.to_fh, &t->to_fh))
		return -EPROTO;
	t->sid = s.sid;
	t->clientid = s.clientid;
	t->uid = s.uid;
	t->copied = s.copied;
	t->status = s.status;
	t->at = now - rn_min(now, s.age);
	all->next_told = (all->next_told + 1) % NFS4_COPIES_MAX;
	return 0;
}
