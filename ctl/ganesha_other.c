/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/ganesha_other.h"

#include <string.h>
#include <strings.h>

#include "ctl/ganesha_rights.h"
#include "lib/util.h"

#define MAX_IO "not by export here; for all: max_io in [nfs3] and [nfs4] of ringnfs.conf"
#define UNNEEDED "nothing of that kind is needed here"

/* A parameter, and its counterpart. Without a text it is dealt with elsewhere. */
struct other {
	const char *name, *text;
};

static const struct other of_export[] = {
	{ "Attr_Expiration_Time", UNNEEDED },
	{ "CLIENT", NULL },
	{ "Disable_ACL", "ACLs of the file system always count here" },
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
	{ "Delegations", "delegations in [nfs4]" },
	{ "Entries_HWMark", "max_fds in [server]" },
	{ "Grace_Period", "grace_time in [nfs4]" },
	{ "Lease_Lifetime", "lease_time in [nfs4]" },
	{ "MNT_Port", "mount_port in [tcp]" },
	{ "Manage_Gids_Expiration", "manage_gids in [nfs3] and [nfs4]" },
	{ "Minor_Versions", "minor_min and minor_max in [nfs4]" },
	{ "NFS_Port", "port in [tcp]" },
	{ "NFS_Protocols", "enabled in [nfs3] and [nfs4]" },
	{ "NFS_RDMA_Port", "port in [rdma]" },
	{ "Only_Numeric_Owners", "idmap in [nfs4]" },
	{ "Protocols", "enabled in [nfs3] and [nfs4]" },
	{ "Recovery_Backend", "client records are in state_dir in [server]" },
	{ "RecoveryBackend", "client records are in state_dir in [server]" },
};

static const struct other *find(const struct other *rows, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(rows[i].name, name) == 0)
			return &rows[i];
	return NULL;
}

static void comment(struct ganesha_said *said, const struct ganesha_item *block,
		    const struct other *rows, size_t n)
{
	for (const struct ganesha_item *item = block->first; item; item = item->next) {
		const struct other *row = find(rows, n, item->name);

		if (row && row->text)
			ganesha_say(said, GANESHA_NOTE, item->line, "%s: %s", item->name,
				    row->text);
		else if (!row && !ganesha_rights_has(item->name))
			ganesha_say(said, GANESHA_WARNING, item->line,
				    "%s is not known in %s, and left out", item->name, block->name);
	}
}

void ganesha_other_export(struct ganesha_said *said, const struct ganesha_item *block)
{
	comment(said, block, of_export, rn_array_size(of_export));
}

void ganesha_other_client(struct ganesha_said *said, const struct ganesha_item *block)
{
	comment(said, block, of_client, rn_array_size(of_client));
}

static bool is_true(const struct ganesha_item *block, const char *name)
{
	const struct ganesha_item *item = ganesha_find(block, name, NULL);
	const char *value = item && item->n == 1 ? item->value[0] : "";

	return strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
	       strcasecmp(value, "on") == 0;
}

void ganesha_other_options(const struct ganesha_item *block, FILE *out)
{
	if (is_true(block, "DisableReaddirPlus"))
		fputs(",nordirplus", out);
	if (is_true(block, "Security_Label"))
		fputs(",security_label", out);
}

/* One comment for each setting that has a place, or one for the block. */
static void comment_settings(struct ganesha_said *said, const struct ganesha_item *block)
{
	bool any = false;

	for (const struct ganesha_item *item = block->first; item; item = item->next) {
		const struct other *row = find(settings, rn_array_size(settings), item->name);

		if (!row || item->block)
			continue;
		any = true;
		ganesha_say(said, GANESHA_NOTE, item->line, "%s: %s: %s of ringnfs.conf",
			    block->name, item->name, row->text);
	}
	if (!any)
		ganesha_say(said, GANESHA_NOTE, block->line,
			    "%s: no part of exports; see ringnfs.conf(5)", block->name);
}

void ganesha_other_blocks(struct ganesha_said *said, const struct ganesha_item *tree)
{
	bool any = false;

	for (const struct ganesha_item *item = tree->first; item; item = item->next) {
		const bool defaults = strcasecmp(item->name, "EXPORT_DEFAULTS") == 0;

		if (strcasecmp(item->name, "EXPORT") == 0)
			continue;
		any = true;
		if (item->name[0] == '%')
			ganesha_say(said, GANESHA_ERROR, item->line,
				    "%s %s is not followed: put what is there in the place of this "
				    "line",
				    item->name, item->n ? item->value[0] : "");
		else if (defaults)
			comment(said, item, of_export, rn_array_size(of_export));
		else
			comment_settings(said, item);
		if (defaults && ganesha_find(tree, "EXPORT_DEFAULTS", item))
			ganesha_say(said, GANESHA_ERROR, item->line,
				    "there is another EXPORT_DEFAULTS, which is not read: make one "
				    "of both");
	}
	if (any)
		fputc('\n', said->out);
}
