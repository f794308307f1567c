/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/state_rows.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/client_text.h"
#include "vfs/vfs.h"

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

static void add_delegation(json_t *row, const struct nfs4_view_state *st)
{
	const char *kind = st->directory ? "directory" : st->writing ? "write" : "read";

	json_object_set_new(row, "kind", json_string(kind));
	json_object_set_new(row, "recalled", json_boolean(st->recalled));
	if (st->recalled)
		json_object_set_new(row, "recalled_for", json_integer((json_int_t)st->recalled_s));
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

	client_put_address(o->addr, client);
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
