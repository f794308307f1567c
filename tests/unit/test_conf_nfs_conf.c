/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs.conf(5) compared with the settings: values that differ are warned of, and only those. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/settings.h"
#include "lib/util.h"

static char dir[] = "/tmp/nfs_conf.XXXXXX";
static char path[40], more_dir[40], more[48];

static void write_file(const char *name, const char *text)
{
	FILE *out = fopen(name, "we");

	cr_assert(out && fputs(text, out) >= 0 && fclose(out) == 0);
}

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/nfs.conf", dir);
	snprintf(more_dir, sizeof(more_dir), "%s/nfs.conf.d", dir);
	snprintf(more, sizeof(more), "%s/a.conf", more_dir);
	cr_assert(mkdir(more_dir, 0700) == 0);
}

static void teardown(void)
{
	unlink(more);
	unlink(path);
	rmdir(more_dir);
	rmdir(dir);
}

/* All warnings about the file's text beside settings of ringnfs, in one string; the caller frees it. */
static char *compare(const char *text, const char *ours)
{
	struct cfg_settings settings;
	struct cfg_diags diags;
	char *said;
	size_t len;
	FILE *out = open_memstream(&said, &len);

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&settings) == 0);
	cr_assert(cfg_parse(&settings, "ringnfs.conf", ours, strlen(ours), &diags) == 0);
	write_file(path, text);
	cr_assert(cfg_compare_nfs_conf(&settings, path, &diags) == 0);
	cr_expect(diags.errors == 0 && diags.warnings == diags.n);
	cfg_diags_print(&diags, out);
	fclose(out);
	cfg_diags_free(&diags);
	cfg_free(&settings);
	return said;
}

static const struct {
	const char *text, *ours;
	const char *says; /* NULL: nothing */
} cases[] = {
	/* Debian 12 */
	{ "[mountd]\nmanage-gids=y\n", "", ":2: warning: [mountd] manage-gids=y, " },
	{ "[mountd]\nmanage-gids=y\n", "", "here nfs3.manage_gids is no: " },
	{ "[mountd]\nmanage-gids=y\n", "", "here nfs4.manage_gids is no: " },
	{ "[mountd]\nmanage-gids=y\n", "[nfs3]\nmanage_gids=yes\n", "here nfs4.manage_gids" },
	{ "[mountd]\nmanage-gids=y\n", "[nfs3]\nmanage_gids=no\n[nfs4]\nmanage_gids=yes\n", NULL },
	{ "[MountD]\n Manage-Gids = \"Yes\" \r\n", "", "nfs3.manage_gids is no" },
	{ "[mountd]\nmanage-gids=y\nmanage-gids=n\n", "", NULL },
	{ "[mountd]\nmanage-gids=perhaps\n", "", NULL },
	{ "[mountd]\n# manage-gids=y\n; manage-gids=y\n", "", NULL },
	{ "[nfsd]\nmanage-gids=y\n", "", NULL },
	{ "[mountd]\nport=892\n", "", "tcp.mount_port is 20048; set" },
	{ "[mountd]\nport=20048\n", "", NULL },
	{ "[mountd]\nport=0\n", "", NULL },
	{ "[nfsd]\nport=2050\n", "", "tcp.port is 2049" },
	{ "[nfsd]\nport=2050\n", "[tcp]\nport=3000\n", NULL },
	{ "[nfsd]\nhost=192.0.2.1\n", "", "tcp.listen is empty: without it all addresses" },
	{ "[nfsd]\nhost=192.0.2.1\n", "", "rdma.listen is empty" },
	{ "[nfsd]\nhost=a.example.org,b\n", "", "to a.example.org,b or" },
	{ "[nfsd]\nlease-time=90\ngrace-time=90\n", "", NULL },
	{ "[nfsd]\nlease-time=15\n", "",
	  "nfs4.lease_time is 90s; set nfs4.lease_time in "
	  "ringnfs.conf, to 15s or" },
	{ "[nfsd]\ngrace-time=120\n", "", "nfs4.grace_time is 90s" },
	{ "[nfsd]\nudp=y\n", "", "udp.nfs is no" },
	{ "[nfsd]\ntcp=n\n", "", "tcp.enabled is yes" },
	{ "[nfsd]\nvers2=y\n", "", "nfs2.enabled is no" },
	{ "[nfsd]\nvers3=n\n", "", "nfs3.enabled is yes" },
	{ "[nfsd]\nvers4=0\n", "", "nfs4.enabled is yes" },
	{ "[nfsd]\nvers3=y\nvers4=on\nvers4.0=y\nvers4.1=t\nvers4.2=1\n", "", NULL },
	{ "[nfsd]\nvers4.0=n\n", "", "nfs4.minor_min is 0" },
	{ "[nfsd]\nvers4.1=n\n", "", "nfs4.minor_max is 2" },
	{ "[nfsd]\nvers4.2=n\n", "", "nfs4.minor_max is 2" },
	{ "[nfsd]\nrdma=y\nrdma-port=20049\n", "", NULL },
	{ "[nfsd]\nrdma=n\n", "", "rdma.enabled is auto" },
	{ "[nfsd]\nrdma-port=2050\n", "", "rdma.port is 20049" },
	{ "[statd]\nport=662\n", "", "nlm.statd_port is 0" },
	{ "[exports]\nrootdir=/srv/root\n", "", "rootdir=/srv/root has no counterpart" },
	{ "[general]\npipefs-directory=/run/rpc_pipefs\n[nfsd]\nthreads=64\n", "", NULL },
	{ "no section\n[\n=\n[]\nmanage-gids\n", "", NULL },
	{ "\xef\xbb\xbf[mountd]\nport=892\n", "", "nfs.conf:2: warning: [mountd] port=892" },
	{ "include = nfs.conf\n[mountd]\nport=892\n", "", "tcp.mount_port" },
};

Test(conf_nfs_conf, what_differs_is_said, .init = setup, .fini = teardown)
{
	for (size_t i = 0; i < rn_array_size(cases); i++) {
		char *said = compare(cases[i].text, cases[i].ours);

		if (cases[i].says)
			cr_expect(strstr(said, cases[i].says), "%s said: %s", cases[i].text, said);
		else
			cr_expect_str_empty(said, "%s said: %s", cases[i].text, said);
		free(said);
	}
}

Test(conf_nfs_conf, files_of_the_folder_win, .init = setup, .fini = teardown)
{
	char *said;

	write_file(more, "[mountd]\nmanage-gids=n\nport=892\n");
	said = compare("[mountd]\nmanage-gids=y\n", "");
	cr_expect_not(strstr(said, "manage"));
	cr_expect(strstr(said, "/nfs.conf.d/a.conf:3: warning: [mountd] port=892"));
	free(said);
}

Test(conf_nfs_conf, an_included_file_is_named, .init = setup, .fini = teardown)
{
	char *said;

	write_file(more, "[mountd]\n");
	said = compare("include=nfs.conf.d/a.conf\ninclude=-missing\n[nfsd]\nudp=y\n", "");
	cr_expect(strstr(said, "/nfs.conf:4: warning: [nfsd] udp=y"));
	free(said);
}

Test(conf_nfs_conf, a_missing_file_is_none, .init = setup, .fini = teardown)
{
	struct cfg_settings settings;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(cfg_set_defaults(&settings) == 0);
	cr_expect(cfg_compare_nfs_conf(&settings, path, &diags) == 0);
	cr_expect(diags.n == 0);
	cfg_free(&settings);
	cfg_diags_free(&diags);
}
