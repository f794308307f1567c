/* SPDX-License-Identifier: BSD-2-Clause */
/* exports(5) texts, with the tables and messages that they give. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"

static const struct exp_load_opts no_checks;

static void parse(const char *text, struct cfg_diags *diags, struct exp_table **table)
{
	cfg_diags_init(diags);
	cr_assert(exp_table_parse("f", text, strlen(text), &no_checks, diags, table) == 0);
}

/* "PATH:SPEC,SPEC;PATH:SPEC;" */
static char *summary(const struct exp_table *table)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *export = &table->exports[i];

		fprintf(out, "%s:", export->path);
		for (unsigned j = 0; j < export->n_clients; j++)
			fprintf(out, "%s%s", j ? "," : "", export->clients[j].spec);
		fputc(';', out);
	}
	fclose(out);
	return text;
}

struct shape_case {
	const char *text;
	const char *want;
};

static const struct shape_case shapes[] = {
	{ "", "" },
	{ "\n \t\n# only a comment", "" },
	{ "/a b(rw)", "/a:b;" },
	{ "/a b(rw)\n", "/a:b;" },
	{ "/a b(rw)\r\n/c d\r\n", "/a:b;/c:d;" },
	{ "/a b c(ro) @g *(rw)\n", "/a:b,c,@g,*;" },
	{ "/a b # c(rw)\n", "/a:b;" },
	{ "/a b(rw)# c\n", "/a:b;" },
	{ "/a#b c", "/a#b:c;" },
	{ "/a \\\n  b(rw) \\\n\tc", "/a:b,c;" },
	{ "/a\\\nb", "/a:b;" },
	{ "/a b\\\n# comment\n/c d", "/a:b;/c:d;" },
	{ "# comment \\\n/a b\n/c d", "/c:d;" },
	{ "\"/a b\" c", "/a b:c;" },
	{ "/a\" \"b c", "/a b:c;" },
	{ "/a\\040b c", "/a b:c;" },
	{ "/a\\134b c", "/a\\b:c;" },
	{ "/a\\050b c", "/a(b:c;" },
	{ "\"/a\\011\" c", "/a\t:c;" },
	{ "//a///b/./c/ d", "/a/b/c:d;" },
	{ "/ d", "/:d;" },
	{ "/. d", "/:d;" },
	{ "/..a/b.. d", "/..a/b..:d;" },
	{ "/b x\n/a x\n/b y", "/a:x;/b:x,y;" },
	{ "/b x\n/b/ x", "/b:x;" },
	{ "/a X.Example.ORG. x.example.org", "/a:x.example.org;" },
	{ "/a 10.1.2.3 10.0.0.0/8 10.1.0.0/255.255.0.0", "/a:10.1.2.3,10.0.0.0/8,10.1.0.0/16;" },
	{ "/a 10.1.2.3/8", "/a:10.0.0.0/8;" },
	{ "/a 0.0.0.0/0 ::/0", "/a:0.0.0.0/0,::/0;" },
	{ "/a 1.2.3.4/0.0.0.0", "/a:0.0.0.0/0;" },
	{ "/a 1.2.3.4/255.255.255.255", "/a:1.2.3.4/32;" },
	{ "/a 2001:DB8::1 2001:db8::/32", "/a:2001:db8::1,2001:db8::/32;" },
	{ "/a [2001:db8::1](rw) [fe80::]/10", "/a:2001:db8::1,fe80::/10;" },
	{ "/a ::ffff:192.0.2.1 192.0.2.1", "/a:192.0.2.1;" },
	{ "/a *.foo.com h?st h[0-9]x", "/a:*.foo.com,h?st,h[0-9]x;" },
	{ "/a (ro)", "/a:*;" },
	{ "/a", "/a:*;" },
	{ "/a -rw", "/a:*;" },
	{ "/a *() b(,) c(,rw,)", "/a:*,b,c;" },
	{ "/a b(rw) * (ro)", "/a:b,*;" },
	{ "/a gss/krb5(rw) gss/krb5p(rw) b", "/a:gss/krb5,b;" },
	{ "/a gss/krb5(rw) * gss/krb5p(rw)", "/a:*;" },
};

Test(exports_parse, shapes)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct cfg_diags diags;
		struct exp_table *table;
		char *got;

		parse(shapes[i].text, &diags, &table);
		got = summary(table);
		cr_expect_str_eq(got, shapes[i].want, "case %zu <%s>: got %s", i, shapes[i].text,
				 got);
		cr_expect(diags.errors == 0, "case %zu <%s> has errors", i, shapes[i].text);
		free(got);
		exp_table_unref(table);
		cfg_diags_free(&diags);
	}
}

struct message_case {
	const char *text;
	const char *left;	 /* summary of the exports that remain */
	const char *messages[6]; /* whole lines */
};

static const struct message_case messages[] = {
	{ "a b", "", { "f:1:1: error: an export begins with an absolute path: \"/\" is missing" } },
	{ "/z y\n  rel(rw)\n",
	  "/z:y;",
	  { "f:2:3: error: an export begins with an absolute path: \"/\" is missing" } },
	{ "\"\" b", "", { "f:1:1: error: the path is empty" } },
	{ "/a/../b c",
	  "",
	  { "f:1:1: error: the path has a \"..\": write the directory's own path",
	    "f:1:1: note: /a/../b is not exported, because of the error" } },
	{ "/a b(rw,no_rot_squash)\n/c d",
	  "/c:d;",
	  { "f:1:9: error: unknown option \"no_rot_squash\": did you mean \"no_root_squash\"?",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(xyzzyx)",
	  "",
	  { "f:1:6: error: unknown option \"xyzzyx\": exports(5) lists the options",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a \\\n  b(rw,\\\nfoo)",
	  "",
	  { "f:2:8: error: white space within the brackets: write \"(rw,sync)\"",
	    "f:3:1: error: unknown option \"foo\": exports(5) lists the options",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(rw, sync)",
	  "",
	  { "f:1:9: error: white space within the brackets: write \"(rw,sync)\"",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(rw\n/c d",
	  "/c:d;",
	  { "f:1:5: error: the closing \")\" is missing",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(rw)c",
	  "",
	  { "f:1:9: error: white space is missing after \")\"",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "\"/a b\n/c d", "/c:d;", { "f:1:1: error: the closing double quote is missing" } },
	{ "/a\\0ab c",
	  "/a\\0ab:c;",
	  { "f:1:3: warning: a backslash that is not followed by three octal digits stands for "
	    "itself: write \\134" } },
	{ "/a\\000 c", "", { "f:1:3: error: an octet is written \\001 to \\377" } },
	{ "/a\\400 c", "", { "f:1:3: error: an octet is written \\001 to \\377" } },
	{ "/a 1.2.3.256",
	  "",
	  { "f:1:4: error: \"1.2.3.256\" is no IPv4 address: write four numbers up to 255",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a 2001:db8::g",
	  "",
	  { "f:1:4: error: \"2001:db8::g\" is no IPv6 address",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a 10.0.0.0/33",
	  "",
	  { "f:1:13: error: bad netmask \"33\": give 0 to 32, or one like 255.255.255.0",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a 10.0.0.0/255.0.255.0",
	  "",
	  { "f:1:13: error: the netmask \"255.0.255.0\" is not contiguous: its ones come first",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a 2001:db8::/129",
	  "",
	  { "f:1:15: error: bad prefix length \"129\": give 0 to 128",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a 10.0.0.0/",
	  "",
	  { "f:1:13: error: bad netmask \"\": give 0 to 32, or one like 255.255.255.0",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a host/24",
	  "",
	  { "f:1:4: error: \"host\" is no network address: write ADDRESS/LENGTH or "
	    "ADDRESS/NETMASK",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a 10.1.2.3/8",
	  "/a:10.0.0.0/8;",
	  { "f:1:4: warning: the address has bits past the netmask; the network is 10.0.0.0/8" } },
	{ "/a 10.1.*",
	  "/a:10.1.*;",
	  { "f:1:4: warning: a wildcard matches host names, not addresses: write a network as "
	    "192.0.2.0/24" } },
	{ "/a h[0-9",
	  "",
	  { "f:1:5: error: the closing \"]\" of \"[0-9\" is missing",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a ho$t",
	  "",
	  { "f:1:6: error: \"$t\" cannot be part of a host name",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a @",
	  "",
	  { "f:1:4: error: \"@\" without a name: write @NETGROUP",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a \"\"",
	  "",
	  { "f:1:4: error: an empty machine name: write * for all machines",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a gss/krb5x(rw)",
	  "",
	  { "f:1:4: error: \"gss/krb5x\" is not known: write gss/krb5, gss/krb5i or gss/krb5p, "
	    "or better sec=",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a gss/krb5(rw,sec=krb5)",
	  "",
	  { "f:1:4: error: gss/krb5 and sec= in one entry: write the machines and sec= instead",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(sec=krb6)",
	  "",
	  { "f:1:10: error: unknown security flavour \"krb6\": did you mean \"krb5\"?",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(sec=sus)",
	  "",
	  { "f:1:10: error: unknown security flavour \"sus\": did you mean \"sys\"?",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(anonuid)",
	  "",
	  { "f:1:6: error: option \"anonuid\" needs a value: write anonuid=UID",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(anonuid=4294967295)",
	  "",
	  { "f:1:14: error: \"4294967295\" is not an id: give a number from 0 to 4294967294",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(ro=1)",
	  "",
	  { "f:1:6: error: option \"ro\" takes no value: write it without \"=\"",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(fsid=12345-xyz)",
	  "",
	  { "f:1:11: error: \"12345-xyz\" is no fsid: give a number below 4294967296, \"root\", or "
	    "a UUID of 32 hexadecimal digits",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=x@y)",
	  "",
	  { "f:1:12: error: a location begins with an absolute path: write /PATH@HOST, with \":\" "
	    "between locations, \"+\" between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x)",
	  "",
	  { "f:1:12: error: a location has no host: write /PATH@HOST",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x@y:2049)",
	  "",
	  { "f:1:17: error: a location has no port, as Linux's client asks port 2049 in any case: "
	    "write /PATH@HOST",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(replicas=/x@y+z:/w@)",
	  "",
	  { "f:1:25: error: this is neither a name nor an address: write /PATH@HOST, with \"+\" "
	    "between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x@y+)",
	  "",
	  { "f:1:17: error: this is neither a name nor an address: write /PATH@HOST, with \"+\" "
	    "between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x@fe80::1)",
	  "",
	  { "f:1:20: error: a location begins with an absolute path: write /PATH@HOST, with \":\" "
	    "between locations, \"+\" between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x@[fe80::1%eth0])",
	  "",
	  { "f:1:15: error: this is neither a name nor an address: write /PATH@HOST, with \"+\" "
	    "between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x@y:)",
	  "",
	  { "f:1:16: error: a location begins with an absolute path: write /PATH@HOST, with \":\" "
	    "between locations, \"+\" between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer=/x@[::1]:/w@a/b)",
	  "",
	  { "f:1:24: error: this is neither a name nor an address: write /PATH@HOST, with \"+\" "
	    "between hosts and an IPv6 address in brackets",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(refer)",
	  "",
	  { "f:1:6: error: option \"refer\" needs a value: write refer=/PATH@HOST",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(xprtsec=tls:ssl)",
	  "",
	  { "f:1:14: error: unknown transport security \"ssl\": none, tls and mtls are known, as "
	    "in "
	    "xprtsec=tls:mtls",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(mp=x)",
	  "",
	  { "f:1:9: error: \"x\" is not absolute: write mountpoint=/PATH",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(subtree_check)",
	  "/a:b;",
	  { "f:1:6: note: subtree_check is accepted and changes nothing: no_subtree_check is what "
	    "is done" } },
	{ "/a b (rw)",
	  "/a:b,*;",
	  { "f:1:6: warning: ALL MACHINES MAY USE THIS EXPORT: a blank before \"(\" makes the "
	    "options theirs, not those of the machine before; write MACHINE(OPTIONS), or "
	    "*(OPTIONS) if all are meant" } },
	{ "/a (rw)",
	  "/a:*;",
	  { "f:1:4: warning: ALL MACHINES MAY USE THIS EXPORT: there is none before \"(\"; write "
	    "MACHINE(OPTIONS), or *(OPTIONS) if all are meant" } },
	{ "\xef\xbb\xbf/a b(subtree_check)",
	  "/a:b;",
	  { "f:1:6: note: subtree_check is accepted and changes nothing: no_subtree_check is what "
	    "is done" } },
	/* A note is there once for each file. */
	{ "/a b(pnfs) c(pnfs)\n/d e(pnfs,rw)",
	  "/a:b,c;/d:e;",
	  { "f:1:6: note: pnfs is accepted and changes nothing (and 2 times more in this file)" } },
	{ "/a /b c(rw)",
	  "",
	  { "f:1:4: error: \"/b\" is a second path: a line has one, and machines behind it; write "
	    "a "
	    "line for each path",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a//b/../c *",
	  "",
	  { "f:1:1: error: the path has a \"..\": write the directory's own path",
	    "f:1:1: note: /a//b/../c is not exported, because of the error" } },
	{ "/a/..b/c.. *(ro)", "/a/..b/c..:*;", { NULL } },
	{ "/a b(sign_fh)", "/a:b;", { NULL } },
	{ "/a b(reexport=auto-fsidnum)",
	  "",
	  { "f:1:6: error: reexport= is not supported: signed file handles of NFS mounts would be "
	    "too "
	    "long; send clients to the server itself by refer=, and give fsid= to what is no NFS "
	    "mount",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(pnfs)", "/a:b;", { "f:1:6: note: pnfs is accepted and changes nothing" } },
	{ "/a",
	  "/a:*;",
	  { "f:1:1: warning: no machine is given: all machines may use the export; write *(ro) to "
	    "say so" } },
	{ "/a -rww b\n/a c\n",
	  "",
	  { "f:1:5: error: unknown option \"rww\": did you mean \"rw\"?",
	    "f:1:1: note: /a is not exported, because of the error" } },
	/* An invalid line removes all lines of its path. */
	{ "/a b(ro,bogus)\n/a *(rw)\n/c d\n",
	  "/c:d;",
	  { "f:1:9: error: unknown option \"bogus\": exports(5) lists the options",
	    "f:1:1: note: /a is not exported, because of the error" } },
	{ "/a b(ro)\n/a c b(rw)\n",
	  "/a:b,c;",
	  { "f:2:1: warning: /a is exported to b twice: the first, in f line 1, holds" } },
	{ "/b x(fsid=7)\n/a x(fsid=7)\n",
	  "/a:x;/b:x;",
	  { "f:2:1: warning: fsid=7 is already that of /b: it does not count for /a, which is "
	    "known by its path" } },
	{ "/a x(fsid=7) y(fsid=8)",
	  "/a:x,y;",
	  { "f:1:1: warning: /a has two different fsid=: the first counts for all its machines" } },
};

static void expect_message(const struct message_case *c, const struct cfg_diags *diags, unsigned i)
{
	char line[1024] = "(no message)";

	if (i < diags->n)
		cfg_diag_format(&diags->items[i], line, sizeof(line));
	cr_expect_str_eq(line, c->messages[i], "<%s> message %u:\n got  %s\n want %s", c->text, i,
			 line, c->messages[i]);
}

Test(exports_parse, messages)
{
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
		const struct message_case *c = &messages[i];
		struct cfg_diags diags;
		struct exp_table *table;
		unsigned n = 0;
		char *got;

		parse(c->text, &diags, &table);
		got = summary(table);
		cr_expect_str_eq(got, c->left, "<%s>: exported is %s", c->text, got);
		while (n < 6 && c->messages[n])
			expect_message(c, &diags, n++);
		cr_expect(diags.n == n, "<%s>: %u messages, not %u", c->text, diags.n, n);
		free(got);
		exp_table_unref(table);
		cfg_diags_free(&diags);
	}
}

enum { DEFAULTS = EXP_ROOT_SQUASH | EXP_WDELAY };

struct option_case {
	const char *options;
	uint32_t flags;
	uint32_t anonuid;
	uint32_t anongid;
};

static const struct option_case option_cases[] = {
	{ "", DEFAULTS, 65534, 65534 },
	{ "ro", DEFAULTS, 65534, 65534 },
	{ "rw", DEFAULTS | EXP_RW, 65534, 65534 },
	{ "rw,ro", DEFAULTS, 65534, 65534 },
	{ "async", DEFAULTS | EXP_ASYNC, 65534, 65534 },
	{ "async,sync", DEFAULTS, 65534, 65534 },
	{ "insecure", DEFAULTS | EXP_INSECURE, 65534, 65534 },
	{ "insecure,secure", DEFAULTS, 65534, 65534 },
	{ "no_root_squash", EXP_WDELAY, 65534, 65534 },
	{ "no_root_squash,root_squash", DEFAULTS, 65534, 65534 },
	{ "all_squash", DEFAULTS | EXP_ALL_SQUASH, 65534, 65534 },
	{ "all_squash,no_all_squash", DEFAULTS, 65534, 65534 },
	{ "all_squash,no_root_squash", EXP_WDELAY | EXP_ALL_SQUASH, 65534, 65534 },
	{ "anonuid=0,anongid=100", DEFAULTS, 0, 100 },
	{ "anonuid=-2,anongid=4294967294", DEFAULTS, 4294967294u, 4294967294u },
	{ "subtree_check", DEFAULTS | EXP_SUBTREE_CHECK, 65534, 65534 },
	{ "no_subtree_check", DEFAULTS, 65534, 65534 },
	{ "crossmnt", DEFAULTS | EXP_CROSSMNT, 65534, 65534 },
	{ "crossmnt,nocrossmnt", DEFAULTS, 65534, 65534 },
	{ "nohide", DEFAULTS | EXP_NOHIDE, 65534, 65534 },
	{ "nohide,hide", DEFAULTS, 65534, 65534 },
	{ "no_wdelay", EXP_ROOT_SQUASH, 65534, 65534 },
	{ "no_wdelay,wdelay", DEFAULTS, 65534, 65534 },
	{ "no_acl", DEFAULTS | EXP_NO_ACL, 65534, 65534 },
	{ "no_acl,acl", DEFAULTS, 65534, 65534 },
	{ "insecure_locks", DEFAULTS | EXP_NO_AUTH_NLM, 65534, 65534 },
	{ "no_auth_nlm", DEFAULTS | EXP_NO_AUTH_NLM, 65534, 65534 },
	{ "no_auth_nlm,secure_locks", DEFAULTS, 65534, 65534 },
	{ "insecure_locks,auth_nlm", DEFAULTS, 65534, 65534 },
	{ "pnfs", DEFAULTS | EXP_PNFS, 65534, 65534 },
	{ "pnfs,no_pnfs", DEFAULTS, 65534, 65534 },
	{ "sign_fh", DEFAULTS | EXP_SIGN_FH, 65534, 65534 },
	{ "security_label", DEFAULTS | EXP_SECURITY_LABEL, 65534, 65534 },
	{ "security_label,no_security_label", DEFAULTS, 65534, 65534 },
	{ "nordirplus", DEFAULTS | EXP_NO_RDIRPLUS, 65534, 65534 },
	{ "nfs_only", DEFAULTS | EXP_NFS_ONLY, 65534, 65534 },
	{ "nfs_only,no_nfs_only", DEFAULTS, 65534, 65534 },
	{ "xprtsec=none:tls:mtls,sec=sys", DEFAULTS, 65534, 65534 },
	{ "xprtsec=none,sec=sys", DEFAULTS | EXP_NO_TLS | EXP_NO_MTLS, 65534, 65534 },
	{ "xprtsec=tls", DEFAULTS | EXP_NO_PLAIN | EXP_NO_MTLS, 65534, 65534 },
	{ "xprtsec=mtls:tls", DEFAULTS | EXP_NO_PLAIN, 65534, 65534 },
	{ "xprtsec=none,xprtsec=mtls", DEFAULTS | EXP_NO_PLAIN | EXP_NO_TLS, 65534, 65534 },
};

Test(exports_parse, options)
{
	for (size_t i = 0; i < sizeof(option_cases) / sizeof(option_cases[0]); i++) {
		const struct option_case *c = &option_cases[i];
		struct cfg_diags diags;
		struct exp_table *table;
		const struct exp_opts *opts;
		char text[256];

		snprintf(text, sizeof(text), "/a b(%s)", c->options);
		parse(text, &diags, &table);
		cr_assert(table->n_exports == 1, "<%s>", text);
		opts = &table->exports[0].clients[0].opts;
		cr_expect(opts->flags == c->flags, "<%s>: flags %x", text, opts->flags);
		cr_expect(opts->anonuid == c->anonuid, "<%s>: anonuid %u", text, opts->anonuid);
		cr_expect(opts->anongid == c->anongid, "<%s>: anongid %u", text, opts->anongid);
		cr_expect(opts->n_flavors == 1 && opts->flavors[0].flavor == EXP_AUTH_SYS);
		exp_table_unref(table);
		cfg_diags_free(&diags);
	}
}

/* The locations of a client, as "path@hosts path@hosts ". */
static const char *locations(const struct exp_client *c)
{
	static char text[256];
	const char *list = c->opts.locations ? c->opts.locations : "";
	struct exp_location l;

	text[0] = '\0';
	while (exp_location_next(&list, &l))
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%.*s@%.*s ",
			 (int)l.path_len, l.path, (int)l.hosts_len, l.hosts);
	return text;
}

Test(exports_parse, locations)
{
	struct cfg_diags diags;
	struct exp_table *table;
	const struct exp_client *c;

	parse("/a -refer=/x@y v w(replicas=/x@h-1.example+192.0.2.1+[2001:db8::1]:/@192.0.2.2.8.1) "
	      "x(refer=/x@[::1]:/y/z@[::2])\n/b v",
	      &diags, &table);
	cr_assert_eq(diags.errors, 0);
	c = table->exports[0].clients;
	cr_expect_str_eq(locations(&c[0]), "/x@y ");
	cr_expect_str_eq(locations(&c[1]),
			 "/x@h-1.example+192.0.2.1+[2001:db8::1] /@192.0.2.2.8.1 ");
	cr_expect_str_eq(locations(&c[2]), "/x@[::1] /y/z@[::2] ");
	cr_expect(c[0].opts.flags & EXP_REFER);
	cr_expect_not(c[1].opts.flags & EXP_REFER);
	cr_expect(c[2].opts.flags & EXP_REFER);
	cr_expect(table->exports[1].clients[0].opts.locations == NULL);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, defaults_hold_for_the_clients_after_them)
{
	struct cfg_diags diags;
	struct exp_table *table;
	const struct exp_client *c;

	parse("/a x -rw,anonuid=5 y z(ro) -async w\n/b v", &diags, &table);
	c = table->exports[0].clients;
	cr_expect(c[0].opts.flags == DEFAULTS && c[0].opts.anonuid == 65534);
	cr_expect(c[1].opts.flags == (DEFAULTS | EXP_RW) && c[1].opts.anonuid == 5);
	cr_expect(c[2].opts.flags == DEFAULTS && c[2].opts.anonuid == 5);
	cr_expect(c[3].opts.flags == (DEFAULTS | EXP_RW | EXP_ASYNC));
	cr_expect(table->exports[1].clients[0].opts.flags == DEFAULTS);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

static uint32_t flags_under(const struct exp_opts *opts, uint32_t flavor)
{
	uint32_t flags = 0;

	cr_assert(exp_opts_flavor(opts, flavor, &flags));
	return flags & EXP_FLAVOR_FLAGS;
}

/* The flavours and rights of a client, as "sec:ro,sec:rw". */
static const char *rights(const struct exp_client *c)
{
	static char text[128];

	text[0] = '\0';
	for (uint32_t i = 0; i < c->opts.n_flavors; i++) {
		const struct exp_flavor *f = &c->opts.flavors[i];

		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s:%s", i ? "," : "",
			 exp_flavor_name(f->flavor), f->flags & EXP_RW ? "rw" : "ro");
	}
	return text;
}

/* A gss/ line adds its flavour to lists without a sec= of their own only, as in the kernel's server. */
Test(exports_parse, gss_lines_join_the_others)
{
	struct cfg_diags diags;
	struct exp_table *table;
	const struct exp_client *c;

	parse("/a gss/krb5(ro,fsid=7) x(rw) y(sec=sys,ro) gss/krb5p(rw)", &diags, &table);
	cr_assert_eq(table->n_exports, 1);
	cr_assert_eq(table->exports[0].n_clients, 3);
	c = table->exports[0].clients;
	cr_expect_str_eq(rights(&c[0]), "krb5:ro,krb5p:rw");
	cr_expect_eq(c[0].kind, EXP_CLIENT_ANY);
	cr_expect_str_eq(rights(&c[1]), "sys:rw,krb5:ro,krb5p:rw");
	cr_expect_str_eq(rights(&c[2]), "sys:ro");
	cr_expect(c[2].opts.has_fsid && c[2].opts.fsid == 7);
	cr_expect_eq(diags.n, 0);
	exp_table_unref(table);
	parse("/a gss/krb5(rw,anonuid=5) x", &diags, &table);
	cr_expect_eq(diags.warnings, 1);
	exp_table_unref(table);
	parse("/a gss/krb5(rw,fsid=7) *(sec=krb5i:krb5p,fsid=7)", &diags, &table);
	cr_assert_eq(table->exports[0].n_clients, 1);
	cr_expect_str_eq(rights(&table->exports[0].clients[0]), "krb5i:ro,krb5p:ro");
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

static uint32_t left_out(const struct exp_table *table, unsigned client)
{
	return table->exports[0].clients[client].opts.flags & EXP_XPRTSEC;
}

/* Connections that a gss/ line does not take are not taken where its flavour is added, either. */
Test(exports_parse, gss_lines_and_xprtsec)
{
	struct cfg_diags diags;
	struct exp_table *table;

	parse("/a gss/krb5(rw,xprtsec=mtls) x(rw) y(rw,sec=sys)", &diags, &table);
	cr_assert_eq(table->exports[0].n_clients, 3);
	cr_expect_eq(left_out(table, 0), EXP_NO_PLAIN | EXP_NO_TLS);
	cr_expect_eq(left_out(table, 1), EXP_NO_PLAIN | EXP_NO_TLS);
	cr_expect_eq(left_out(table, 2), 0);
	cr_expect_eq(diags.warnings, 1);
	exp_table_unref(table);
	parse("/a gss/krb5(rw) gss/krb5p(rw,xprtsec=tls:mtls)", &diags, &table);
	cr_assert_eq(table->exports[0].n_clients, 1);
	cr_expect_eq(left_out(table, 0), EXP_NO_PLAIN);
	cr_expect_eq(diags.warnings, 1);
	exp_table_unref(table);
	parse("/a gss/krb5(rw,xprtsec=mtls) x(rw,xprtsec=mtls)", &diags, &table);
	cr_expect_eq(diags.warnings, 0);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, flavours_of_kerberos)
{
	struct cfg_diags diags;
	struct exp_table *table;

	parse("/a x(sec=krb5p:krb5i,rw,sec=krb5,ro,sec=sys:none,ro,all_squash)", &diags, &table);
	cr_assert_eq(table->n_exports, 1);
	cr_expect_str_eq(rights(&table->exports[0].clients[0]),
			 "krb5p:rw,krb5i:rw,krb5:ro,sys:ro,none:ro");
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, flavors)
{
	struct cfg_diags diags;
	struct exp_table *table;
	const struct exp_client *c;
	uint32_t flags;

	parse("/a w(sec=none:sys) x(rw,sec=sys,no_root_squash,sec=none,ro,all_squash,async) "
	      "-sec=none,rw y(sec=sys) z(ro)",
	      &diags, &table);
	cr_assert(diags.errors == 0);
	c = table->exports[0].clients;
	cr_expect(c[0].opts.n_flavors == 2 && c[0].opts.flavors[0].flavor == EXP_AUTH_NONE &&
		  c[0].opts.flavors[1].flavor == EXP_AUTH_SYS);
	cr_expect(flags_under(&c[1].opts, EXP_AUTH_SYS) == EXP_RW);
	cr_expect(flags_under(&c[1].opts, EXP_AUTH_NONE) == (EXP_ROOT_SQUASH | EXP_ALL_SQUASH));
	cr_expect(c[1].opts.flags & EXP_ASYNC, "async does not differ by flavour");
	/* A client's own sec= replaces that of the line's defaults, and starts from the format's
	 * defaults. */
	cr_expect(c[2].opts.n_flavors == 1 && !exp_opts_flavor(&c[2].opts, EXP_AUTH_NONE, &flags));
	cr_expect(flags_under(&c[2].opts, EXP_AUTH_SYS) == EXP_ROOT_SQUASH);
	cr_expect(flags_under(&c[3].opts, EXP_AUTH_NONE) == EXP_ROOT_SQUASH);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, mountpoint)
{
	struct cfg_diags diags;
	struct exp_table *table;
	const struct exp_client *c;

	parse("/a w x(mp) y(mountpoint=/m) -mp=/n z z2(mountpoint)", &diags, &table);
	c = table->exports[0].clients;
	cr_expect(c[0].opts.mountpoint == NULL);
	cr_expect_str_eq(c[1].opts.mountpoint, "/a");
	cr_expect_str_eq(c[2].opts.mountpoint, "/m");
	cr_expect_str_eq(c[3].opts.mountpoint, "/n");
	cr_expect_str_eq(c[4].opts.mountpoint, "/a");
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, ids)
{
	static const uint8_t uuid[16] = { 0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0,
					  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08 };
	struct cfg_diags diags;
	struct exp_table *table, *other;
	uint32_t id;

	parse("/a x\n/b x(fsid=root)\n/c x y(fsid=0x12)\n/d "
	      "x(fsid=12345678-9abc-def0:0102030405060708,"
	      "fsid=9)\n/e x(fsid=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)\n",
	      &diags, &table);
	cr_assert(diags.n == 0);
	id = exp_table_by_path(table, "/a")->id;
	cr_expect(id & 0x80000000u);
	cr_expect(exp_table_by_path(table, "/b")->id == 0);
	cr_expect(exp_table_by_path(table, "/c")->id == 0x12);
	cr_expect(exp_table_by_path(table, "/c")->clients[0].opts.has_fsid,
		  "identity is the path's");
	cr_expect(exp_table_by_path(table, "/d")->id == 9);
	cr_expect(memcmp(exp_table_by_path(table, "/d")->clients[0].opts.uuid, uuid, 16) == 0);
	for (unsigned i = 0; i < table->n_exports; i++)
		cr_expect(exp_table_by_id(table, table->exports[i].id) == &table->exports[i]);
	cr_expect(exp_table_by_id(table, 77) == NULL);
	cr_expect(exp_table_by_path(table, "/aa") == NULL);
	cfg_diags_free(&diags);

	/* An export's id does not depend on other exports, other options or the order of lines. */
	parse("/zz *(rw)\n/e q(fsid=AAAAAAAA-aaaaaaaa-aaaaaaaa-aaaaaaaa)\n/a y(rw)", &diags,
	      &other);
	cr_expect(exp_table_by_path(other, "/a")->id == id);
	cr_expect(exp_table_by_path(other, "/e")->id == exp_table_by_path(table, "/e")->id);
	/* File handles on disk and in clients hold these ids: they are part of the format. */
	cr_expect(id == 0xb1dbb163u, "the id of /a is %x", id);
	exp_table_unref(other);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, id_collision)
{
	/* The hash of one export's path is the fsid= of the other. */
	char text[128];
	struct cfg_diags diags;
	struct exp_table *table;
	uint32_t id;

	parse("/a x", &diags, &table);
	id = table->exports[0].id;
	exp_table_unref(table);
	cfg_diags_free(&diags);

	snprintf(text, sizeof(text), "/a x\n/b x(fsid=%u)", id);
	parse(text, &diags, &table);
	cr_expect(diags.errors == 0 && diags.warnings == 1);
	cr_expect(exp_table_by_path(table, "/b")->id == id);
	cr_expect(exp_table_by_path(table, "/a")->id != id);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_parse, text_needs_no_terminator)
{
	static const char text[] = { '/', 'a', ' ', 'b', '(', 'r', 'w', ')' };
	struct cfg_diags diags;
	struct exp_table *table;

	for (size_t len = 0; len <= sizeof(text); len++) {
		char *exact = malloc(len + !len);

		memcpy(exact, text, len);
		cfg_diags_init(&diags);
		cr_assert(exp_table_parse("f", exact, len, &no_checks, &diags, &table) == 0);
		exp_table_unref(table);
		cfg_diags_free(&diags);
		free(exact);
	}
}

Test(exports_parse, long_words)
{
	size_t size = 20000;
	char *text = malloc(size);
	struct cfg_diags diags;
	struct exp_table *table;

	memset(text, 'a', size);
	memcpy(text, "/", 1);
	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", text, 1024, &no_checks, &diags, &table) == 0);
	cr_expect(table->n_exports == 1 && diags.errors == 0, "1024 octets are MNTPATHLEN");
	exp_table_unref(table);
	cr_assert(exp_table_parse("f", text, 1025, &no_checks, &diags, &table) == 0);
	cr_expect(table->n_exports == 0 && diags.errors == 1);
	exp_table_unref(table);
	cr_assert(exp_table_parse("f", text, size, &no_checks, &diags, &table) == 0);
	cr_expect(table->n_exports == 0 && diags.errors == 2, "one message for a long word");
	exp_table_unref(table);
	cfg_diags_free(&diags);
	free(text);
}

Test(exports_parse, messages_are_bounded)
{
	size_t n = 3 * CFG_DIAG_MAX;
	char *text = malloc(n * 2);
	struct cfg_diags diags;
	struct exp_table *table;

	for (size_t i = 0; i < n; i++)
		memcpy(text + 2 * i, "x\n", 2);
	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", text, n * 2, &no_checks, &diags, &table) == 0);
	cr_expect(diags.n == CFG_DIAG_MAX && diags.errors == n && diags.dropped == n - diags.n);
	exp_table_unref(table);
	cfg_diags_free(&diags);
	free(text);
}

/* Options for all hosts because of a stray blank need an explicit "*" in strict mode. */
Test(exports_parse, strict_refuses_options_for_all_machines_behind_a_blank)
{
	const struct exp_load_opts strict = { .strict = true };
	static const char *const texts[] = { "/a b (rw)", "/a (rw)" };

	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct cfg_diags diags;
		struct exp_table *table;

		cfg_diags_init(&diags);
		cr_assert(exp_table_parse("f", texts[i], strlen(texts[i]), &strict, &diags,
					  &table) == -EINVAL);
		cr_assert(diags.errors > 0);
		cfg_diags_free(&diags);
	}
}

Test(exports_parse, strict_takes_all_machines_that_are_named)
{
	const struct exp_load_opts strict = { .strict = true };
	struct cfg_diags diags;
	struct exp_table *table;

	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", "/a b(ro) *(rw)", 14, &strict, &diags, &table) == 0);
	cr_assert(diags.errors == 0);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}
