/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations in the model: who gets one, what ends it, what stands against it. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_model.h"

static const struct nfs4_stateid anonymous;

/* True if the share keeps somebody from a delegation; own: its holder itself. */
static bool share_refuses(const struct model_open *m, bool own, bool writes)
{
	if (!m->is)
		return false;
	return (m->deny & 1) || (writes && (m->deny & 2)) || (!own && (writes || (m->access & 2)));
}

/* Likewise for a delegation. */
static bool deleg_refuses(const struct model_deleg *d, bool own, bool writes)
{
	if (!d->is || d->revoked)
		return false;
	return d->recalled || own || writes || d->writes;
}

bool deleg_may_be_given(int c, int file, bool writes)
{
	bool may = model.client[c].minor > 0;

	for (int i = 0; i < CLIENTS; i++) {
		const struct model_client *mc = &model.client[i];

		may &= !deleg_refuses(&mc->deleg[file], i == c, writes);
		for (int o = 0; o < OWNERS; o++)
			may &= !share_refuses(&mc->open[o][file], i == c, writes);
		for (int l = 0; l < LOCKERS; l++) {
			for (uint32_t b = 0; b < BYTES; b++)
				may &= mc->lock[l][file].byte[b] == 0;
		}
	}
	return may;
}

uint32_t deleg_expected(int c, int file, uint32_t access)
{
	const uint32_t want = access & OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
	const bool writes = want == OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG ||
			    (want != OPEN4_SHARE_ACCESS_WANT_READ_DELEG && (access & 2));

	if (want != OPEN4_SHARE_ACCESS_WANT_NO_DELEG && deleg_may_be_given(c, file, writes))
		return writes ? OPEN_DELEGATE_WRITE : OPEN_DELEGATE_READ;
	return want ? OPEN_DELEGATE_NONE_EXT : OPEN_DELEGATE_NONE;
}

static void free_revoked(struct model_client *mc, const struct model_deleg *d)
{
	cr_assert_eq(op_free_stateid(model.f, &mc->client, &d->sid), NFS4_OK, "step %d",
		     model.step);
}

void note_deleg(int c, int file, const struct op_file *got)
{
	struct model_client *mc = &model.client[c];
	struct model_deleg *d = &mc->deleg[file];
	struct fix4_attrs attrs;

	if (got->delegation != OPEN_DELEGATE_READ && got->delegation != OPEN_DELEGATE_WRITE)
		return;
	if (d->revoked)
		free_revoked(mc, d);
	cr_assert_eq(fix4_getattr(model.f, &mc->client.session, &model.file[file].fh, &attrs),
		     NFS4_OK, "step %d", model.step);
	check_attrs(file, &attrs);
	model.n.to_read += got->delegation == OPEN_DELEGATE_READ;
	model.n.to_write += got->delegation == OPEN_DELEGATE_WRITE;
	*d = (struct model_deleg){ .is = true,
				   .writes = got->delegation == OPEN_DELEGATE_WRITE,
				   .sid = got->deleg,
				   .change = attrs.change,
				   .size = attrs.size };
}

/* The loss is on disk before. */
void expect_revoked(struct model_client *c, struct model_deleg *d)
{
	uint32_t status = NFS4_OK;

	if (!d->is || !d->recalled || d->revoked || c->lost)
		return;
	c->met |= c->away;
	if (c->away)
		return;
	for (int i = 0; i < 20000 && status == NFS4_OK; i++) {
		nfs4_tick(model.f->server4);
		answer_calls();
		status = op_test_stateid(model.f, &c->client, &d->sid);
		if (status == NFS4_OK)
			usleep(500);
	}
	cr_assert_eq(status, NFS4ERR_DELEG_REVOKED, "step %d: %s: %u", model.step, c->name, status);
	d->revoked = true;
	model.n.revoked++;
	c->reclaim = LOST_ONE;
}

/* DELEGRETURN by the holder, or by another client. */
void do_return(int c, int file)
{
	struct model_client *mc = &model.client[c],
			    *by = &model.client[chance(8) ? (uint32_t)c : chance(CLIENTS)];
	struct model_deleg *d = &mc->deleg[file];
	uint32_t want = d->revoked ? NFS4ERR_DELEG_REVOKED : NFS4_OK;

	if (!d->is || by->away || by->lost)
		return;
	if (by != mc)
		want = NFS4ERR_BAD_STATEID;
	cr_assert_eq(op_delegreturn(model.f, &by->client, &model.file[file].fh, &d->sid), want,
		     "step %d: return of %d/%d", model.step, c, file);
	if (by != mc)
		return;
	if (d->revoked)
		free_revoked(mc, d);
	memset(d, 0, sizeof(*d));
	answer_calls();
}

static void begin_setattr(struct op_client *c, int file, const struct nfs4_stateid *sid)
{
	op_begin(model.f, c);
	fix4_putfh(model.f, &model.file[file].fh);
	fix4_op(model.f, OP_SETATTR);
	fix4_stateid(model.f, sid);
}

/* The holder of a write delegation has the server know its size, as when it writes its data. */
static void flush(struct model_client *mc, int file)
{
	struct xdr_out *x = &model.f->out;
	struct model_deleg *d = &mc->deleg[file];

	begin_setattr(&mc->client, file, &d->sid);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, 1u << FATTR4_SIZE);
	xdr_put_u32(x, 8);
	xdr_put_u64(x, d->size);
	cr_assert_eq(fix4_send(model.f), d->revoked ? NFS4ERR_DELEG_REVOKED : NFS4_OK, "step %d",
		     model.step);
	if (d->revoked)
		return;
	model.file[file].size = d->size;
	model.file[file].touched = true;
}

/* The holder reads or writes by its delegation, or changes a file that is its own to write. */
void do_use_delegated(int c, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_deleg *d = &mc->deleg[file];
	const struct vfs_fh *fh = &model.file[file].fh;
	const uint32_t revoked = d->revoked ? NFS4ERR_DELEG_REVOKED : NFS4_OK;
	uint32_t status;

	if (!d->is)
		return;
	switch (chance(d->writes ? 4 : 2)) {
	case 0:
		cr_assert_eq(op_read(model.f, &mc->client, fh, &d->sid), revoked, "step %d",
			     model.step);
		break;
	case 1:
		status = op_write(model.f, &mc->client, fh, &d->sid);
		cr_assert_eq(status, revoked || d->writes ? revoked : NFS4ERR_OPENMODE,
			     "step %d: %u", model.step, status);
		model.file[file].touched |= status == NFS4_OK;
		break;
	case 2:
		d->changes++;
		d->size = BYTES + chance(1000);
		break;
	default:
		flush(mc, file);
	}
}

static uint32_t send_mode(void *arg)
{
	const struct meeting *m = arg;
	struct xdr_out *x = &model.f->out;

	begin_setattr(&model.client[m->c].client, m->file, &anonymous);
	xdr_put_u32(x, 2);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 1u << (FATTR4_MODE - 32));
	xdr_put_u32(x, 4);
	xdr_put_u32(x, 0666);
	return fix4_send(model.f);
}

static uint32_t send_link(void *arg)
{
	const struct meeting *m = arg;

	op_begin(model.f, &model.client[m->c].client);
	fix4_putfh(model.f, &model.file[m->file].fh);
	fix4_op(model.f, OP_SAVEFH);
	fix4_putfh(model.f, &model.f->root);
	fix4_op(model.f, OP_LINK);
	fix4_name(model.f, "link");
	return fix4_send(model.f);
}

static uint32_t send_remove(void *arg)
{
	const struct meeting *m = arg;

	op_begin(model.f, &model.client[m->c].client);
	fix4_putfh(model.f, &model.f->root);
	fix4_op(model.f, OP_REMOVE);
	fix4_name(model.f, "link");
	return fix4_send(model.f);
}

/* Removes the second name again, unless another client has the file open and denies others to write it. */
static void unlink_again(int c, int file)
{
	struct meeting m = { .c = c, .file = file };
	char path[80];

	for (int i = 0; i < CLIENTS; i++)
		for (int o = 0; o < OWNERS && i != c; o++) {
			const struct model_open *open = &model.client[i].open[o][file];

			m.hit[i] |= open->is && (open->deny & 2);
		}
	if (somebody_lives(m.hit))
		m.want = NFS4ERR_FILE_OPEN;
	go_through(&m, send_remove, &m, "REMOVE");
	if (m.want == NFS4_OK)
		return;
	snprintf(path, sizeof(path), "%s/link", model.f->dir[0]);
	cr_assert_eq(unlink(path), 0, "%s", path);
}

/* SETATTR, LINK or REMOVE by somebody. */
void do_change(int c, int file)
{
	struct meeting m = { .c = c, .file = file };

	meet_delegs(&m, true);
	model.n.met_by_change += m.waits;
	if (chance(2)) {
		go_through(&m, send_mode, &m, "SETATTR");
	} else {
		go_through(&m, send_link, &m, "LINK");
		if (m.want == NFS4_OK)
			unlink_again(c, file);
	}
	if (m.want == NFS4_OK)
		model.file[file].touched = true;
}

static uint32_t send_read(void *arg)
{
	const struct meeting *m = arg;

	return op_read(model.f, &model.client[m->c].client, &model.file[m->file].fh, &anonymous);
}

/* READ without an open. */
void do_peek(int c, int file)
{
	struct meeting m = { .c = c, .file = file };

	for (int i = 0; i < CLIENTS; i++) {
		for (int o = 0; o < OWNERS; o++) {
			const struct model_open *open = &model.client[i].open[o][file];

			m.hit[i] |= open->is && (open->deny & 1);
		}
	}
	if (somebody_lives(m.hit))
		m.want = NFS4ERR_LOCKED;
	meet_delegs(&m, false);
	go_through(&m, send_read, &m, "READ");
}
