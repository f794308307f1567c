/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/state_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/admin_query.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "lib/host.h"
#include "vfs/vfs.h"

static bool state_filter_add_export(void *arg, struct vfs_export *exp)
{
	struct state_filter *f = arg;
	const size_t room = f->n < f->room ? f->room : f->room ? 2 * f->room : 16;
	struct vfs_export **more =
		room == f->room ? f->exp : realloc(f->exp, room * sizeof(f->exp[0]));

	if (!more)
		return false;
	f->exp = more;
	f->room = room;
	vfs_export_ref(exp);
	f->exp[f->n++] = exp;
	return true;
}

static int state_filter_compare(const void *a, const void *b)
{
	const uint32_t x = vfs_export_id(*(struct vfs_export *const *)a);
	const uint32_t y = vfs_export_id(*(struct vfs_export *const *)b);

	return (x > y) - (x < y);
}

struct vfs_export *state_filter_export(const struct state_filter *f, uint32_t id)
{
	size_t low = 0, high = f->n;

	while (low < high) {
		const size_t at = low + (high - low) / 2;

		if (vfs_export_id(f->exp[at]) < id)
			low = at + 1;
		else
			high = at;
	}
	return low < f->n && vfs_export_id(f->exp[low]) == id ? f->exp[low] : NULL;
}

/* A parameter of text. False: it is wrong. */
static bool state_filter_take_text(const struct admin_request *req, const char *name, char *value,
				   size_t size, bool *given)
{
	const int rc = admin_query_text(req, name, value, size);

	*given = rc == 0;
	return rc == 0 ? *value != '\0' : rc == -ENOENT;
}

static bool is_export(const struct vfs_export *exp, const char *path)
{
	return strcmp(path, vfs_export_path(exp)) == 0 ||
	       strcmp(path, vfs_export_real_path(exp)) == 0;
}

static bool knows_export(const struct state_filter *f)
{
	for (size_t i = 0; i < f->n; i++) {
		if (is_export(f->exp[i], f->export))
			return true;
	}
	return false;
}

static bool state_filter_refuse(struct admin_reply *r, const char *why)
{
	admin_reply_error(r, 400, "bad_request", "%s", why);
	return false;
}

/* An id is a number above 0, an address has a point or a colon. False: it is neither. */
static bool state_filter_take_client(struct state_filter *f, const struct admin_request *req)
{
	struct sockaddr_storage peer;

	if (!state_filter_take_text(req, "client", f->client, sizeof(f->client), &f->by_client))
		return false;
	if (!f->by_client)
		return true;
	if (!strpbrk(f->client, ".:"))
		return admin_query_number(req, "client", UINT64_MAX, &f->clientid) == 0 &&
		       f->clientid != 0;
	if (!endpoint_read_address(f->client, &peer))
		return false;
	endpoint_put_address(&peer, f->client);
	return true;
}

static int digit_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes as pairs of hexadecimal digits. Their number, or 0: they are none, or too many. */
static uint32_t read_hex(const char *text, uint8_t *bytes, uint32_t room)
{
	uint32_t n = 0;

	for (; text[0]; text += 2) {
		const int high = digit_of(text[0]), low = high < 0 ? -1 : digit_of(text[1]);

		if (low < 0 || n == room)
			return 0;
		bytes[n++] = (uint8_t)(high << 4 | low);
	}
	return n;
}

/* handle and device come together. False: they are wrong. */
static bool state_filter_take_handle(struct state_filter *f, const struct admin_request *req)
{
	char handle[2 * STATE_HANDLE_MAX + 1], device[32];
	bool with_device;
	int end = -1;

	if (!state_filter_take_text(req, "handle", handle, sizeof(handle), &f->by_handle) ||
	    !state_filter_take_text(req, "device", device, sizeof(device), &with_device) ||
	    f->by_handle != with_device)
		return false;
	if (!f->by_handle)
		return true;
	f->handle_len = read_hex(handle, f->handle, sizeof(f->handle));
	sscanf(device, "%9" SCNu32 ":%9" SCNu32 "%n", &f->dev_major, &f->dev_minor, &end);
	return f->handle_len > 0 && end >= 0 && device[end] == '\0';
}

bool state_filter_init(struct state_filter *f, const struct vfs_exports *exports,
		       const struct admin_request *req, struct admin_reply *r)
{
	*f = (struct state_filter){ .n = 0 };
	exports->each(exports->ctx, state_filter_add_export, f);
	if (f->n)
		qsort(f->exp, f->n, sizeof(f->exp[0]), state_filter_compare);
	if (!state_filter_take_text(req, "file", f->file, sizeof(f->file), &f->by_file) ||
	    (f->by_file && f->file[0] != '/'))
		return state_filter_refuse(r, "file: an absolute path is expected");
	if (!state_filter_take_handle(f, req))
		return state_filter_refuse(
			r, "handle: that member of a row, with device: MAJOR:MINOR of the "
			   "file, is expected");
	if (!state_filter_take_client(f, req))
		return state_filter_refuse(
			r, "client: an id or address as in the list of clients is expected");
	if (!state_filter_take_text(req, "id", f->id, sizeof(f->id), &f->by_id))
		return state_filter_refuse(r, "id: an id as in the list is expected");
	if (!state_filter_take_text(req, "export", f->export, sizeof(f->export), &f->by_export))
		return state_filter_refuse(r, "export: the path of an export is expected");
	if (f->by_export && !knows_export(f)) {
		admin_reply_error(r, 404, "not_found", "no export is at %s", f->export);
		return false;
	}
	return true;
}

void state_filter_done(struct state_filter *f)
{
	for (size_t i = 0; i < f->n; i++)
		vfs_export_put(f->exp[i]);
	free(f->exp);
	f->exp = NULL;
	f->n = 0;
}

bool state_filter_is_set(const struct state_filter *f)
{
	return f->by_file || f->by_handle || f->by_export || f->by_client || f->by_id;
}

/* True if the client and the id are meant. */
static bool state_filter_has(const struct state_filter *f, const char *client, const char *id)
{
	return (!f->by_client || f->clientid != 0 || strcmp(f->client, client) == 0) &&
	       (!f->by_id || strcmp(f->id, id) == 0);
}

/* True if the file is meant, as far as its handle says. */
static bool state_filter_has_file(const struct state_filter *f, const struct vfs_file *file)
{
	return !f->by_handle ||
	       vfs_view_is_file(file, f->dev_major, f->dev_minor, f->handle, f->handle_len);
}

/* True if the path is the one that is meant, which may begin with the path of the export as exports(5) has it. */
static bool is_file(const struct state_filter *f, const struct state_where *w)
{
	const char *real = w->exp ? vfs_export_real_path(w->exp) : NULL;
	const char *path = w->exp ? vfs_export_path(w->exp) : NULL;

	if (strcmp(f->file, w->path.text) == 0)
		return true;
	return real && w->path.text[0] && strncmp(w->path.text, real, strlen(real)) == 0 &&
	       strncmp(f->file, path, strlen(path)) == 0 &&
	       strcmp(f->file + strlen(path), w->path.text + strlen(real)) == 0;
}

bool state_filter_where(const struct state_filter *f, uint32_t export_id, const struct vfs_fh *fh,
			struct vfs_file *file, struct state_where *out)
{
	const struct vfs_view_exports all = { .exp = f->exp, .n = f->n };

	out->exp = state_filter_export(f, export_id);
	if (f->by_export && !(out->exp && is_export(out->exp, f->export)))
		return false;
	vfs_view_path(&all, out->exp, fh, file, &out->path);
	return !f->by_file || f->by_handle || is_file(f, out);
}

json_t *state_path_text(const char *path)
{
	json_t *s = json_string(path);

	return s ? s : client_printable((const uint8_t *)path, (uint32_t)strlen(path));
}

/* The kernel's part of a handle, which is no secret: the MAC is not shown. */
static json_t *state_row_handle_text(const struct vfs_fh *fh)
{
	char text[2 * VFS_FH_MAX + 1] = "";
	uint32_t len;
	const uint8_t *part = vfs_view_handle(fh, &len);

	for (uint32_t i = 0; i < len; i++)
		sprintf(text + 2 * (size_t)i, "%02x", part[i]);
	return json_string(text);
}

static void add_where(json_t *row, const struct state_where *w, const struct vfs_fh *fh,
		      uint32_t export_id)
{
	json_object_set_new(row, "path",
			    w->path.text[0] ? state_path_text(w->path.text) : json_null());
	json_object_set_new(row, "removed", json_boolean(w->path.removed));
	json_object_set_new(row, "export",
			    w->exp ? state_path_text(vfs_export_path(w->exp)) : json_null());
	json_object_set_new(row, "export_id", json_integer(export_id));
	json_object_set_new(row, "handle", state_row_handle_text(fh));
}

/* JSON's integers end at 2^63 - 1 for most programs. */
static json_t *offset_number(uint64_t n)
{
	char text[24];

	if (n <= INT64_MAX)
		return json_integer((json_int_t)n);
	snprintf(text, sizeof(text), "%" PRIu64, n);
	return json_string(text);
}

static void add_ranges(json_t *row, bool known, const struct vfs_view_ranges *ranges)
{
	json_t *list = json_array();

	if (!known) {
		json_decref(list);
		json_object_set_new(row, "ranges", json_null());
		return;
	}
	for (uint32_t i = 0; i < ranges->n; i++) {
		const struct vfs_view_range *g = &ranges->range[i];
		json_t *one = json_object();

		json_object_set_new(one, "type",
				    json_string(g->type == VFS_LOCK_WRITE ? "write" : "read"));
		json_object_set_new(one, "offset", offset_number(g->offset));
		json_object_set_new(one, "length",
				    g->length == UINT64_MAX ? json_null()
							    : offset_number(g->length));
		json_array_append_new(list, one);
	}
	json_object_set_new(row, "ranges", list);
	json_object_set_new(row, "ranges_total", json_integer(ranges->total));
}

static const char *bits(unsigned share)
{
	static const char *const names[] = { "none", "read", "write", "both" };

	return names[share & VFS_SHARE_BOTH];
}

static void add_open(json_t *row, const struct nfs4_view_state *st)
{
	json_object_set_new(row, "access",
			    st->share_known ? json_string(bits(st->access)) : json_null());
	json_object_set_new(row, "deny",
			    st->share_known ? json_string(bits(st->deny)) : json_null());
}

static void add_recalled(json_t *row, const struct nfs4_view_state *st)
{
	json_object_set_new(row, "recalled", json_boolean(st->recalled));
	if (st->recalled)
		json_object_set_new(row, "recalled_for", json_integer((json_int_t)st->recalled_s));
}

static void add_delegation(json_t *row, const struct nfs4_view_state *st)
{
	const char *kind = st->directory ? "directory" : st->writing ? "write" : "read";

	json_object_set_new(row, "kind", json_string(kind));
	add_recalled(row, st);
}

static void add_layout(json_t *row, const struct nfs4_view_state *st)
{
	json_object_set_new(row, "kind", json_string(st->to_write ? "write" : "read"));
	json_object_set_new(row, "data_server", state_path_text(st->data_server));
	add_recalled(row, st);
}

json_t *state_row4(const struct state_filter *f, enum nfs4_view_kind kind,
		   const struct nfs4_view_state *st)
{
	char client[24], id[24];
	struct state_where w;

	snprintf(client, sizeof(client), "0x%016" PRIx64, st->clientid);
	snprintf(id, sizeof(id), "0x%016" PRIx64, st->id);
	if (!state_filter_has_file(f, st->file) || !state_filter_has(f, client, id) ||
	    !state_filter_where(f, st->export_id, &st->fh, st->file, &w))
		return NULL;
	json_t *row = json_pack("{s:s, s:s, s:s}", "id", id, "client", client, "version",
				st->sessions ? "4.1" : "4.0");

	json_object_set_new(row, "client_name", client_printable(st->client, st->client_len));
	if (st->owner)
		json_object_set_new(row, "owner", client_printable(st->owner, st->owner_len));
	add_where(row, &w, &st->fh, st->export_id);
	if (kind == NFS4_VIEW_OPENS)
		add_open(row, st);
	else if (kind == NFS4_VIEW_LOCKS)
		add_ranges(row, st->ranges_known, st->ranges);
	else if (kind == NFS4_VIEW_LAYOUTS)
		add_layout(row, st);
	else
		add_delegation(row, st);
	json_object_set_new(row, "age", json_integer((json_int_t)st->age_s));
	json_object_set_new(row, "revoked", json_boolean(st->revoked));
	return row;
}

json_t *state_row3(const struct state_filter *f, const struct nlm_view_owner *o)
{
	char client[INET6_ADDRSTRLEN] = "", id[24];
	struct state_where w;

	rn_address_text(o->addr, client);
	snprintf(id, sizeof(id), "nlm-%" PRIu64, o->id);
	if (!state_filter_has_file(f, o->file) || !state_filter_has(f, client, id) ||
	    !state_filter_where(f, o->export_id, &o->fh, o->file, &w))
		return NULL;
	json_t *row = json_pack("{s:s, s:s, s:s}", "id", id, "client", client, "version", "3");

	json_object_set_new(row, "client_name", client_printable(o->caller, o->caller_len));
	json_object_set_new(row, "owner", client_printable(o->oh, o->oh_len));
	json_object_set_new(row, "process", json_integer(o->svid));
	add_where(row, &w, &o->fh, o->export_id);
	add_ranges(row, o->ranges_known, o->ranges);
	if (o->access || o->deny) {
		json_object_set_new(row, "access", json_string(bits(o->access)));
		json_object_set_new(row, "deny", json_string(bits(o->deny)));
	}
	json_object_set_new(row, "revoked", json_false());
	return row;
}
