/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "lib/util.h"

enum { OPT_CHECK = 1000, OPT_PRINT, OPT_RELOAD, OPT_FORMATS, OPT_KEY };
static const char short_options[] = "c:FhV";

/* Options that set one key of ringnfs.conf; fixed is the value of an option without argument. */
static const struct key_option {
	const char *name;
	const char *key;
	const char *fixed;
	const char *help;
	bool path; /* relative to the working directory */
} key_options[] = {
	{ "exports", "server.exports_file", NULL, "FILE  exports(5) file (/etc/exports)", true },
	{ "exports-dir", "server.exports_dir", NULL, "DIR  further *.exports files", true },
	{ "strict", "server.strict_exports", "yes", "  refuse to start on any exports error",
	  false },
	{ "log-level", "server.log_level", NULL, "LEVEL  error, warning, notice, info, debug",
	  false },
	{ "state-dir", "server.state_dir", NULL, "DIR  where secrets and state are kept", true },
	{ "control-socket", "server.control_socket", NULL,
	  "PATH  socket for ringnfsctl(8), or '' for none", true },
	{ "port", "tcp.port", NULL, "N  TCP port of NFS (2049)", false },
	{ "mount-port", "tcp.mount_port", NULL, "N  TCP port of MOUNT (20048)", false },
	{ "rdma-port", "rdma.port", NULL, "N  RDMA port of NFS (20049)", false },
	{ "no-rdma", "rdma.enabled", "no", "  do not listen on RDMA devices", false },
	{ "no-rpcbind", "server.rpcbind", "no", "  do not register with rpcbind", false },
};

static const struct option plain_options[] = {
	{ "config", required_argument, NULL, 'c' },
	{ "foreground", no_argument, NULL, 'F' },
	{ "check-config", no_argument, NULL, OPT_CHECK },
	{ "print-config", no_argument, NULL, OPT_PRINT },
	{ "reload", no_argument, NULL, OPT_RELOAD },
	{ "image-formats", no_argument, NULL, OPT_FORMATS },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
};

#define N_PLAIN rn_array_size(plain_options)
#define N_KEYS rn_array_size(key_options)

static void options_print_help(void)
{
	printf("usage: ringnfsd [--config FILE] [OPTION ...]\n"
	       "Serves the directories of exports(5) over NFSv3 and NFSv4, RDMA and TCP.\n\n"
	       "  -c, --config FILE  settings (default " RN_SYSCONFDIR "/ringnfs.conf)\n");
	for (size_t i = 0; i < N_KEYS; i++)
		printf("  --%s %s\n", key_options[i].name, key_options[i].help);
	printf("  --check-config  check settings and exports, then exit\n"
	       "  --print-config  print the settings in force, then exit\n"
	       "  --reload  have the running ringnfsd read the exports again; fails if it refuses\n"
	       "  --image-formats  print which images of a server's state this version reads, then "
	       "exit\n"
	       "  -F, --foreground  accepted: ringnfsd never forks into the background\n"
	       "  -V, --version  print the version, then exit\n"
	       "  -h, --help  print this text, then exit\n");
}

static void build_long_options(struct option *all)
{
	memcpy(all, plain_options, sizeof(plain_options));
	for (size_t i = 0; i < N_KEYS; i++)
		all[N_PLAIN + i] = (struct option){
			.name = key_options[i].name,
			.has_arg = key_options[i].fixed ? no_argument : required_argument,
			.val = OPT_KEY + (int)i,
		};
	all[N_PLAIN + N_KEYS] = (struct option){ 0 };
}

static int load_file(struct cfg_settings *settings, const char *path, struct cfg_diags *diags)
{
	if (!path && access(RN_SYSCONFDIR "/ringnfs.conf", F_OK) < 0 && errno == ENOENT)
		return 0;
	return cfg_load(settings, path ? path : RN_SYSCONFDIR "/ringnfs.conf", diags);
}

/* A relative path is relative to the directory where the command was given. 0 or -errno. */
static int set_path(struct cfg_settings *settings, const struct key_option *o, const char *origin,
		    struct cfg_diags *diags)
{
	char *cwd = getcwd(NULL, 0), *path = NULL;
	int rc = cwd ? 0 : -errno;

	if (!rc && asprintf(&path, "%s/%s", cwd, optarg) < 0)
		rc = -ENOMEM;
	free(cwd);
	if (rc)
		return rc;
	rc = cfg_set(settings, o->key, path, origin, diags);
	free(path);
	return rc;
}

static int set_key(struct cfg_settings *settings, size_t i, struct cfg_diags *diags)
{
	const struct key_option *o = &key_options[i];
	char origin[64];

	snprintf(origin, sizeof(origin), "--%s", o->name);
	if (o->path && *optarg && *optarg != '/')
		return set_path(settings, o, origin, diags);
	return cfg_set(settings, o->key, o->fixed ? o->fixed : optarg, origin, diags);
}

enum options_action options_load(int argc, char **argv, struct cfg_settings *settings,
				 struct cfg_diags *diags)
{
	struct option all[N_PLAIN + N_KEYS + 1];
	enum options_action action = OPTIONS_RUN;
	const char *config = NULL;
	bool failed = false;
	int c;

	build_long_options(all);
	if (cfg_set_defaults(settings) < 0)
		return OPTIONS_FAILED;
	/* The file comes first whatever the order of the options: the command line wins. */
	while ((c = getopt_long(argc, argv, short_options, all, NULL)) != -1) {
		if (c == 'c')
			config = optarg;
		else if (c == OPT_CHECK)
			action = OPTIONS_CHECK_CONFIG;
		else if (c == OPT_PRINT)
			action = OPTIONS_PRINT_CONFIG;
		else if (c == OPT_RELOAD)
			action = OPTIONS_RELOAD;
		else if (c == OPT_FORMATS)
			action = OPTIONS_IMAGE_FORMATS;
		else if (c == 'h' || c == 'V') {
			c == 'h' ? options_print_help() : (void)puts(PACKAGE_STRING);
			return OPTIONS_DONE;
		} else if (c == '?')
			return OPTIONS_FAILED;
	}
	if (optind < argc) {
		fprintf(stderr, "ringnfsd: '%s' is not an option; see ringnfsd --help\n",
			argv[optind]);
		return OPTIONS_FAILED;
	}
	failed = load_file(settings, config, diags) < 0;
	for (optind = 1; (c = getopt_long(argc, argv, short_options, all, NULL)) != -1;)
		if (c >= OPT_KEY && set_key(settings, (size_t)(c - OPT_KEY), diags) < 0)
			failed = true;
	if (!failed && cfg_check(settings, config ? config : "settings", diags) < 0)
		failed = true;
	return failed ? OPTIONS_FAILED : action;
}
