/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfs.conf: values, ranges, messages and printed settings. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/settings.h"
#include "conf/settings_schema.h"
#include "conf/diag.h"

static char *printed(const struct cfg_settings *settings)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cfg_print(settings, out);
	fclose(out);
	return text;
}

Test(conf_settings, defaults)
{
	struct cfg_settings s;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	cr_expect(s.server.threads == 0 && s.server.memory_max == 0 && s.server.max_fds == 0);
	cr_expect_str_eq(s.server.state_dir, "/var/lib/ringnfs");
	cr_expect_str_eq(s.server.exports_file, "/etc/exports");
	cr_expect_str_eq(s.server.exports_dir, "/etc/exports.d");
	cr_expect(!s.server.strict_exports && s.server.rpcbind);
	cr_expect(s.server.log_level == CFG_LOG_INFO);
	cr_expect(s.tcp.enabled && s.tcp.port == 2049 && s.tcp.mount_port == 20048);
	cr_expect(s.tcp.max_connections == 16384 && s.tcp.max_requests == 128);
	cr_expect(s.tcp.idle_timeout == 360 && s.tcp.max_record == (1 << 20) + (64 << 10));
	cr_expect(s.tcp.listen.n == 0 && s.rdma.listen.n == 0);
	cr_expect(s.rdma.enabled == CFG_AUTO && s.rdma.port == 20049);
	cr_expect(s.rdma.inline_size == 4096 && s.rdma.credits == 128 && s.rdma.poll_usec == 0);
	cr_expect_not(s.nfs2.enabled);
	cr_expect(s.nfs3.enabled && s.nfs3.max_io == 1 << 20 && !s.nfs3.manage_gids);
	cr_expect(s.nfs3.drc_size == 131072 && s.nfs3.drc_memory == 32 << 20);
	cr_expect(s.nfs4.enabled && s.nfs4.minor_min == 0 && s.nfs4.minor_max == 2);
	cr_expect(s.nfs4.lease_time == 90 && s.nfs4.grace_time == 90 && s.nfs4.max_io == 1 << 20);
	cr_expect(s.nfs4.max_sessions == 0 && !s.nfs4.manage_gids);
	cr_expect(s.vfs.io_mode == CFG_IO_BUFFERED && s.vfs.handle_mac &&
		  s.vfs.ring_entries == 256);
	cr_expect(cfg_check(&s, "x", &diags) == 0 && diags.n == 0);
	cfg_free(&s);
}

struct value_case {
	const char *key;
	const char *value;
	const char *prints; /* value as printed; NULL: refused */
};

static const struct value_case values[] = {
	{ "server.threads", "256", "256" },
	{ "server.threads", "257", NULL },
	{ "server.threads", "-1", NULL },
	{ "server.threads", "+1", NULL },
	{ "server.threads", "", NULL },
	{ "server.threads", "4 ", NULL },
	{ "server.threads", "4k", NULL },
	{ "server.threads", "18446744073709551616", NULL },
	{ "server.memory_max", "0", "0" },
	{ "server.memory_max", "64M", "64M" },
	{ "server.memory_max", "65536k", "64M" },
	{ "server.memory_max", "63M", NULL },
	{ "server.memory_max", "1", NULL },
	{ "server.memory_max", "1536M", "1536M" },
	{ "server.memory_max", "1g", "1G" },
	{ "server.memory_max", "64T", "64T" },
	{ "server.memory_max", "65T", NULL },
	{ "server.memory_max", "18446744073709551615T", NULL },
	{ "server.memory_max", "64MB", NULL },
	{ "server.memory_max", "M", NULL },
	{ "server.memory_max", "67108865", "67108865" },
	{ "server.state_dir", "/x", "/x" },
	{ "server.state_dir", "x", NULL },
	{ "server.state_dir", "", NULL },
	{ "server.control_socket", "/run/x", "/run/x" },
	{ "server.control_socket", "", "" },
	{ "server.control_socket", "run/x", NULL },
	{ "server.log_level", "debug", "debug" },
	{ "server.log_level", "ERROR", "error" },
	{ "server.log_level", "loud", NULL },
	{ "server.rpcbind", "no", "no" },
	{ "server.rpcbind", "off", "no" },
	{ "server.rpcbind", "True", "yes" },
	{ "server.rpcbind", "1", "yes" },
	{ "server.rpcbind", "maybe", NULL },
	{ "tcp.port", "1", "1" },
	{ "tcp.port", "0", NULL },
	{ "tcp.port", "65535", "65535" },
	{ "tcp.port", "65536", NULL },
	{ "tcp.mount_port", "0", "0" },
	{ "tcp.idle_timeout", "0", "0" },
	{ "tcp.idle_timeout", "90", "90s" },
	{ "tcp.idle_timeout", "120s", "2m" },
	{ "tcp.idle_timeout", "2h", "2h" },
	{ "tcp.idle_timeout", "7d", "7d" },
	{ "tcp.idle_timeout", "8d", NULL },
	{ "tcp.listen", "", "" },
	{ "tcp.listen", "192.0.2.1", "192.0.2.1" },
	{ "tcp.listen", "192.0.2.1,::1 , [2001:db8::1]", "192.0.2.1, ::1, 2001:db8::1" },
	{ "tcp.listen", "192.0.2.1:2049", NULL },
	{ "tcp.listen", "[192.0.2.1]", NULL },
	{ "tcp.listen", "[::1", NULL },
	{ "tcp.listen", "localhost", NULL },
	{ "metrics.listen", "", "" },
	{ "metrics.listen", "127.0.0.1:9100,[::1]:2049", "127.0.0.1:9100, [::1]:2049" },
	{ "metrics.listen", "127.0.0.1", NULL },
	{ "metrics.listen", "::1", NULL },
	{ "metrics.listen", "[::1]", NULL },
	{ "metrics.listen", "127.0.0.1:0", NULL },
	{ "metrics.listen", "127.0.0.1:65536", NULL },
	{ "metrics.listen", "localhost:9100", NULL },
	{ "metrics.listen", ":9100", NULL },
	{ "cluster.name", "", "" },
	{ "cluster.name", "lab", "lab" },
	{ "cluster.name", "the lab", NULL },
	{ "cluster.instance", "0123456789012345678901234567890", NULL },
	{ "cluster.path", "", "" },
	{ "cluster.path", "srv", NULL },
	{ "cluster.address", "192.0.2.1, [2001:db8::1]", "192.0.2.1, 2001:db8::1" },
	{ "cluster.address", "nfs1", NULL },
	{ "cluster.dead_time", "1", NULL },
	{ "cluster.dead_time", "10m", "10m" },
	{ "cluster.backend", "rados", "rados" },
	{ "cluster.backend", "etcd", NULL },
	{ "rdma.enabled", "auto", "auto" },
	{ "rdma.enabled", "yes", "yes" },
	{ "rdma.enabled", "on", NULL },
	{ "rdma.inline_size", "1024", "1K" },
	{ "rdma.inline_size", "256K", "256K" },
	{ "rdma.inline_size", "257K", NULL },
	{ "rdma.inline_size", "1536", NULL },
	{ "rdma.inline_size", "0", NULL },
	{ "nfs3.max_io", "4096", "4K" },
	{ "nfs3.max_io", "4097", NULL },
	{ "nfs3.max_io", "1025K", NULL },
	{ "nfs4.lease_time", "10", "10s" },
	{ "nfs4.lease_time", "4", NULL },
	{ "nfs4.grace_time", "1h", "1h" },
	{ "nfs4.minor_max", "3", NULL },
	{ "vfs.io_mode", "direct", "direct" },
	{ "vfs.io_mode", "fast", NULL },
};

static const struct cfg_row *row_of(const char *key)
{
	for (unsigned i = 0; i < cfg_n_rows; i++)
		if (!strcmp(cfg_rows[i].key, key))
			return &cfg_rows[i];
	cr_assert(false, "no row %s", key);
	return NULL;
}

Test(conf_settings, values)
{
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const struct value_case *c = &values[i];
		struct cfg_settings s;
		struct cfg_diags diags;
		char text[CFG_VALUE_MAX];
		int err;

		cfg_diags_init(&diags);
		cr_assert(cfg_set_defaults(&s) == 0);
		err = cfg_set(&s, c->key, c->value, "test", &diags);
		cfg_value_print(row_of(c->key), &s, text);
		if (c->prints) {
			cr_expect(err == 0 && diags.n == 0, "%s = %s", c->key, c->value);
			cr_expect_str_eq(text, c->prints, "%s = %s prints %s", c->key, c->value,
					 text);
		} else {
			cr_expect(err == -EINVAL && diags.errors == 1, "%s = %s", c->key, c->value);
		}
		cfg_free(&s);
		cfg_diags_free(&diags);
	}
}

struct text_case {
	const char *text;
	const char *messages[3];
};

static const struct text_case texts[] = {
	{ "", { NULL } },
	{ "# comment\n; comment\n\n[tcp]\nport = 1 ; comment\n", { NULL } },
	{ "[tcp]\n  port = 1\n\tmount_port: 2\r\n", { NULL } },
	{ "[tcp]\nport = 70000\n",
	  { "f:2: error: \"70000\" is not right: tcp.port takes 1 to 65535" } },
	{ "[tcp]\nport = 5 # five\n",
	  { "f:2: error: \"5 # five\" is not right: tcp.port takes 1 to 65535; a comment after a "
	    "value begins with \" ;\"" } },
	{ "[tcp]\nprot = 5\n", { "f:2: error: unknown key \"prot\": did you mean \"port\"?" } },
	{ "[rdma]\nzzz = 5\n",
	  { "f:2: error: unknown key \"zzz\" in [rdma]: ringnfs.conf(5) lists the keys" } },
	{ "\n\n[rmda]\nport = 5\n",
	  { "f:4: error: unknown section [rmda]: did you mean [rdma]?" } },
	{ "[nfsd]\nthreads = 8\n",
	  { "f:2: error: [nfsd] is a section of nfs.conf(5), which the kernel's server reads; what "
	    "it sets is here: [server] threads, [tcp] port, [rdma] port, [nfs3] and [nfs4] "
	    "enabled, [udp] nfs" } },
	{ "[svcgssd]\nprincipal = nfs/a\n",
	  { "f:2: error: [svcgssd] is a section of nfs.conf(5), which the kernel's server reads; "
	    "what "
	    "it sets is here: [gss] enabled, keytab, principal" } },
	{ "[statd]\nport = 662\n",
	  { "f:2: error: [statd] is a section of nfs.conf(5), which the kernel's server reads; "
	    "what "
	    "it sets is here: [nlm] statd, statd_port" } },
	{ "\xef\xbb\xbf[tcp]\nprot = 5\n",
	  { "f:2: error: unknown key \"prot\": did you mean \"port\"?" } },
	{ "[http]\nport = 5\n", { "f:2: error: unknown section [http]: did you mean [tcp]?" } },
	{ "[somewhere]\nport = 5\n",
	  { "f:2: error: unknown section [somewhere]: there are server, tcp, udp, rdma, nfs2, "
	    "nfs3, nfs4, nlm, vfs, gss, tls, metrics and cluster" } },
	{ "port = 5\n",
	  { "f:1: error: \"port\" is before the first section: write [server] or another above "
	    "it" } },
	{ "[tcp]\nport = 5\n[tcp]\nport = 6\n",
	  { "f:4: error: tcp.port is given twice, first in line 2: remove one" } },
	{ "[tcp]\nport\n", { "f:2: error: neither \"[section]\" nor \"key = value\"" } },
	{ "[rdma]\ninline_size = 1500\n",
	  { "f:2: error: \"1500\" is not right: rdma.inline_size takes 1K to 256K in steps of "
	    "1K" } },
	{ "[server]\nmemory_max = 1M\n",
	  { "f:2: error: \"1M\" is not right: server.memory_max takes 0, or 64M to 64T" } },
	{ "[rdma]\nenabled = perhaps\ncredits = 0",
	  { "f:2: error: \"perhaps\" is not right: rdma.enabled takes no, yes or auto",
	    "f:3: error: \"0\" is not right: rdma.credits takes 1 to 1024" } },
	{ "[tcp]\nlisten = 192.0.2.1, here\n",
	  { "f:2: error: \"here\" is not right: tcp.listen takes up to 16 IPv4 or IPv6 addresses, "
	    "with commas between" } },
};

Test(conf_settings, messages)
{
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		const struct text_case *c = &texts[i];
		struct cfg_settings s;
		struct cfg_diags diags;
		unsigned n = 0;
		int err;

		cfg_diags_init(&diags);
		cr_assert(cfg_set_defaults(&s) == 0);
		err = cfg_parse(&s, "f", c->text, strlen(c->text), &diags);
		for (; n < 3 && c->messages[n]; n++) {
			char line[512] = "(no message)";

			if (n < diags.n)
				cfg_diag_format(&diags.items[n], line, sizeof(line));
			cr_expect_str_eq(line, c->messages[n], "<%s>: %s", c->text, line);
		}
		cr_expect(diags.n == n, "<%s>: %u messages", c->text, diags.n);
		cr_expect(err == (n ? -EINVAL : 0), "<%s>: %d", c->text, err);
		cfg_free(&s);
		cfg_diags_free(&diags);
	}
}

Test(conf_settings, indented_lines_are_keys_of_their_own)
{
	static const char text[] = "[tcp]\nport = 1\n  mount_port = 2\n";
	struct cfg_settings s;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	cr_assert(cfg_parse(&s, "f", text, sizeof(text) - 1, &diags) == 0);
	cr_expect(s.tcp.port == 1 && s.tcp.mount_port == 2);
	cfg_free(&s);
}

Test(conf_settings, long_and_binary_lines)
{
	char text[400];
	struct cfg_settings s;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	memset(text, 'x', sizeof(text));
	memcpy(text, "[server]\nstate_dir = /", 22);
	cr_expect(cfg_parse(&s, "f", text, sizeof(text), &diags) == -EINVAL);
	cr_assert(diags.n == 1 && diags.items[0].line == 2, "one message, not a cut value");
	cr_expect_str_eq(s.server.state_dir, "/var/lib/ringnfs");
	cr_expect(cfg_parse(&s, "f", "[tcp]\nport\0 = 1\n", 16, &diags) == -EINVAL);
	cr_expect(diags.n == 2 && diags.items[1].line == 2);
	cfg_free(&s);
	cfg_diags_free(&diags);
}

Test(conf_settings, lists_add_up_and_replace_what_was)
{
	static const char text[] = "[tcp]\nlisten = ::1\nlisten = 192.0.2.1\n";
	struct cfg_settings s;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	cr_assert(cfg_set(&s, "tcp.listen", "192.0.2.9", "x", &diags) == 0);
	cr_assert(cfg_parse(&s, "f", text, sizeof(text) - 1, &diags) == 0);
	cr_assert(s.tcp.listen.n == 2);
	cr_expect(s.tcp.listen.addrs[0].ss_family == AF_INET6);
	cr_expect(((struct sockaddr_in *)&s.tcp.listen.addrs[1])->sin_addr.s_addr ==
		  htonl(0xc0000201));
	for (unsigned i = 0; i < CFG_MAX_ADDRS - 2; i++) {
		char line[64];

		snprintf(line, sizeof(line), "[tcp]\nlisten = 192.0.2.%u\n", i);
		cr_expect(cfg_parse(&s, "f", line, strlen(line), &diags) == 0);
	}
	cfg_free(&s);
	cfg_diags_free(&diags);
}

Test(conf_settings, too_many_addresses)
{
	struct cfg_settings s;
	struct cfg_diags diags;
	char text[200] = "1.1.1.1";

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	for (unsigned i = 1; i < CFG_MAX_ADDRS; i++)
		strcat(text, ",1.1.1.1");
	cr_expect(cfg_set(&s, "rdma.listen", text, "x", &diags) == 0);
	strcat(text, ",1.1.1.1");
	cr_expect(cfg_set(&s, "rdma.listen", text, "x", &diags) == -EINVAL);
	cr_expect(s.rdma.listen.n == CFG_MAX_ADDRS);
	cfg_free(&s);
	cfg_diags_free(&diags);
}

/* A value for the row that differs from its default. */
static const char *other_value(const struct cfg_row *row)
{
	switch (row->type) {
	case CFG_BOOL:
		return strcmp(row->def, "yes") ? "yes" : "no";
	case CFG_PATH:
		return "/somewhere/else";
	case CFG_NAME:
		return "nfs/host@REALM";
	case CFG_ENUM:
		return row->words[strcmp(row->def, row->words[0]) ? 0 : 1];
	case CFG_ADDRS:
		return "192.0.2.1, 2001:db8::1";
	case CFG_PORTS:
		return "192.0.2.1:2049, [2001:db8::2]:65535";
	case CFG_SERVERS:
		return "192.0.2.1:2050, 192.0.2.2, 2001:db8::1, [2001:db8::2]:65535";
	case CFG_SIZE:
		return row->max > 1 << 20 ? "100M" : "8K";
	case CFG_SECONDS:
		return "77";
	case CFG_UINT:
		break;
	}
	return row->max > 200 ? "201" : row->max > 2 ? "3" : "1";
}

Test(conf_settings, every_row_is_stored_printed_and_read_back)
{
	struct cfg_settings s, again;
	struct cfg_diags diags;
	char *first, *second;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0 && cfg_set_defaults(&again) == 0);
	for (unsigned i = 0; i < cfg_n_rows; i++) {
		const char *value = other_value(&cfg_rows[i]);
		char text[CFG_VALUE_MAX], before[CFG_VALUE_MAX];

		/* 100M suits every size but tcp.max_record. */
		if (!strcmp(cfg_rows[i].key, "tcp.max_record"))
			value = "2M";
		cfg_value_print(&cfg_rows[i], &s, before);
		cr_expect(cfg_set(&s, cfg_rows[i].key, value, "x", &diags) == 0, "%s = %s",
			  cfg_rows[i].key, value);
		cfg_value_print(&cfg_rows[i], &s, text);
		cr_expect(strcmp(text, before), "%s changed", cfg_rows[i].key);
	}
	first = printed(&s);
	cr_assert(cfg_parse(&again, "printed", first, strlen(first), &diags) == 0);
	second = printed(&again);
	cr_expect_str_eq(first, second);
	free(first);
	free(second);
	cfg_free(&s);
	cfg_free(&again);
	cfg_diags_free(&diags);
}

static void find_origin(void *ctx, const struct cfg_shown *s)
{
	const struct cfg_origin **out = ctx;

	if (!strcmp(s->key, "tcp.port"))
		*out = s->origin;
}

Test(conf_settings, origins)
{
	static const char text[] =
		"[server]\nthreads = 3\n[tcp]\n\nport = 7\nlisten = ::1\nlisten = ::2\n";
	const struct cfg_origin *o = NULL;
	struct cfg_settings s;
	struct cfg_diags diags;
	char *all = NULL;
	size_t size;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	cfg_each(&s, find_origin, &o);
	cr_assert(o && !o->name && !o->line, "a default");
	cr_assert(cfg_parse(&s, "/f\ng", text, sizeof(text) - 1, &diags) == 0);
	cr_expect(o->line == 5);
	cr_expect_str_eq(o->name, "/f\ng");
	cr_assert(cfg_set(&s, "tcp.port", "0", "--port", &diags) == -EINVAL);
	cr_expect(o->line == 5, "a value that is refused changes nothing");
	cr_assert(cfg_set(&s, "tcp.port", "8", "--port", &diags) == 0);
	FILE *out = open_memstream(&all, &size);

	cfg_print_origins(&s, out);
	fclose(out);
	cr_expect(strstr(all, "# /f?g:2\nthreads = 3\n"), "%s", all);
	cr_expect(strstr(all, "# --port\nport = 8\n"), "%s", all);
	cr_expect(strstr(all, "# /f?g:7\nlisten = ::1, ::2\n"), "%s", all);
	cr_expect(strstr(all, "\nmount_port = 20048\n") &&
		  !strstr(all, "\nmount_port = 20048\n#\n"));
	cr_expect(cfg_parse(&s, "printed", all, size, &diags) == 0, "the output reads back");
	cr_expect(s.tcp.port == 8);
	free(all);
	cfg_free(&s);
	cfg_diags_free(&diags);
}

Test(conf_settings, check_together)
{
	struct cfg_settings s;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	cr_assert(cfg_set(&s, "tcp.max_record", "1M", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == -EINVAL && diags.n == 1);
	cr_assert(cfg_set(&s, "tcp.max_record", "1028K", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == 0);
	cr_assert(cfg_set(&s, "tcp.enabled", "no", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == 0);
	cr_assert(cfg_set(&s, "rdma.enabled", "no", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == -EINVAL && diags.n == 2);
	cr_assert(cfg_set(&s, "tcp.enabled", "yes", "x", &diags) == 0);
	cr_assert(cfg_set(&s, "nfs4.minor_min", "2", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == 0);
	cr_assert(cfg_set(&s, "nfs4.minor_max", "1", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == -EINVAL && diags.n == 3);
	cr_assert(cfg_set(&s, "nfs4.minor_min", "0", "x", &diags) == 0);
	cr_assert(cfg_set(&s, "nfs4.enabled", "no", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == 0);
	cr_assert(cfg_set(&s, "nfs3.enabled", "no", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == -EINVAL && diags.n == 4);
	/* NFSv2 has no MOUNT of its own. */
	cr_assert(cfg_set(&s, "nfs4.enabled", "yes", "x", &diags) == 0);
	cr_assert(cfg_set(&s, "nfs4.minor_max", "2", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == 0);
	cr_assert(cfg_set(&s, "nfs2.enabled", "yes", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == -EINVAL && diags.n == 5);
	cr_assert(cfg_set(&s, "nfs3.enabled", "yes", "x", &diags) == 0);
	cr_expect(cfg_check(&s, "x", &diags) == 0);
	cfg_free(&s);
	cfg_diags_free(&diags);
}

/* A member of a cluster, by the text of its section, and the message of cfg_check(). */
static const struct cluster_case {
	const char *text, *message;
} clusters[] = {
	{ "", NULL },
	{ "name =\n", NULL },
	{ "name = lab\ninstance = a\npath = /srv/cluster\n", NULL },
	{ "name = lab\ninstance = a\n",
	  "f:2: error: cluster.path is missing: a member of a cluster has name, instance and path; "
	  "give all of them, or leave [cluster] out" },
	{ "\npath = /srv/cluster\n",
	  "f:3: error: cluster.name is missing: a member of a cluster has name, instance and path; "
	  "give all of them, or leave [cluster] out" },
	{ "dead_time = 5s\n",
	  "f:2: error: cluster.name is missing: a member of a cluster has name, instance and path; "
	  "give all of them, or leave [cluster] out" },
	{ "name = lab\ninstance = a/b\npath = /srv/cluster\n",
	  "f:2: error: cluster.instance: \"a/b\" is not right: a name has letters, digits, \".\", "
	  "\"_\" and \"-\", and does not begin with \".\"" },
	{ "name = .lab\ninstance = a\npath = /srv/cluster\n",
	  "f:2: error: cluster.name: \".lab\" is not right: a name has letters, digits, \".\", "
	  "\"_\" and \"-\", and does not begin with \".\"" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\naddress = 192.0.2.1\n", NULL },
	{ "address = 192.0.2.1\n",
	  "f:2: error: cluster.name is missing: a member of a cluster has name, instance and path; "
	  "give all of them, or leave [cluster] out" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\naddress = 192.0.2.1, ::\n",
	  "f:2: error: cluster.address: clients do not reach one machine by ::" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\naddress = fe80::1\n",
	  "f:2: error: cluster.address: clients do not reach one machine by fe80::1" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\naddress = 1.1.1.1 1.1.1.2 1.1.1.3 "
	  "1.1.1.4 "
	  "1.1.1.5 1.1.1.6 1.1.1.7 1.1.1.8 1.1.1.9\n",
	  "f:2: error: cluster.address: a member has at most 8 addresses" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\naddress = 192.0.2.1\n"
	  "[tcp]\nlisten = 192.0.2.1, 192.0.2.2\n",
	  NULL },
	{ "name = lab\ninstance = a\npath = /srv/cluster\naddress = 192.0.2.1\n"
	  "[tcp]\nlisten = 192.0.2.2\n",
	  "f:2: error: cluster.address: tcp.listen has others, but not 192.0.2.1" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\nbackend = rados\n",
	  "f:2: error: cluster.pool is missing: backend = rados keeps objects in a pool of Ceph; "
	  "name it, or say backend = file" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\npool = nfs\n",
	  "f:5: error: cluster.pool is for backend = rados only: say so, or leave it out" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\nbackend = rados\npool = nfs\n", NULL },
	{ "name = lab\ninstance = a\npath = /srv/cluster\n[nfs4]\nenabled = no\n",
	  "f:2: error: [cluster] needs nfs4.enabled, whose records and grace period it uses: set "
	  "it "
	  "to yes, or leave [cluster] out" },
	{ "name = lab\ninstance = a\npath = /srv/cluster\n[nfs4]\nlease_time = 60\ngrace_time = "
	  "60\n",
	  NULL },
	{ "name = lab\ninstance = a\npath = /srv/cluster\n[nfs4]\nlease_time = 20\ngrace_time = "
	  "20\n",
	  "f:7: warning: nfs4.grace_time of 20 is short for a member of a cluster: clients that "
	  "find "
	  "their server again after 60 s, as Linux's may, lose their locks; leave it at 90, the "
	  "default" },
};

Test(conf_settings, cluster)
{
	for (size_t i = 0; i < sizeof(clusters) / sizeof(clusters[0]); i++) {
		const struct cluster_case *c = &clusters[i];
		char text[256], line[512] = "(no message)";
		struct cfg_settings s;
		struct cfg_diags diags;

		cfg_diags_init(&diags);
		cr_assert(cfg_set_defaults(&s) == 0);
		snprintf(text, sizeof(text), "[cluster]\n%s", c->text);
		cr_assert(cfg_parse(&s, "f", text, strlen(text), &diags) == 0);
		const bool refused = c->message && strstr(c->message, " error: ");

		cr_expect(cfg_check(&s, "x", &diags) == (refused ? -EINVAL : 0), "<%s>", text);
		cr_assert(diags.n == (c->message ? 1 : 0), "<%s>: %zu messages", text,
			  (size_t)diags.n);
		if (c->message)
			cfg_diag_format(&diags.items[0], line, sizeof(line));
		cr_expect(!c->message || !strcmp(line, c->message), "<%s>: %s", text, line);
		cfg_free(&s);
		cfg_diags_free(&diags);
	}
}

Test(conf_settings, files)
{
	char path[] = "/tmp/ringnfs-conf-XXXXXX";
	struct cfg_settings s;
	struct cfg_diags diags;
	int fd = mkstemp(path);

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0 && fd >= 0);
	cr_assert(write(fd, "[tcp]\nport=7\n", 13) == 13);
	close(fd);
	cr_expect(cfg_load(&s, path, &diags) == 0 && s.tcp.port == 7);
	unlink(path);
	cr_expect(cfg_load(&s, path, &diags) == -ENOENT && diags.errors == 1);
	cr_expect(cfg_load(&s, "/", &diags) < 0 && diags.errors == 2);
	cfg_free(&s);
	cfg_diags_free(&diags);
}

Test(conf_settings, unknown_keys_to_set)
{
	struct cfg_settings s;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&s) == 0);
	cr_expect(cfg_set(&s, "port", "1", "--x", &diags) == -EINVAL);
	cr_expect(cfg_set(&s, ".port", "1", "--x", &diags) == -EINVAL);
	cr_expect(cfg_set(&s, "tcp.", "1", "--x", &diags) == -EINVAL);
	cr_expect(diags.errors == 3);
	cfg_free(&s);
	cfg_diags_free(&diags);
}

Test(conf_settings, edit_distance)
{
	cr_expect(cfg_edit_distance("", "") == 0);
	cr_expect(cfg_edit_distance("abc", "abc") == 0);
	cr_expect(cfg_edit_distance("abc", "") == 3);
	cr_expect(cfg_edit_distance("", "abc") == 3);
	cr_expect(cfg_edit_distance("abc", "axc") == 1);
	cr_expect(cfg_edit_distance("abc", "acb") == 1, "neighbours swapped");
	cr_expect(cfg_edit_distance("kitten", "sitting") == 3);
}
