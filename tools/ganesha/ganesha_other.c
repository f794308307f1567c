/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ganesha/ganesha_other.h"

#include <string.h>
#include <strings.h>

#include "lib/util.h"
#include "tools/ganesha/ganesha_rights.h"

#define MAX_IO "not by export here; for all: max_io in [nfs3] and [nfs4] of ringnfs.conf"
#define UNNEEDED "nothing of that kind is needed here"

/* The text of a setting that has no counterpart of its own. Its mark keeps "of ringnfs.conf" from being written behind it. */
#define NOT_ALONE(text) "!" text

/* A parameter, and its counterpart. Without a text it is dealt with elsewhere. */
struct other {
	const char *name, *text;
};

static const struct other of_export[] = {
	{ "Attr_Expiration_Time", UNNEEDED },
	{ "CLIENT", NULL },
	{ "Disable_ACL", NULL },
	{ "DisableReaddirPlus", NULL },
	{ "Export_Id", NULL },
	{ "FSAL", NULL },
	{ "Filesystem_Id", "the file system's UUID, or fsid=, identifies it here" },
	{ "MaxOffsetRead", UNNEEDED },
	{ "MaxOffsetWrite", UNNEEDED },
	{ "MaxRead", MAX_IO },
	{ "MaxWrite", MAX_IO },
	{ "Path", NULL },
	{ "PrefRead", MAX_IO },
	{ "PrefReaddir", UNNEEDED },
	{ "PrefWrite", MAX_IO },
	{ "Pseudo", NULL },
	{ "Read_Access_Check_Policy", UNNEEDED },
	{ "Security_Label", NULL },
	{ "Tag", "NFSv3 clients mount the path in the place of that" },
	{ "Trust_Readdir_Negative_Cache", UNNEEDED },
	{ "UseCookieVerifier", UNNEEDED },
};

static const struct other of_client[] = { { "Clients", NULL } };

/* Settings of other blocks, with their places in ringnfs.conf. */
static const struct other settings[] = {
	{ "Allow_Numeric_Owners", "idmap in [nfs4]" },
	{ "Bind_addr", "listen in [tcp] and [rdma]" },
	{ "Components", "log_level in [server]" },
	{ "Default_Log_Level", "log_level in [server]" },
	{ "Delegations", "delegations in [nfs4]" },
	{ "Enable_NFSACL3", "the option no_acl of exports" },
	{ "Enable_NLM", NOT_ALONE("locks are served with NFSv3, as enabled in [nfs3] says") },
	{ "Enable_RQUOTA", NOT_ALONE("quotas are shown with NFSv3, as enabled in [nfs3] says") },
	{ "Enable_UDP", "enabled in [udp]" },
	{ "Entries_HWMark", "max_fds in [server]" },
	{ "Grace_Period", "grace_time in [nfs4]" },
	{ "KeytabPath", "keytab in [gss]" },
	{ "Lease_Lifetime", "lease_time in [nfs4]" },
	{ "MNT_Port", "mount_port in [tcp]" },
	{ "Manage_Gids", "manage_gids in [nfs3] and [nfs4]" },
	{ "Manage_Gids_Expiration", "manage_gids in [nfs3] and [nfs4]" },
	{ "Minor_Versions", "minor_min and minor_max in [nfs4]" },
	{ "NFS_Port", "port in [tcp]" },
	{ "NFS_Protocols", "enabled in [nfs3] and [nfs4]" },
	{ "NFS_RDMA_Port", "port in [rdma]" },
	{ "NLM_Port", NOT_ALONE("locks of NFSv3 are served at port in [tcp]") },
	{ "Only_Numeric_Owners", "idmap in [nfs4]" },
	{ "Protocols", "enabled in [nfs3] and [nfs4]" },
	{ "Recovery_Backend", "client records are in state_dir in [server]" },
	{ "RecoveryBackend", "client records are in state_dir in [server]" },
	{ "Rquota_Port", "rquota_port in [tcp]" },
	{ "mount_path_pseudo", NOT_ALONE("NFSv3 clients mount the Path here, never the Pseudo") },
};

/* Blocks of nfs-ganesha that do not tell who may use an export. */
static const char *const known_blocks[] = {
	"9P",
	"_9P",
	"CACHEINODE",
	"CEPH",
	"DIRECTORY_SERVICES",
	"DS",
	"FSAL",
	"FSAL_LIST",
	"GLUSTER",
	"GPFS",
	"KVSFS",
	"LIZARDFS",
	"LOG",
	"LUSTRE",
	"MDCACHE",
	"MEM",
	"MONITORING",
	"NFSV4",
	"NFS_CORE_PARAM",
	"NFS_IP_NAME",
	"NFS_KRB5",
	"NULL",
	"PROXY",
	"PROXY_V3",
	"PROXY_V4",
	"PT",
	"QOS",
	"RADOS_KV",
	"RADOS_URLS",
	"RGW",
	"SAUNAFS",
	"VFS",
	"XFS",
	"ZFS",
};

static const struct other *ganesha_other_find(const struct other *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

/* False: a parameter is not known. It may have narrowed what its neighbours give. */
static bool comment(struct ganesha_said *said, const struct ganesha_item *block,
		    const struct other *rows, size_t n)
{
	bool good = true;

	for (const struct ganesha_item *item = block->first; item; item = item->next) {
		const struct other *row = ganesha_other_find(rows, n, item->name);

		if (row && row->text)
			ganesha_say(said, GANESHA_NOTE, item->line, "%s: %s", item->name,
				    row->text);
		if (row || ganesha_rights_has(item->name))
			continue;
		good = false;
		ganesha_say(said, GANESHA_ERROR, item->line,
			    "%s is not known in %s: correct its name, or leave it out if the "
			    "exports need nothing for it",
			    item->name, block->name);
	}
	return good;
}

/* True or false; anything else is wrong, which is said. Without the parameter it is false. */
static bool read_switch(struct ganesha_said *said, const struct ganesha_item *block,
			const char *name, bool *good)
{
	const struct ganesha_item *item = ganesha_find(block, name, NULL);
	bool value = false;

	if (!item || (item->n == 1 && !ganesha_find(block, name, item) &&
		      ganesha_boolean(item->value[0], &value)))
		return value;
	ganesha_say(said, GANESHA_ERROR, item->line, "%s: true or false is expected, once",
		    item->name);
	*good = false;
	return false;
}

static bool check_switches(struct ganesha_said *said, const struct ganesha_item *block)
{
	bool good = true;

	read_switch(said, block, "DisableReaddirPlus", &good);
	read_switch(said, block, "Security_Label", &good);
	if (read_switch(said, block, "Disable_ACL", &good)) {
		ganesha_say(said, GANESHA_ERROR, ganesha_find(block, "Disable_ACL", NULL)->line,
			    "Disable_ACL: ACLs of files count here, and may admit users whom a "
			    "file's mode keeps out: look for such files (getfacl -Rs), and leave "
			    "the parameter out");
		good = false;
	}
	return good;
}

bool ganesha_other_export(struct ganesha_said *said, const struct ganesha_item *block)
{
	const bool good = comment(said, block, of_export, rn_array_size(of_export));

	return check_switches(said, block) && good;
}

bool ganesha_other_client(struct ganesha_said *said, const struct ganesha_item *block)
{
	return comment(said, block, of_client, rn_array_size(of_client));
}

static bool ganesha_other_is_true(const struct ganesha_item *block, const char *name)
{
	const struct ganesha_item *item = ganesha_find(block, name, NULL);
	bool value = false;

	return item && item->n == 1 && ganesha_boolean(item->value[0], &value) && value;
}

void ganesha_other_options(const struct ganesha_item *block, FILE *out)
{
	if (ganesha_other_is_true(block, "DisableReaddirPlus"))
		fputs(",nordirplus", out);
	if (ganesha_other_is_true(block, "Security_Label"))
		fputs(",security_label", out);
}

/* One comment for each setting, or one for an empty block. */
static void comment_settings(struct ganesha_said *said, const struct ganesha_item *block)
{
	for (const struct ganesha_item *item = block->first; item; item = item->next) {
		const struct other *row =
			ganesha_other_find(settings, rn_array_size(settings), item->name);
		const bool alone = row && row->text[0] != '!';

		ganesha_say(said, GANESHA_NOTE, item->line, "%s: %s: %s%s", block->name, item->name,
			    !row    ? "left out: it has no counterpart here"
			    : alone ? row->text
				    : row->text + 1,
			    alone ? " of ringnfs.conf" : "");
	}
	if (!block->first)
		ganesha_say(said, GANESHA_NOTE, block->line,
			    "%s: no part of exports; see ringnfs.conf(5)", block->name);
}

/* False: the block's name is a wrong one of a block that tells who may use an export. */
static bool ganesha_block_check_name(struct ganesha_said *said, const struct ganesha_item *item)
{
	for (size_t i = 0; i < rn_array_size(known_blocks); i++)
		if (item->block && strcasecmp(item->name, known_blocks[i]) == 0)
			return true;
	ganesha_say(said, GANESHA_ERROR, item->line,
		    "%s is no block of nfs-ganesha, and left out: correct its name", item->name);
	return strncasecmp(item->name, "EXPORT", strlen("EXPORT")) != 0;
}

static bool comment_defaults(struct ganesha_said *said, const struct ganesha_item *tree,
			     const struct ganesha_item *item)
{
	const bool again = ganesha_find(tree, "EXPORT_DEFAULTS", item) != NULL;

	if (again)
		ganesha_say(
			said, GANESHA_ERROR, item->line,
			"there is another EXPORT_DEFAULTS, which is not read: make one of both");
	return ganesha_other_export(said, item) && !again;
}

bool ganesha_other_blocks(struct ganesha_said *said, const struct ganesha_item *tree)
{
	bool any = false, good = true;

	for (const struct ganesha_item *item = tree->first; item; item = item->next) {
		if (item->block && strcasecmp(item->name, "EXPORT") == 0)
			continue;
		any = true;
		if (item->name[0] == '%') {
			ganesha_say(said, GANESHA_ERROR, item->line,
				    "%s %s is not followed: put what is there in the place of this "
				    "line",
				    item->name, item->n ? item->value[0] : "");
		} else if (item->block && strcasecmp(item->name, "EXPORT_DEFAULTS") == 0) {
			good &= comment_defaults(said, tree, item);
		} else {
			good &= ganesha_block_check_name(said, item);
			comment_settings(said, item);
		}
	}
	if (any)
		fputc('\n', said->out);
	return good;
}
