/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "admin/admin_query.h"
#include "conf/exports.h"
#include "daemon/admin/control_private.h"
#include "daemon/admin/state_rows.h"
#include "daemon/admin/text.h"
#include "daemon/counters/daemon_trace.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/op_table.h"

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

static json_t *trace_json(const struct trace_call *c, const struct rpc_server *rpc,
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
	if (c->waited_ns) {
		json_object_set_new(to, "waited_for", json_string(rn_wait_text(c->waited_for)));
		trace_json_add_number(to, "waited_ms", c->waited_ns / RN_NS_PER_MS);
	}
	if (c->bytes_in)
		trace_json_add_number(to, "bytes_in", c->bytes_in);
	trace_json_add_number(to, "bytes_out", c->bytes_out);
	trace_json_add_number(to, "xid", c->xid);
	return to;
}

/* POST and GET /v1/trace, POST /v1/trace/stop. ringnfsctl(8) describes the answers. */

#define MOST 1000u   /* calls in one answer */
#define WORD_MAX 32u /* bytes of the name of an operation, its NUL included */

static bool trace_query_wrong(struct admin_reply *r, const char *why)
{
	admin_reply_error(r, 400, "bad_request", "%s", why);
	return false;
}

/* The name as the table of a program has it; NULL: none has it. */
static const char *find_procedure(const struct rpc_server *rpc, const char *name)
{
	for (unsigned p = 0; p < rpc->nprograms; p++) {
		for (unsigned v = 0; v < rpc->programs[p].nversions; v++) {
			const struct rpc_version *version = &rpc->programs[p].versions[v];

			for (uint32_t i = 0; i < version->nprocs; i++) {
				const struct rpc_proc *proc = version->procs[i];

				if (proc && strcasecmp(proc->name, name) == 0)
					return proc->name;
			}
		}
	}
	return NULL;
}

static uint32_t find_operation(const char *name)
{
	for (uint32_t op = 1; op < NFS4_OPS; op++) {
		const struct nfs4_op *row = nfs4_op_find(op, NFS4_MINOR_MAX);

		if (row && strcasecmp(row->name, name) == 0)
			return op;
	}
	return 0;
}

static bool take_operation(const struct control *c, const struct admin_request *req,
			   struct admin_reply *r, struct trace_filter *f)
{
	char name[WORD_MAX];
	const int rc = admin_query_text(req, "operation", name, sizeof(name));

	if (rc == -ENOENT)
		return true;
	f->by_operation = true;
	f->name = rc ? NULL : find_procedure(c->from.rpc, name);
	f->opnum = rc ? 0 : find_operation(name);
	return f->name || f->opnum ||
	       trace_query_wrong(
		       r, "operation: the name of a procedure or operation, such as READ, is "
			  "expected");
}

/* An id must be that of a client; an address may be that of one which comes later. */
static bool trace_query_client(const struct control *c, const struct state_filter *s,
			       struct admin_reply *r, struct trace_filter *f)
{
	struct sockaddr_storage peer;
	struct exp_addr addr;

	f->clientid = s->clientid;
	if (s->clientid)
		return control_has_client(c, s->clientid, r);
	if (!s->by_client)
		return true;
	if (!exp_addr_from_text(s->client, &addr))
		return trace_query_wrong(
			r, "client: an IP address, or the id of an NFSv4 client, is expected");
	exp_addr_to_sockaddr(&addr, &peer);
	rpc_address_of(&peer, &f->peer);
	f->by_peer = true;
	return true;
}

static void trace_query_export(const struct state_filter *s, struct trace_filter *f)
{
	f->by_export = s->by_export;
	for (size_t i = 0; s->by_export && i < s->n; i++) {
		if (strcmp(s->export, vfs_export_path(s->exp[i])) == 0 ||
		    strcmp(s->export, vfs_export_real_path(s->exp[i])) == 0)
			f->export_id = vfs_export_id(s->exp[i]);
	}
}

/* A number that need not be there. */
static bool trace_query_number(const struct admin_request *req, const char *name, uint64_t max,
			       uint64_t *out)
{
	const int rc = admin_query_number(req, name, max, out);

	return rc == 0 || rc == -ENOENT;
}

static bool trace_query_filter(const struct control *c, const struct admin_request *req,
			       struct admin_reply *r, struct trace_filter *f)
{
	struct state_filter s;
	uint64_t errors = 0;
	bool good = state_filter_init(&s, &c->from.view, req, r) &&
		    trace_query_client(c, &s, r, f) && take_operation(c, req, r, f);

	if (good)
		trace_query_export(&s, f);
	state_filter_done(&s);
	if (!good)
		return false;
	if (!trace_query_number(req, "slower_ns", UINT64_MAX, &f->slower_ns))
		return trace_query_wrong(r, "slower_ns: nanoseconds are expected");
	if (!trace_query_number(req, "errors", 1, &errors))
		return trace_query_wrong(r, "errors: 0 or 1 is expected");
	f->errors = errors != 0;
	return true;
}

void control_trace_start(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct trace_filter f;
	uint64_t id;

	memset(&f, 0, sizeof(f));
	if (!trace_query_filter(c, req, r, &f))
		return;
	const int rc = trace_start(c->from.trace, &f, &id);

	if (rc == -EBUSY)
		admin_reply_error(r, 503, "busy", "%u traces are running, and no more may",
				  TRACES_MAX);
	else if (rc)
		admin_reply_error(r, 503, "busy", "there is no memory for a trace");
	else
		admin_reply_json(r, json_pack("{s:I}", "id", (json_int_t)id));
}

static void not_there(struct admin_reply *r)
{
	admin_reply_error(r, 404, "not_found",
			  "there is no such trace; one that nobody asks for its calls ends after "
			  "%u seconds",
			  TRACE_PATIENCE_S);
}

/* Paths are looked for when the call is shown: a call must not wait for that. */
static void trace_query_answer(const struct control *c, struct admin_reply *r,
			       const struct trace_call *calls, size_t n, uint64_t lost)
{
	const struct admin_request none = { .query = NULL };
	struct state_filter exports;
	json_t *list;

	if (!state_filter_init(&exports, &c->from.view, &none, r)) {
		state_filter_done(&exports);
		return;
	}
	list = json_array();
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, trace_json(&calls[i], c->from.rpc, &exports));
	state_filter_done(&exports);
	admin_reply_json(r, json_pack("{s:o, s:I, s:b}", "calls", list, "lost", (json_int_t)lost,
				      "more", n == MOST));
}

void control_trace(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	struct trace_call *calls = malloc(MOST * sizeof(*calls));
	size_t n = MOST;
	uint64_t id = 0, lost;

	if (!calls)
		admin_reply_error(r, 503, "busy", "there is no memory");
	else if (admin_query_number(req, "id", UINT64_MAX, &id) != 0)
		trace_query_wrong(r, "id: that of a trace is expected");
	else if (trace_take(c->from.trace, id, calls, &n, &lost) != 0)
		not_there(r);
	else
		trace_query_answer(c, r, calls, n, lost);
	free(calls);
}

void control_trace_stop(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	uint64_t id = 0;

	if (admin_query_number(req, "id", UINT64_MAX, &id) != 0)
		trace_query_wrong(r, "id: that of a trace is expected");
	else if (trace_stop(c->from.trace, id) != 0)
		not_there(r);
	else
		admin_reply_json(r, json_pack("{s:s}", "result", "stopped"));
}
