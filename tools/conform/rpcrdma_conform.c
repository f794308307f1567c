/* SPDX-License-Identifier: BSD-2-Clause */
/* rpcrdma-conform: checks an NFS server's RPC-over-RDMA version 1, case by case. See the manual. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config.h"
#include "tools/conform/conform_gss.h"
#include "tools/conform/run.h"

enum { EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_CANNOT = 3 };

static const char help[] =
	"usage: rpcrdma-conform [options] HOST[:PORT] EXPORT\n"
	"  --list                list the cases and end\n"
	"  --only LIST           run these: numbers, ranges, ids or groups, separated by commas\n"
	"  --skip LIST           do not run these\n"
	"  --tap, --json         other output than text\n"
	"  --timeout SECONDS     for each case (10)\n"
	"  --inline SIZE         bytes of our Receive buffers, a multiple of 1024 (4096)\n"
	"  --mount-port PORT     ask for MOUNT on this TCP port\n"
	"  --handle HEX          the export's file handle: MOUNT is not asked\n"
	"  --v4-path PATH        the export as NFSv4 names it (EXPORT)\n"
	"  --uid ID, --gid ID    who calls (you)\n"
	"  --gss FLAVORS         Kerberos flavors of the export, such as krb5:krb5i:krb5p (none)\n"
	"  --principal NAME      the server's (nfs@HOST)\n"
	"  --client-keytab FILE  key of the caller under Kerberos (the ticket cache)\n"
	"  --help, --version\n"
	"Exit status: 0 no case failed, 1 some did, 2 bad usage, 3 the cases cannot run.\n";

struct args {
	struct cf_run run;
	struct cf_report report;
	const char *only, *skip;
	bool list;
	const char *principal, *keytab;
	char host[256];
};

enum {
	OPT_LIST = 256,
	OPT_ONLY,
	OPT_SKIP,
	OPT_TAP,
	OPT_JSON,
	OPT_TIMEOUT,
	OPT_INLINE,
	OPT_MOUNT_PORT,
	OPT_HANDLE,
	OPT_V4_PATH,
	OPT_UID,
	OPT_GID,
	OPT_GSS,
	OPT_PRINCIPAL,
	OPT_CLIENT_KEYTAB,
	OPT_VERSION
};

static const struct option options[] = {
	{ "list", no_argument, NULL, OPT_LIST },
	{ "only", required_argument, NULL, OPT_ONLY },
	{ "skip", required_argument, NULL, OPT_SKIP },
	{ "tap", no_argument, NULL, OPT_TAP },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "inline", required_argument, NULL, OPT_INLINE },
	{ "mount-port", required_argument, NULL, OPT_MOUNT_PORT },
	{ "handle", required_argument, NULL, OPT_HANDLE },
	{ "v4-path", required_argument, NULL, OPT_V4_PATH },
	{ "uid", required_argument, NULL, OPT_UID },
	{ "gid", required_argument, NULL, OPT_GID },
	{ "gss", required_argument, NULL, OPT_GSS },
	{ "principal", required_argument, NULL, OPT_PRINCIPAL },
	{ "client-keytab", required_argument, NULL, OPT_CLIENT_KEYTAB },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

static int conform_usage(const char *what, const char *arg)
{
	if (what)
		fprintf(stderr, "rpcrdma-conform: %s: %s\n", what, arg);
	fputs(help, stderr);
	return EXIT_USAGE;
}

static bool conform_parse_number(const char *s, unsigned long min, unsigned long max,
				 unsigned long *v)
{
	char *end;

	*v = strtoul(s, &end, 10);
	return *s >= '0' && *s <= '9' && !*end && *v >= min && *v <= max;
}

static bool conform_parse_handle(const char *s, struct cf_fh *fh)
{
	size_t n = strlen(s);

	if (n % 2 || n < 2 || n / 2 > CF_FH_MAX || strspn(s, "0123456789abcdefABCDEF") != n)
		return false;
	for (fh->len = 0; fh->len < n / 2; fh->len++) {
		char byte[3] = { s[2 * fh->len], s[2 * fh->len + 1], '\0' };
		fh->data[fh->len] = strtoul(byte, NULL, 16);
	}
	return true;
}

/* One option; false: its argument is bad. */
static bool conform_take_option(struct args *a, int c, const char *arg)
{
	unsigned long v = 0;
	bool good = true;

	switch (c) {
	case OPT_LIST:
		a->list = true;
		break;
	case OPT_ONLY:
		a->only = arg;
		break;
	case OPT_SKIP:
		a->skip = arg;
		break;
	case OPT_TAP:
		a->report.format = CF_TAP;
		break;
	case OPT_JSON:
		a->report.format = CF_JSON;
		break;
	case OPT_TIMEOUT:
		good = conform_parse_number(arg, 1, 3600, &v);
		a->run.timeout_ms = v * 1000;
		break;
	case OPT_INLINE:
		good = conform_parse_number(arg, CF_INLINE_MIN, CF_INLINE_MAX, &v) && v % 1024 == 0;
		a->run.inline_size = v;
		break;
	case OPT_MOUNT_PORT:
		good = conform_parse_number(arg, 1, 65535, &v);
		a->run.mount_port = arg;
		break;
	case OPT_HANDLE:
		good = conform_parse_handle(arg, &a->run.root);
		break;
	case OPT_V4_PATH:
		a->run.v4_path = arg;
		break;
	case OPT_UID:
		good = conform_parse_number(arg, 0, UINT32_MAX, &v);
		a->run.uid = v;
		break;
	case OPT_GID:
		good = conform_parse_number(arg, 0, UINT32_MAX, &v);
		a->run.gid = v;
		break;
	case OPT_GSS:
		a->run.gss_flavors = cf_gss_flavors(arg);
		good = a->run.gss_flavors != 0;
		break;
	case OPT_PRINCIPAL:
		a->principal = arg;
		break;
	case OPT_CLIENT_KEYTAB:
		a->keytab = arg;
		break;
	}
	return good;
}

/* HOST, HOST:PORT, [ADDRESS]:PORT or an IPv6 address. */
static bool split_host(struct args *a, const char *s)
{
	unsigned long v;

	if (strlen(s) >= sizeof(a->host))
		return false;
	strcpy(a->host, *s == '[' ? s + 1 : s);
	a->run.host = a->host;
	char *colon = strrchr(a->host, ':');
	char *end = *s == '[' ? strchr(a->host, ']') : NULL;
	if (*s == '[') {
		if (!end || (end[1] && end[1] != ':'))
			return false;
		colon = end[1] ? end + 1 : NULL;
		*end = '\0';
	} else if (colon && strchr(a->host, ':') != colon) {
		colon = NULL; /* an IPv6 address without a port */
	}
	if (colon) {
		*colon = '\0';
		a->run.port = colon + 1;
	}
	return *a->host && conform_parse_number(a->run.port, 1, 65535, &v);
}

static bool conform_case_wanted(const struct args *a, const struct cf_group *g, unsigned i)
{
	return cf_selected(a->only, g, i) && !(a->skip && cf_selected(a->skip, g, i));
}

static unsigned count_wanted(const struct args *a)
{
	unsigned n = 0;

	for (const struct cf_group *const *g = cf_groups; *g; g++)
		for (unsigned i = 0; i < (*g)->ncases; i++)
			n += conform_case_wanted(a, *g, i);
	return n;
}

/* Gets a ticket for the server, if Kerberos is asked for. */
static bool log_in(struct args *a)
{
	char why[600], usual[sizeof(a->host) + 4];

	if (!a->run.gss_flavors)
		return true;
	snprintf(usual, sizeof(usual), "nfs@%s", a->host);
	a->run.login =
		cf_login_new(a->principal ? a->principal : usual, a->keytab, why, sizeof(why));
	if (!a->run.login)
		fprintf(stderr, "rpcrdma-conform: %s\n", why);
	return a->run.login;
}

static int run_cases(struct args *a)
{
	char why[600];

	if (cf_run_set_up(&a->run, why, sizeof(why)) < 0) {
		fprintf(stderr, "rpcrdma-conform: %s\n", why);
		return EXIT_CANNOT;
	}
	cf_report_begin(&a->report, &a->run, count_wanted(a));
	for (const struct cf_group *const *g = cf_groups; *g; g++) {
		for (unsigned i = 0; i < (*g)->ncases; i++) {
			struct cf_test t;
			if (!conform_case_wanted(a, *g, i))
				continue;
			cf_run_case(&a->run, &(*g)->cases[i], (*g)->first + i, &t);
			cf_report_case(&a->report, *g, &t);
		}
	}
	cf_report_end(&a->report);
	if (cf_run_tear_down(&a->run, why, sizeof(why)) < 0) {
		fprintf(stderr, "rpcrdma-conform: %s/%s is left behind: %s\n", a->run.export_path,
			a->run.scratch_name, why);
		return EXIT_CANNOT;
	}
	return a->report.failed ? EXIT_FAILED : 0;
}

/* Registered memory counts as locked, connections as open files: raise both limits. */
static void raise_limits(void)
{
	static const int which[] = { RLIMIT_MEMLOCK, RLIMIT_NOFILE };
	struct rlimit l;

	for (int i = 0; i < 2; i++) {
		if (getrlimit(which[i], &l) < 0)
			continue;
		l.rlim_cur = l.rlim_max;
		setrlimit(which[i], &l);
		if (which[i] == RLIMIT_MEMLOCK) {
			l = (struct rlimit){ RLIM_INFINITY, RLIM_INFINITY };
			setrlimit(which[i], &l); /* with iWARP in software only root may do this */
		}
	}
}

int main(int argc, char **argv)
{
	struct args a = {
		.run = { .port = "20049",
			 .uid = geteuid(),
			 .gid = getegid(),
			 .inline_size = 4096,
			 .timeout_ms = 10000,
			 .next_xid = (uint32_t)getpid() << 16 },
		.report = { .out = stdout },
	};
	char word[128];
	int c;

	while ((c = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		if (c == 'h')
			return fputs(help, stdout) < 0;
		if (c == OPT_VERSION)
			return puts("rpcrdma-conform of " PACKAGE_STRING) < 0;
		if (c == '?' || !conform_take_option(&a, c, optarg))
			return conform_usage(c == '?' ? NULL : "bad argument",
					     optarg ? optarg : "");
	}
	if ((a.only && cf_select_check(a.only, word, sizeof(word))) ||
	    (a.skip && cf_select_check(a.skip, word, sizeof(word))))
		return conform_usage("there is no such case or group", word);
	if (a.list) {
		cf_report_list(stdout, a.only);
		return 0;
	}
	if (argc - optind != 2)
		return conform_usage(NULL, NULL);
	if (!split_host(&a, argv[optind]))
		return conform_usage("bad host or port", argv[optind]);
	a.run.export_path = argv[optind + 1];
	if (!a.run.v4_path)
		a.run.v4_path = a.run.export_path;
	signal(SIGPIPE, SIG_IGN);
	raise_limits();
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!log_in(&a))
		return EXIT_CANNOT;
	int status = run_cases(&a);
	cf_login_free(a.run.login);
	return status;
}
