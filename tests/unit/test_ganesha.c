/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of exports(5) for nfs-ganesha's configuration, and what is said of what has no counterpart. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "tools/ganesha/ganesha_exports.h"
#include "tools/ganesha/ganesha_tree.h"

struct result {
	char *out, *err;
	int rc;
	unsigned errors, warnings;
};

static struct result convert(const char *text, size_t len)
{
	struct result r;
	size_t out_len, err_len;
	struct ganesha_said said = { .file = "g",
				     .out = open_memstream(&r.out, &out_len),
				     .err = open_memstream(&r.err, &err_len) };

	r.rc = ganesha_to_exports(text, len, &said);
	fclose(said.out);
	fclose(said.err);
	r.errors = said.errors;
	r.warnings = said.warnings;
	return r;
}

/* The lines that are no comments; they must be right. The caller frees them. */
static char *lines_of(const char *out)
{
	const struct exp_load_opts none = { .file = NULL };
	struct exp_table *table;
	struct cfg_diags diags;
	char *text = strdup(out), *to = text;

	for (const char *s = out; *s;) {
		const size_t len = strcspn(s, "\n") + 1;

		if (*s != '#' && len > 1) {
			memcpy(to, s, len);
			to += len;
		}
		s += len;
	}
	*to = '\0';
	cfg_diags_init(&diags);
	cr_assert_eq(exp_table_parse("out", text, strlen(text), &none, &diags, &table), 0);
	cr_expect_eq(diags.errors + diags.warnings, 0, "%s", text);
	exp_table_unref(table);
	cfg_diags_free(&diags);
	return text;
}

static void expect(const char *text, const char *lines, unsigned errors, const char *said)
{
	struct result r = convert(text, strlen(text));
	char *got = lines_of(r.out);

	cr_expect_eq(r.rc, 0);
	cr_expect_str_eq(got, lines, "%s: %s", text, r.out);
	cr_expect_eq(r.errors, errors, "%s: %s", text, r.err);
	cr_expect(strstr(r.out, said), "%s: %s", text, r.out);
	free(got);
	free(r.out);
	free(r.err);
}

/* An EXPORT of /a with these parameters. */
static void expect_one(const char *parameters, const char *lines, unsigned errors, const char *said)
{
	char text[2048];

	snprintf(text, sizeof(text), "EXPORT { Path = /a; %s }", parameters);
	expect(text, lines, errors, said);
}

Test(ganesha, whole)
{
	expect("# a comment } with { marks\n"
	       "EXPORT_DEFAULTS { SecType = sys; PrivilegedPort = yes; Access_Type = RO; }\n"
	       "export{export_id=7;PATH='/srv/data';Pseudo=\"/srv/data\";squash=No_Root_Squash;\n"
	       "CLIENT { Clients = 192.0.2.0/24, host.example; Access_Type = RW; }\n"
	       "CLIENT { Clients = @lab; Clients = *.example.org; PrivilegedPort = false; }\n"
	       "FSAL { Name = VFS; } }\n"
	       "EXPORT { Path = /b; }",
	       "/srv/data 192.0.2.0/24(rw,no_root_squash,fsid=7) "
	       "host.example(rw,no_root_squash,fsid=7) "
	       "@lab(ro,insecure,no_root_squash,fsid=7) "
	       "*.example.org(ro,insecure,no_root_squash,fsid=7) "
	       "*(ro,no_root_squash,fsid=7)\n"
	       "/b *(ro)\n",
	       0, "");
}

Test(ganesha, rights)
{
	expect_one("Access_Type = RW;", "/a *(rw,insecure)\n", 0, "");
	expect_one("Access_Type = ro; Squash = All;", "/a *(ro,insecure,all_squash)\n", 0, "");
	expect_one("Access_Type = RW; Squash = None;", "/a *(rw,insecure,no_root_squash)\n", 0, "");
	expect_one("Access_Type = RW; Squash = RootId;", "/a *(rw,insecure)\n", 0,
		   "# g:1: warning: Squash = RootId has no counterpart");
	expect_one("Access_Type = RW; Anonymous_Uid = -2; Anonymous_gid = 0x10;",
		   "/a *(rw,insecure,anonuid=4294967294,anongid=16)\n", 0, "");
	expect_one("Access_Type = RW; SecType = none, sys;", "/a *(rw,insecure,sec=sys:none)\n", 0,
		   "");
	expect_one("Access_Type = RW; SecType = none;", "/a *(rw,insecure,sec=none)\n", 0, "");
	expect_one("Access_Type = RW; SecType = sys, krb5p;", "/a *(rw,insecure,sec=krb5p:sys)\n",
		   0, "# g:1: SecType: Kerberos needs the server's key");
	expect_one("Access_Type = RW; SecType = krb5;", "/a *(rw,insecure,sec=krb5)\n", 0, "");
	expect_one("Access_Type = RW; SecType = none, sys, krb5, krb5i, KRB5P;",
		   "/a *(rw,insecure,sec=krb5p:krb5i:krb5:sys:none)\n", 0, "");
	expect_one("Access_Type = RW; SecType = ;", "", 0, "nobody has access");
	expect_one("Access_Type = MDONLY;", "", 1, "no counterpart");
	expect_one("", "", 0, "warning: nobody has access to /a");
	expect_one("Access_Type = RW; Protocols = 9P;", "", 0, "9P is not there");
	expect_one("Access_Type = RW; Protocols = 3; Transports = UDP, TCP;", "/a *(rw,insecure)\n",
		   0, "enabled in [nfs4]");
	expect_one("Access_Type = RW; DisableReaddirPlus = true; Security_Label = on;",
		   "/a *(rw,insecure,nordirplus,security_label)\n", 0, "");
}

Test(ganesha, wrong_values)
{
	expect_one("Access_Type = RX;", "", 1,
		   "# g:1: error: Access_Type = RX: RW, RO, MDONLY, MDONLY_RO or None is expected");
	expect_one("Access_Type = RW, RO;", "", 1, "several values");
	expect_one("Access_Type = ;", "", 1, "nothing");
	expect_one("Access_Type = RW; Access_Type = RO;", "", 1, "is there twice");
	expect_one("Access_Type = RW; Squash = most;", "", 1, "Root_Squash, No_Root_Squash");
	expect_one("Access_Type = RW; PrivilegedPort = 1;", "", 1, "true or false");
	expect_one("Access_Type = RW; Anonymous_Uid = x;", "", 1, "a number from");
	expect_one("Access_Type = RW; Anonymous_Uid = 4294967295;", "", 1, "a number from");
	expect_one("Access_Type = RW; SecType = sys, md5;", "", 1, "md5: sys, none");
	expect_one("Access_Type = RW; Export_Id = 65536;", "", 1, "0 to 65535");
	expect_one("Access_Type = RW; Path = /b;", "", 1, "once, with one value");
	expect_one("Access_Type = RW; FSAL { Name = CEPH; }", "", 1, "FSAL CEPH");
	expect_one("Access_Type = RW; FSAL { Name = NULL; FSAL { Name = VFS; } }",
		   "/a *(rw,insecure)\n", 0, "");
	expect("EXPORT { Path = a; Access_Type = RW; }", "", 1, "an absolute path");
	expect("EXPORT { Path = /a/../b; Access_Type = RW; }", "", 1, "without");
	expect("EXPORT { Access_Type = RW; }", "", 1, "Path: it is missing");
}

/* The first that fits counts there, and the kind of a client here. Nobody gets more than there. */
Test(ganesha, order)
{
	expect_one("CLIENT { Clients = *; Access_Type = RO; } CLIENT { Clients = 10.0.0.1; "
		   "Access_Type = "
		   "RW; }",
		   "/a *(ro,insecure)\n", 0, "10.0.0.1 is left out: nfs-ganesha never comes to it");
	expect_one("CLIENT { Clients = 10.0.0.0/8; Access_Type = RO; } CLIENT { Clients = "
		   "10.1.0.0/16; "
		   "Access_Type = RW; }",
		   "/a 10.0.0.0/8(ro,insecure)\n", 0, "10.1.0.0/16 is left out");
	expect_one("CLIENT { Clients = 10.1.0.0/16; Access_Type = RO; } CLIENT { Clients = "
		   "10.0.0.0/8; "
		   "Access_Type = RW; }",
		   "/a 10.1.0.0/16(ro,insecure) 10.0.0.0/8(rw,insecure)\n", 0, "");
	expect_one("CLIENT { Clients = @lab; Access_Type = RO; } CLIENT { Clients = 10.0.0.1; "
		   "Access_Type "
		   "= RW; }",
		   "", 1, "@lab counts before 10.0.0.1");
	expect_one("CLIENT { Clients = @lab; Access_Type = RO; } CLIENT { Clients = 10.0.0.1; "
		   "Access_Type "
		   "= RO; }",
		   "/a @lab(ro,insecure) 10.0.0.1(ro,insecure)\n", 0, "");
}

Test(ganesha, kept_out)
{
	expect_one("Access_Type = RW; CLIENT { Clients = 10.0.0.1; Access_Type = None; }", "", 1,
		   "10.0.0.1 has no access, and would have it here by *");
	expect_one("CLIENT { Clients = 10.0.0.1; Access_Type = None; } CLIENT { Clients = "
		   "10.0.0.0/24; "
		   "Access_Type = RW; }",
		   "", 1, "# not converted: /a 10.0.0.0/24(rw,insecure)\n");
	expect_one("CLIENT { Clients = 10.0.0.1; Access_Type = None; } CLIENT { Clients = "
		   "10.0.1.0/24; "
		   "Access_Type = RW; }",
		   "/a 10.0.1.0/24(rw,insecure)\n", 0, "");
	expect_one("Access_Type = RW; CLIENT { Clients = *; Access_Type = None; }", "", 0,
		   "nobody has access");
	expect_one("Access_Type = RW; CLIENT { Clients = h1; SecType = krb5i; }",
		   "/a h1(rw,insecure,sec=krb5i) *(rw,insecure)\n", 0, "");
	/* A netgroup's name has its case. */
	expect_one("Access_Type = RW; CLIENT { Clients = @Lab; } CLIENT { Clients = @lab; "
		   "Access_Type = None; }",
		   "", 1, "@lab has no access, and would have it here by *");
}

Test(ganesha, clients)
{
	expect_one("CLIENT { Access_Type = RO; Clients = 0.0.0.0; }", "/a *(ro,insecure)\n", 0, "");
	expect_one("CLIENT { Access_Type = RO; Clients = 0.0.0.0/0, fe80::1, 2001:db8::/32; }",
		   "/a 0.0.0.0/0(ro,insecure) fe80::1(ro,insecure) 2001:db8::/32(ro,insecure)\n", 0,
		   "");
	expect_one("CLIENT { Access_Type = RO; Clients = host[1-3]?.example; }",
		   "/a host[1-3]?.example(ro,insecure)\n", 0, "");
	static const char *const wrong[] = { "10.0.0.0/33", "10.0.0.0/x",    "\"a b\"", "'a(rw)'",
					     "@",	    "\"\"",	     "'-rw'",	"a/b",
					     "'a\n/b'",	    "2001:db8::/129" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		char text[128];

		snprintf(text, sizeof(text), "CLIENT { Access_Type = RO; Clients = %s; }",
			 wrong[i]);
		expect_one(text, "", 1, "a name, an address, a network");
	}
	expect_one("CLIENT { Access_Type = RO; }", "", 0, "CLIENT without Clients");
	/* The defaults' clients are for exports without any. */
	expect("EXPORT_DEFAULTS { CLIENT { Clients = h1; Access_Type = RW; } } EXPORT { Path = /a; "
	       "} "
	       "EXPORT { Path = /b; CLIENT { Clients = h2; Access_Type = RO; } }",
	       "/a h1(rw,insecure)\n/b h2(ro,insecure)\n", 0, "");
}

Test(ganesha, pseudo)
{
	expect_one("Access_Type = RW; Pseudo = /a;", "/a *(rw,insecure)\n", 0, "");
	expect_one("Access_Type = RW; Pseudo = /; Export_Id = 5;", "/a *(rw,insecure,fsid=0)\n", 0,
		   "the root of NFSv4");
	expect_one("Access_Type = RW; Pseudo = /x; Tag = y;", "/a *(rw,insecure)\n", 0,
		   "NFSv4 clients mount /a in the place of that");
	expect("EXPORT { Path = /a; Pseudo = /x; Access_Type = RW; } EXPORT { Path = /a; Pseudo = "
	       "/y; "
	       "Access_Type = RW; }",
	       "/a *(rw,insecure)\n", 1, "another block exports it");
	expect("EXPORT { Path = /a; Export_Id = 1; Access_Type = RW; } EXPORT { Path = /b; "
	       "Export_Id = 1; "
	       "Access_Type = RW; }",
	       "/a *(rw,insecure,fsid=1)\n", 1, "another block has it");
	expect("EXPORT { Path = /a; Export_Id = 16; Access_Type = RW; } EXPORT { Path = /b; "
	       "Export_Id = 0x10; "
	       "Access_Type = RW; }",
	       "/a *(rw,insecure,fsid=16)\n", 1, "another block has it");
	expect("EXPORT { Path = /a; Pseudo = /; Access_Type = RW; } EXPORT { Path = /b; Pseudo = "
	       "/; "
	       "Access_Type = RW; }",
	       "/a *(rw,insecure)\n", 1, "another block has it");
	/* fsid=0 would make this export NFSv4's root, and hide the other exports. */
	expect("EXPORT { Path = /a; Pseudo = /; Export_Id = 5; Access_Type = RW; } EXPORT { Path = "
	       "/b; Pseudo = /b; Access_Type = RW; }",
	       "/a *(rw,insecure,fsid=5)\n/b *(rw,insecure)\n", 0,
	       "warning: Pseudo = /: NFSv4 clients mount /a in the place of that");
	expect("EXPORT_DEFAULTS { Access_Type = RO; } %include x EXPORT { Path = /a; Pseudo = /; }",
	       "/a *(ro,insecure)\n", 1, "NFSv4 clients mount /a in the place of that");
	expect("EXPORT { Path = /a; Access_Type = RW; } EXPORT { Path = /a/; Access_Type = RW; }",
	       "/a *(rw,insecure)\n", 1, "another block exports it");
	expect("EXPORT { Path = /a; Access_Type = RW; } EXPORT { Path = /A; Access_Type = RW; }",
	       "/a *(rw,insecure)\n/A *(rw,insecure)\n", 0, "");
}

/* The import refuses parameters that exports(5) cannot express, and unknown ones: they may have narrowed the export's rights. */
Test(ganesha, refused)
{
	static const struct {
		const char *parameters, *why;
	} rows[] = {
		{ "Colour = red;", "error: Colour is not known in EXPORT" },
		{ "Acces_Type = None;", "Acces_Type is not known in EXPORT" },
		{ "CLINT { Clients = h; Access_Type = RO; }", "CLINT is not known in EXPORT" },
		{ "CLIENT { Clients = h; Acces_Type = RO; }", "Acces_Type is not known in CLIENT" },
		{ "CLIENT { Clients = h; Path = /b; }", "Path is not known in CLIENT" },
		{ "Squash { All = true; }", "Squash = { }: a value is expected" },
		{ "Disable_ACL = true;", "ACLs of files count here" },
		{ "Disable_ACL = maybe;", "Disable_ACL: true or false is expected" },
		{ "Disable_ACL = no; Disable_ACL = yes;",
		  "Disable_ACL: true or false is expected" },
		{ "Security_Label = 1;", "Security_Label: true or false is expected" },
		{ "DisableReaddirPlus = 0;", "DisableReaddirPlus: true or false is expected" },
	};
	static const char *const clients[] = {
		"192.168.1.*", "192.168.?.1", "10.[0-9].0.1",
		"10.*",	       "192.168.1.?", "1?",
		"fd*",	       "*1",	      "?*",
		"[a-z]*",      "*.1*",	      "host[1.*",
		"h[]",	       "h[!]",	      "[]1]*",
		"h]*",	       "192.168.1",   "192.168.1.256",
		"10",	       "0x7f000001",  "h.1",
		"h.0x7f",
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), "Access_Type = RW; %s", rows[i].parameters);
		expect_one(text, "", 1, rows[i].why);
	}
	/* Nobody gets the wider right of the EXPORT in their place. */
	for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text),
			 "Access_Type = RW; CLIENT { Clients = %s; Access_Type = RO; }",
			 clients[i]);
		expect_one(text, "", 1, clients[i]);
	}
	expect("EXPORT_DEFAULTS { Acces_Type = RO; } EXPORT { Path = /a; Access_Type = RW; }", "",
	       1, "Acces_Type is not known in EXPORT_DEFAULTS");
	expect("EXPORT_DEFAULT { Squash = All; } EXPORT { Path = /a; Access_Type = RW; }", "", 1,
	       "EXPORT_DEFAULT is no block of nfs-ganesha");
	expect("EXPORTS { Path = /b; } EXPORT { Path = /a; Access_Type = RW; }", "", 1,
	       "EXPORTS is no block of nfs-ganesha");
	expect("LOGG { } EXPORT { Path = /a; Access_Type = RW; }", "/a *(rw,insecure)\n", 1,
	       "LOGG is no block of nfs-ganesha");
}

/* Patterns that no address is like are names' alone, as here. */
Test(ganesha, patterns)
{
	static const char *const patterns[] = { "*.example.org", "*.de",
						"host?",	 "h*",
						"node-*",	 "*.cafe.[a-z]*",
						"10-*",		 "192.168.1.*.in-addr.arpa",
						"fd*.de" };

	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		char text[256], line[256];

		snprintf(text, sizeof(text), "CLIENT { Clients = %s; Access_Type = RO; }",
			 patterns[i]);
		snprintf(line, sizeof(line), "/a %s(ro,insecure)\n", patterns[i]);
		expect_one(text, line, 0, "");
	}
	expect_one("Access_Type = RW; Disable_ACL = false;", "/a *(rw,insecure)\n", 0, "");
}

Test(ganesha, byte_order_mark)
{
	expect("\xef\xbb\xbf"
	       "EXPORT { Path = /a; Access_Type = RW; }",
	       "/a *(rw,insecure)\n", 0, "");
	expect("\xef\xbb\xbf"
	       "EXPORT_DEFAULTS { SecType = krb5; } EXPORT { Path = /a; Access_Type = RW; }",
	       "/a *(rw,insecure,sec=krb5)\n", 0, "");
}

/* No setting passes without a word. */
Test(ganesha, settings)
{
	static const char *const rows[][2] = {
		{ "Rquota_Port = 875", "Rquota_Port: rquota_port in [tcp] of ringnfs.conf\n" },
		{ "Enable_NLM = false", "Enable_NLM: locks are served with NFSv3" },
		{ "NLM_Port = 4001", "NLM_Port: locks of NFSv3 are served at port in [tcp]\n" },
		{ "mount_path_pseudo = true", "mount_path_pseudo: NFSv3 clients mount the Path" },
		{ "Clustered = true", "Clustered: left out: it has no counterpart here\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256], said[256];

		snprintf(text, sizeof(text), "NFS_CORE_PARAM { NFS_Port = 2049; %s; }", rows[i][0]);
		snprintf(said, sizeof(said), "# g:1: NFS_CORE_PARAM: %s", rows[i][1]);
		expect(text, "", 0, said);
	}
}

Test(ganesha, others)
{
	expect("%include \"more.conf\"\nNFS_CORE_PARAM { NFS_Port = 2050; } LOG { COMPONENTS { ALL "
	       "= INFO; } }",
	       "", 1, "# g:1: error: %include more.conf is not followed");
	/* The defaults may be in the other file. */
	expect("%include 'd.conf' EXPORT { Path = /a; Access_Type = RW; }", "", 1,
	       "# not converted: /a *(rw,insecure)\n");
	expect("EXPORT_DEFAULTS { SecType = krb5; } %dir d EXPORT { Path = /a; Access_Type = RW; }",
	       "/a *(rw,insecure,sec=krb5)\n", 1, "put what is there in the place of this line");
	expect("NFS_CORE_PARAM { NFS_Port = 2050; }", "", 0,
	       "# g:1: NFS_CORE_PARAM: NFS_Port: port in [tcp] of ringnfs.conf");
	expect("LOG { }", "", 0, "LOG: no part of exports");
	expect("EXPORT_DEFAULTS { } EXPORT_DEFAULTS { Access_Type = RW; }", "", 1,
	       "another EXPORT_DEFAULTS");
	expect("EXPORT_DEFAULTS { Access_Type = RX; } EXPORT { Path = /a; Access_Type = RW; }", "",
	       1, "# not converted: /a *(rw,insecure)");
}

/* No text becomes a line of exports(5), or leaves its word. */
Test(ganesha, odd_text)
{
	expect("EXPORT { Path = '/a\n/b *(rw)'; Access_Type = RW; }",
	       "/a\\012/b\\040\\052\\050rw\\051 *(rw,insecure)\n", 0, "");
	expect("EXPORT { Path = \"/a \\\"q\\\\\"; Access_Type = RW; }",
	       "/a\\040\\042q\\134 *(rw,insecure)\n", 0, "");
	expect_one("Access_Type = RW; Pseudo = '/x\n/etc *(rw)';", "/a *(rw,insecure)\n", 0,
		   "Pseudo = /x\\012/etc *(rw): ");
	expect_one("Access_Type = '\n/etc *(rw)';", "", 1, "\\012/etc");
	/* A control character of UTF-8, and bytes that are none. */
	expect_one("Access_Type = '\xc2\x9b"
		   "31m\xff';",
		   "", 1, "\\302\\23331m\\377");
}

static void expect_wrong(const char *text, size_t len, unsigned line, const char *why)
{
	struct result r = convert(text, len);
	char want[256];

	snprintf(want, sizeof(want), "g:%u: error: %s", line, why);
	cr_expect_eq(r.rc, -EINVAL, "%s", text);
	cr_expect_eq(r.errors, 1);
	cr_expect(strstr(r.err, want), "%s: %s, not %s", text, r.err, want);
	free(r.out);
	free(r.err);
}

Test(ganesha, syntax)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *why;
	} rows[] = {
		{ "EXPORT {\n", 1, "the block has no end: its \"}\" is missing" },
		{ "EXPORT {\n Path = /a\n}", 2, "a \";\" is missing behind this value" },
		{ "EXPORT {\n Path /a; }", 2, "a name without \"= VALUE;\" or \"{\"" },
		{ "EXPORT { }\n}", 2, "a \"}\" without its \"{\"" },
		{ "EXPORT {\n\n Path = \"/a;\n }", 3, "the string has no end" },
		{ "\"EXPORT\" { }", 1, "a name is expected, and not a string" },
		{ "EXPORT { %include x }", 1, "a directive within a block" },
		{ "%include\n;", 1, "the name of a file is missing" },
		{ "EXPORT { A = , ; }", 1, "a value is expected" },
		{ "= 5;", 1, "the name of a block is expected" },
		{ "A{A{A{A{A{A{A{A{A{A{A{A{A{A{A{A{A{A{}}}}}}}}}}}}}}}}}}", 1,
		  "blocks within too many" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		expect_wrong(rows[i].text, strlen(rows[i].text), rows[i].line, rows[i].why);
	expect_wrong("EXPORT\n\0{ }", 11, 2, "a NUL octet");
}
