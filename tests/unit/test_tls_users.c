/* SPDX-License-Identifier: BSD-2-Clause */
/* The map from certificates to users: its lines, its messages, and which line fits a certificate. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/tls_users.h"

#define PRINT "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static struct cfg_tls_users *parse(const char *text)
{
	struct cfg_tls_users *users;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_tls_users_parse("map", text, strlen(text), &diags, &users) == 0, "%s: %s",
		  text, diags.n ? diags.items[0].text : "");
	cr_assert(diags.n == 0);
	cfg_diags_free(&diags);
	return users;
}

/* The messages are the wanted ones, in the order of the list. */
static void refuse(const char *text, size_t len, const char *const *want)
{
	struct cfg_tls_users *users;
	struct cfg_diags diags;
	unsigned n = 0;

	cfg_diags_init(&diags);
	cr_expect(cfg_tls_users_parse("map", text, len, &diags, &users) == -EINVAL, "%s", text);
	cr_expect(!users);
	for (; want[n]; n++) {
		char line[1024] = "";

		if (n < diags.n)
			cfg_diag_format(&diags.items[n], line, sizeof(line));
		cr_expect(strstr(line, want[n]), "'%s', not '%s'", line, want[n]);
	}
	cr_expect(diags.n == n, "%u messages for %s", diags.n, text);
	cfg_diags_free(&diags);
}

static void refuse_one(const char *text, const char *want)
{
	refuse(text, strlen(text), (const char *const[]){ want, NULL });
}

static struct rn_certificate with(enum rn_cert_kind kind, const char *name)
{
	struct rn_certificate cert = { .nnames = 1 };

	memset(cert.sha256, 'e', RN_CERT_SHA256_HEX);
	cert.names[0].kind = kind;
	snprintf(cert.names[0].text, sizeof(cert.names[0].text), "%s", name);
	return cert;
}

/* The line that fits; 0: none. */
static unsigned line_of(const struct cfg_tls_users *users, const struct rn_certificate *cert)
{
	const struct cfg_tls_user *u = cfg_tls_users_find(users, cert);

	return u ? u->line : 0;
}

Test(tls_users, a_line_is_an_identity_and_a_user)
{
	struct cfg_tls_users *u = parse("\xef\xbb\xbf# a comment\r\n"
					"\r\n"
					"dns:Build.Example.org\tbuilder # behind it\r\n"
					"  email:Alice@Example.org 1001:100\n"
					"uri:spiffe://x/y root root\n"
					"sha256:" PRINT " 0:5 root\n"
					"dns:many.example.org @call\n"
					"* @nobody");

	cr_assert(u->n == 6);
	cr_expect(u->lines[0].line == 3 && u->lines[0].kind == CFG_ID_DNS);
	cr_expect(strcmp(u->lines[0].id, "build.example.org") == 0);
	cr_expect(u->lines[0].as == CFG_AS_NAME && strcmp(u->lines[0].name, "builder") == 0);
	cr_expect(strcmp(u->lines[1].id, "Alice@example.org") == 0);
	cr_expect(u->lines[1].as == CFG_AS_NUMBER);
	cr_expect(u->lines[1].uid == 1001 && u->lines[1].gid == 100 && !u->lines[1].root);
	cr_expect(u->lines[2].kind == CFG_ID_URI && u->lines[2].root);
	cr_expect(u->lines[3].kind == CFG_ID_SHA256 && u->lines[3].root && u->lines[3].gid == 5);
	cr_expect(u->lines[4].as == CFG_AS_CALL);
	cr_expect(u->lines[5].kind == CFG_ID_ANY && u->lines[5].as == CFG_AS_NOBODY);
	cfg_tls_users_free(u);
	u = parse("");
	cr_expect(u->n == 0);
	cfg_tls_users_free(u);
}

Test(tls_users, fingerprints_may_have_colons)
{
	struct cfg_tls_users *u = parse("sha256:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:"
					"23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF a");

	cr_expect(strcmp(u->lines[0].id, PRINT) == 0, "%s", u->lines[0].id);
	cfg_tls_users_free(u);
}

Test(tls_users, messages_tell_what_is_wrong_and_what_would_be_right)
{
	refuse_one("client.example.org a", "map:1:1: error: 'client.example.org' is no identity: "
					   "write dns:NAME");
	refuse_one("\ndns:*.example.org a", "map:2:1: error: 'dns:*.example.org' is no host name");
	refuse_one("dns: a", "is no host name");
	refuse_one("email:alice a", "is no address: write it as email:user@example.org");
	refuse_one("email:@x a", "is no address");
	refuse_one("uri:nothing a", "is no URI");
	refuse_one("sha256:" PRINT "0 a", "has 64 hexadecimal digits");
	refuse_one("sha256:0:123 a", "openssl x509 -noout -fingerprint");
	refuse_one("sha256:xyz a", "has 64 hexadecimal digits");
	refuse_one("dns:a", "map:1:1: error: there is no user for 'dns:a'");
	refuse_one("dns:a # b", "there is no user");
	refuse_one("dns:a 1000", "map:1:7: error: '1000' is no user: write UID:GID, as 1000:100");
	refuse_one("dns:a 1000:", "write UID:GID");
	refuse_one("dns:a 1000:1x", "write UID:GID");
	refuse_one("dns:a 4294967295:1", "write UID:GID");
	refuse_one("dns:a 99999999999999999999:1", "write UID:GID");
	refuse_one("dns:a bob@example.org", "write a user's name, UID:GID, @call or @nobody");
	refuse_one("dns:a @all", "'@all' is no user");
	refuse_one("dns:a b c", "map:1:9: error: 'c' is too much");
	refuse_one("dns:a b root c", "'c' is too much");
	refuse_one("dns:a @call root", "'root' is too much");
	refuse_one("dns:a 1:2\001", "the byte 0x01 is no text");
	refuse("dns:a\0b c", 9, (const char *const[]){ "map:1:6: error: the byte 0x00", NULL });
}

Test(tls_users, root_must_be_allowed)
{
	refuse_one("dns:a root", "'root' is root, or root's group: give another user, or write the "
				 "word root behind it");
	refuse_one("dns:a 0:100", "is root");
	refuse_one("dns:a 100:0", "is root");
}

Test(tls_users, lines_that_are_never_used_are_errors)
{
	refuse_one("* a\ndns:b c", "map:2:1: error: lines behind * are never used");
	refuse_one("dns:a x\ndns:b x\nDNS:A y", "map:3:1: error: line 1 has this identity, too");
	refuse("uri:b:c\ndns:\n*", 14,
	       (const char *const[]){ "map:1:1: error: there is no user", "map:2:1: error: 'dns:'",
				      "map:3:1: error: there is no user", NULL });
}

Test(tls_users, long_words_and_files_are_refused)
{
	char *text = malloc(1 << 20);
	size_t n = (size_t)sprintf(text, "uri:a:");

	memset(text + n, 'x', 300);
	strcpy(text + n + 300, " u");
	refuse_one(text, "the identity is longer than 255 bytes");
	strcpy(text, "dns:a ");
	memset(text + 6, 'u', 256);
	text[262] = '\0';
	refuse_one(text, "is no user");
	n = 0;
	for (unsigned i = 0; i <= CFG_TLS_USERS_MAX; i++)
		n += (size_t)sprintf(text + n, "dns:h%u u\n", i);
	refuse_one(text, "there are more than 10000 lines");
	free(text);
}

Test(tls_users, the_first_line_that_fits_counts)
{
	struct cfg_tls_users *u = parse("dns:one.example a\n"
					"email:Al@example.org b\n"
					"uri:urn:x c\n"
					"sha256:" PRINT " d\n"
					"dns:two.example e\n");
	struct rn_certificate cert = with(RN_CERT_DNS, "ONE.example");

	cr_expect(line_of(u, &cert) == 1);
	cert.nnames = 2;
	cert.names[1] = cert.names[0];
	strcpy(cert.names[0].text, "two.example");
	cr_expect(line_of(u, &cert) == 1);
	strcpy(cert.names[1].text, "three.example");
	cr_expect(line_of(u, &cert) == 5);
	strcpy(cert.sha256, PRINT);
	cr_expect(line_of(u, &cert) == 4);
	cert = with(RN_CERT_EMAIL, "Al@EXAMPLE.org");
	cr_expect(line_of(u, &cert) == 2);
	cert = with(RN_CERT_EMAIL, "al@example.org");
	cr_expect(line_of(u, &cert) == 0);
	cert = with(RN_CERT_URI, "urn:x");
	cr_expect(line_of(u, &cert) == 3);
	cert = with(RN_CERT_URI, "urn:X");
	cr_expect(line_of(u, &cert) == 0);
	cfg_tls_users_free(u);
}

Test(tls_users, a_name_counts_for_its_own_kind_only)
{
	struct cfg_tls_users *u = parse("dns:a.b x\nemail:a@b y\nuri:a:b z\n");
	struct rn_certificate cert = with(RN_CERT_URI, "a.b");

	cr_expect(line_of(u, &cert) == 0);
	cert = with(RN_CERT_DNS, "a@b");
	cr_expect(line_of(u, &cert) == 0);
	cert = with(RN_CERT_EMAIL, "a:b");
	cr_expect(line_of(u, &cert) == 0);
	cert = with(RN_CERT_DNS, "a.b.c");
	cr_expect(line_of(u, &cert) == 0);
	cert = (struct rn_certificate){ .nnames = 0 };
	cr_expect(line_of(u, &cert) == 0);
	cfg_tls_users_free(u);
	u = parse("* x");
	cr_expect(line_of(u, &cert) == 1);
	cfg_tls_users_free(u);
}

Test(tls_users, a_file_that_cannot_be_read_is_an_error)
{
	char path[] = "/tmp/ringnfs-tls-users-XXXXXX";
	struct cfg_tls_users *users;
	struct cfg_diags diags;
	const int fd = mkstemp(path);

	cr_assert(fd >= 0 && write(fd, "* a", 3) == 3);
	close(fd);
	cfg_diags_init(&diags);
	cr_expect(cfg_tls_users_load(path, &diags, &users) == 0 && users->n == 1);
	cfg_tls_users_free(users);
	unlink(path);
	cr_expect(cfg_tls_users_load(path, &diags, &users) == -EINVAL && !users);
	cr_assert(diags.n == 1);
	cr_expect(strstr(diags.items[0].text, "cannot be read: No such file or directory"));
	cfg_diags_free(&diags);
}
