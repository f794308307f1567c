/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/trace_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/admin/client_text.h"
#include "daemon/admin/text.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/op_table.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_traced.h"

#define TEXT_MAX 48

static void trace_json_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

static void add_time(json_t *to, uint64_t ns)
{
	const time_t seconds = (time_t)(ns / RN_NS_PER_SECOND);
	char text[TEXT_MAX] = "";
	struct tm tm;

	if (gmtime_r(&seconds, &tm)) {
		const size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);

		snprintf(text + n, sizeof(text) - n, ".%06uZ",
			 (unsigned)(ns % RN_NS_PER_SECOND / 1000));
	}
	json_object_set_new(to, "time", json_string(text));
}

static void trace_json_add_client(json_t *to, const struct trace_call *c)
{
	char id[TEXT_MAX];

	json_object_set_new(to, "client", client_address(c->peer.bytes));
	trace_json_add_number(to, "port", c->port);
	json_object_set_new(to, "transport", json_string(c->netid));
	if (c->clientid) {
		snprintf(id, sizeof(id), "0x%016" PRIx64, c->clientid);
		json_object_set_new(to, "clientid", json_string(id));
	}
	if (c->has_uid)
		trace_json_add_number(to, "uid", c->uid);
}

static void add_program(json_t *to, const struct trace_call *c, const struct rpc_server *rpc)
{
	char number[TEXT_MAX], version[TEXT_MAX];
	const char *name = number;

	snprintf(number, sizeof(number), "%u", c->prog);
	for (unsigned i = 0; i < rpc->nprograms; i++)
		if (rpc->programs[i].prog == c->prog)
			name = rpc->programs[i].name;
	json_object_set_new(to, "program", json_string(name));
	snprintf(version, sizeof(version), "%u", c->vers);
	if (c->compound)
		snprintf(version, sizeof(version), "%u.%u", c->vers, c->minor);
	json_object_set_new(to, "version", json_string(version));
	snprintf(number, sizeof(number), "%u", c->proc);
	json_object_set_new(to, "procedure", json_string(c->name ? c->name : number));
}

static void add_operations(json_t *to, const struct trace_call *c)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < c->nkept; i++) {
		const struct nfs4_op *row =
			c->ops[i] ? nfs4_op_find(c->ops[i], NFS4_MINOR_MAX) : NULL;

		json_array_append_new(list, json_string(row ? row->name : "ILLEGAL"));
	}
	json_object_set_new(to, "operations", list);
	trace_json_add_number(to, "operations_total", c->nops);
}

static const char *accept_name(uint32_t status)
{
	static const char *const names[] = {
		[RPC_PROG_UNAVAIL] = "PROG_UNAVAIL", [RPC_PROG_MISMATCH] = "PROG_MISMATCH",
		[RPC_PROC_UNAVAIL] = "PROC_UNAVAIL", [RPC_GARBAGE_ARGS] = "GARBAGE_ARGS",
		[RPC_SYSTEM_ERR] = "SYSTEM_ERR",
	};

	return status < rn_array_size(names) ? names[status] : NULL;
}

static const char *auth_name(uint32_t status)
{
	static const char *const names[] = {
		[RPC_AUTH_BADCRED] = "AUTH_BADCRED", [RPC_AUTH_REJECTEDCRED] = "AUTH_REJECTEDCRED",
		[RPC_AUTH_BADVERF] = "AUTH_BADVERF", [RPC_AUTH_REJECTEDVERF] = "AUTH_REJECTEDVERF",
		[RPC_AUTH_TOOWEAK] = "AUTH_TOOWEAK", [RPC_AUTH_FAILED] = "AUTH_FAILED",
	};

	return status < rn_array_size(names) ? names[status] : NULL;
}

static const char *program_status(const struct trace_call *c)
{
	if (c->prog == NLM_PROGRAM)
		return nlm_status_name(c->status);
	return c->prog == NFS_PROGRAM && c->vers == NFS4_VERSION ? nfs4_status_name(c->status)
								 : nfs3_status_name(c->status);
}

static void add_status(json_t *to, const struct trace_call *c)
{
	const char *name = NULL;
	char text[TEXT_MAX];

	switch (c->outcome) {
	case TRACE_STATUS:
		name = program_status(c);
		break;
	case TRACE_NO_ERROR:
		name = "OK";
		break;
	case TRACE_ACCEPT:
		name = accept_name(c->status);
		break;
	case TRACE_AUTH:
		name = auth_name(c->status);
		break;
	case TRACE_RPC:
		name = "RPC_MISMATCH";
		break;
	case TRACE_UNSENT:
		name = "too long";
		break;
	}
	/* MOUNT's are NFS's with another beginning. */
	snprintf(text, sizeof(text), "%u", c->status);
	if (name && c->prog == MOUNT_PROGRAM && strncmp(name, "NFS3", 4) == 0)
		snprintf(text, sizeof(text), "MNT3%s", name + 4);
	else if (name)
		snprintf(text, sizeof(text), "%s", name);
	json_object_set_new(to, "status", json_string(text));
	json_object_set_new(to, "failed", json_boolean(trace_call_failed(c)));
}

/* The kernel's part of a handle of this server; of another, which somebody has made up, the whole. */
static json_t *trace_json_handle_text(const struct trace_call *c)
{
	char text[2 * VFS_FH_MAX + 1] = "";
	const uint8_t *part = c->fh.data;
	uint32_t len = c->fh.len;

	if (c->has_export)
		part = vfs_view_handle(&c->fh, &len);
	if ((size_t)(part - c->fh.data) + len > c->fh.len) {
		part = c->fh.data;
		len = c->fh.len;
	}
	for (uint32_t i = 0; i < len; i++)
		snprintf(text + 2 * (size_t)i, 3, "%02x", part[i]);
	return json_string(text);
}

static void add_file(json_t *to, const struct trace_call *c, const struct state_filter *exports)
{
	struct state_where w = { .exp = NULL };

	if (!c->fh.len)
		return;
	json_object_set_new(to, "handle", trace_json_handle_text(c));
	if (!c->has_export)
		return;
	state_filter_where(exports, c->export_id, &c->fh, NULL, &w);
	json_object_set_new(to, "export",
			    w.exp ? control_text(vfs_export_path(w.exp)) : json_null());
	json_object_set_new(to, "path", w.path.text[0] ? control_text(w.path.text) : json_null());
}

json_t *trace_json(const struct trace_call *c, const struct rpc_server *rpc,
		   const struct state_filter *exports)
{
	json_t *to = json_object();

	add_time(to, c->wall_ns);
	trace_json_add_client(to, c);
	add_program(to, c, rpc);
	if (c->compound)
		add_operations(to, c);
	add_file(to, c, exports);
	add_status(to, c);
	trace_json_add_number(to, "duration_ns", c->took_ns);
	if (c->bytes_in)
		trace_json_add_number(to, "bytes_in", c->bytes_in);
	trace_json_add_number(to, "bytes_out", c->bytes_out);
	trace_json_add_number(to, "xid", c->xid);
	return to;
}
