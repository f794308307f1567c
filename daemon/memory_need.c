/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/memory_need.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/limits.h"
#include "daemon/programs.h"
#include "gss/gss.h"
#include "lib/payload.h"
#include "lib/pipe.h"
#include "lib/util.h"
#include "transport/rdma/rdma_server.h"
#include "transport/tcp/tcp_server.h"
#include "transport/tls/tls.h"
#include "transport/udp/udp_server.h"
#include "vfs/vfs.h"

#define MIB ((size_t)1 << 20)
#define LEAST (64 * MIB) /* of server.memory_max, in conf/settings_schema.c */
#define DATA_SHARE 16u /* fraction that must be left to data, beside the slabs that are set aside */
#define SYSTEM_KEYTAB "/etc/krb5.keytab"
#define TEXT_MAX 512

/* A part of the budget: its purpose, as messages name it, and its size. */
struct part {
	const char *what;
	const char *key; /* the setting that it comes from; NULL: no single one */
	size_t bytes;
};

#define PARTS_MAX 9

/* With gss.enabled = auto the keytab is not looked into before the start. */
static bool wants_kerberos(const struct cfg_gss *gss)
{
	const bool own = gss->keytab && gss->keytab[0];

	return gss->enabled == CFG_YES ||
	       (gss->enabled == CFG_AUTO && access(own ? gss->keytab : SYSTEM_KEYTAB, F_OK) == 0);
}

static size_t pipes(const struct cfg_settings *s, size_t whole)
{
	const struct limits l = { .memory_max = whole, .files = UINT_MAX };

	return s->tcp.enabled ? (size_t)limits_pipes(&l) * RN_PIPE_SIZE : 0;
}

/* The parts of a budget of `whole` bytes; returns their number. */
static unsigned memory_need_divide(const struct cfg_settings *s, size_t whole,
				   struct part part[PARTS_MAX])
{
	const unsigned conns = (unsigned)s->tcp.max_connections;
	const bool tls = s->tcp.enabled && s->tls.certificate && s->tls.certificate[0];
	unsigned n = 0;

	/* A slab more, as heads of replies do not fill the last one of theirs. */
	part[n++] =
		(struct part){ "data", NULL, RN_PAYLOAD_ASIDE + RN_SLAB_SIZE + whole / DATA_SHARE };
	part[n++] = (struct part){ "caches", NULL, vfs_memory(whole) + pipes(s, whole) };
	if (s->tcp.enabled)
		part[n++] = (struct part){ "TCP", "tcp.max_connections",
					   tcp_server_memory(conns, limits_loops(), whole) };
	if (s->udp.enabled && s->nfs3.enabled)
		part[n++] = (struct part){ "UDP", "udp.enabled", udp_server_memory() };
	if (s->rdma.enabled != CFG_NO)
		part[n++] = (struct part){ "RDMA", "rdma.enabled",
					   rr_server_memory(whole, s->rdma.enabled == CFG_YES) };
	if (s->nfs4.enabled)
		part[n++] = (struct part){ "state of NFSv4", "nfs4.enabled",
					   whole / PROGRAMS_NFS4_SHARE };
	if (wants_kerberos(&s->gss))
		part[n++] = (struct part){ "Kerberos", "gss.enabled",
					   gss_memory(whole, (unsigned)s->gss.max_contexts) };
	if (tls)
		part[n++] = (struct part){ "TLS", "tls.certificate", whole / TLS_SHARE };
	return n;
}

static size_t total(const struct cfg_settings *s, size_t whole)
{
	struct part part[PARTS_MAX];
	size_t bytes = 0;

	for (unsigned i = memory_need_divide(s, whole, part); i > 0; i--)
		bytes += part[i - 1].bytes;
	return bytes;
}

/* Most parts are fractions of the whole, and less than one together; so an end is found. */
size_t memory_need_least(const struct cfg_settings *s)
{
	size_t whole = LEAST;

	while (total(s, whole) > whole)
		whole += MIB;
	return whole;
}

size_t memory_need_budget(const struct cfg_settings *s, size_t ram)
{
	if (s->server.memory_max)
		return (size_t)s->server.memory_max;
	const size_t need = memory_need_least(s);

	return need <= ram / 2 ? rn_max(need, ram / 4) : rn_max(ram / 4, LEAST);
}

/* The parts of the least budget, as "1M for data, 2M for TCP (tcp.max_connections)". */
static void list_parts(const struct cfg_settings *s, char text[TEXT_MAX])
{
	struct part part[PARTS_MAX];
	const unsigned n = memory_need_divide(s, memory_need_least(s), part);
	size_t len = 0;

	for (unsigned i = 0; i < n && len < TEXT_MAX; i++) {
		const struct part *p = &part[i];

		len += (size_t)snprintf(text + len, TEXT_MAX - len, "%s%zuM for %s%s%s%s",
					i ? ", " : "", (p->bytes + MIB - 1) / MIB, p->what,
					p->key ? " (" : "", p->key ? p->key : "",
					p->key ? ")" : "");
	}
}

/* The place of server.memory_max; or, if it is not set, of the setting that needs most. */
static struct cfg_place memory_need_place_of(const struct cfg_settings *s)
{
	const struct cfg_origin *o = cfg_origin_of(s, "server.memory_max");
	struct part part[PARTS_MAX];
	size_t most = 0;

	for (unsigned i = o ? 0 : memory_need_divide(s, memory_need_least(s), part); i > 0; i--) {
		const struct part *p = &part[i - 1];
		const struct cfg_origin *of = p->key ? cfg_origin_of(s, p->key) : NULL;

		if (of && p->bytes > most) {
			most = p->bytes;
			o = of;
		}
	}
	return o ? (struct cfg_place){ o->name, o->line, 0 }
		 : (struct cfg_place){ .file = "settings" };
}

int memory_need_check(const struct cfg_settings *s, size_t ram, struct cfg_diags *diags)
{
	const size_t need = memory_need_least(s), have = memory_need_budget(s, ram);
	char text[TEXT_MAX];

	if (have >= need)
		return 0;
	list_parts(s, text);
	cfg_diag_add(
		diags, memory_need_place_of(s), CFG_ERROR,
		"server.memory_max is %zuM%s, too little for what is asked for: make it %zuM or "
		"more, or ask for less; that is %s",
		have / MIB,
		s->server.memory_max ? "" : " by default, a part of this machine's memory",
		need / MIB, text);
	return -EINVAL;
}
