/* SPDX-License-Identifier: BSD-2-Clause */
/* Exports while they are read: their ids, the flavours of old gss/ lines, and the checks of a whole export. */
/*
 * Export ids. File handles contain them, so they must not change with a restart, a reload or the
 * order of lines.
 *
 * fsid=NUMBER is the id itself. Otherwise it is a hash of the UUID or the path with the top bit
 * set, which keeps it clear of the small numbers people choose. Two exports with one hash are told
 * apart by hashing again. That id depends on both exports being there, so there is a warning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/exports_private.h"
#include "lib/util.h"

static uint32_t fnv1a(uint32_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static uint32_t hashed_id(const struct exp_id_request *request, uint32_t round)
{
	uint32_t hash = fnv1a(2166136261u, &(uint8_t){ (uint8_t)round }, 1);

	if (request->has_uuid)
		hash = fnv1a(hash, request->uuid, 16);
	else
		hash = fnv1a(hash, request->path, strlen(request->path));
	return hash | 0x80000000u;
}

static struct exp_id_request *owner_of(struct exp_id_request *requests, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (requests[i].has_fsid && requests[i].id == id)
			return &requests[i];
	return NULL;
}

static struct exp_id_request *hash_owner(struct exp_id_request *requests, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (!requests[i].has_fsid && requests[i].id == id)
			return &requests[i];
	return NULL;
}

/* Two exports with one fsid: the first in the files keeps it. The other is known by its path, as if it had none, which is as good for
 * two directories of one file system, and safe for those of two. */
static void assign_given(struct exp_id_request *requests, size_t n, struct cfg_diags *diags)
{
	for (size_t i = 0; i < n; i++) {
		struct exp_id_request *request = &requests[i];
		struct exp_id_request *loser = request;
		struct exp_id_request *other;

		if (!request->has_fsid)
			continue;
		request->id = request->fsid;
		other = owner_of(requests, i, request->fsid);
		if (!other)
			continue;
		if (other->first->seq > request->first->seq)
			loser = other;
		loser->has_fsid = false;
		cfg_diag_add(diags, loser->first->at, CFG_WARNING,
			     "fsid=%u is already that of %s: it does not count for %s, which is "
			     "known by its path",
			     request->fsid, loser == request ? other->path : request->path,
			     loser->path);
	}
}

static void assign_hashed(struct exp_id_request *requests, size_t n, size_t i,
			  struct cfg_diags *diags)
{
	struct exp_id_request *request = &requests[i];
	uint32_t round = 0;

	for (;; round++) {
		uint32_t id = hashed_id(request, round);
		struct exp_id_request *other = owner_of(requests, n, id);

		if (!other)
			other = hash_owner(requests, i, id);
		if (!other) {
			request->id = id;
			return;
		}
		if (!round)
			cfg_diag_add(diags, request->first->at, CFG_WARNING,
				     "%s and %s have the same id by chance: give one of them "
				     "fsid=NUMBER, or its handles depend on the other",
				     request->path, other->path);
	}
}

static void exp_assign_ids(struct exp_id_request *requests, size_t n, struct cfg_diags *diags)
{
	assign_given(requests, n, diags);
	for (size_t i = 0; i < n; i++)
		if (!requests[i].has_fsid)
			assign_hashed(requests, n, i, diags);
}

static const struct {
	const char *client;
	uint32_t flavor;
} names[] = {
	{ "gss/krb5", EXP_AUTH_KRB5 },
	{ "gss/krb5i", EXP_AUTH_KRB5I },
	{ "gss/krb5p", EXP_AUTH_KRB5P },
};

uint32_t exp_gss_flavor(const char *client)
{
	for (unsigned i = 0; i < rn_array_size(names); i++) {
		if (!strcmp(client, names[i].client))
			return names[i].flavor;
	}
	return 0;
}

static void exp_opts_add_flavor(struct exp_opts *to, uint32_t flavor, uint32_t flags)
{
	uint32_t known;

	if (exp_opts_flavor(to, flavor, &known) || to->n_flavors == EXP_MAX_FLAVORS)
		return;
	to->flavors[to->n_flavors++] =
		(struct exp_flavor){ .flavor = flavor, .flags = flags & EXP_FLAVOR_FLAGS };
}

static void warn_of_anonymous(const struct exp_draft *gss, const struct exp_draft *other,
			      struct cfg_diags *diags)
{
	const struct exp_opts *a = &gss->options.opts, *b = &other->options.opts;

	if (a->anonuid != b->anonuid || a->anongid != b->anongid)
		cfg_diag_add(diags, gss->at, CFG_WARNING,
			     "%s: hosts of %s have its anonuid= and anongid= under %s too: write "
			     "sec= instead of %s",
			     gss->path, other->client.spec, gss->client.spec, gss->client.spec);
}

/* xprtsec= is not kept by flavour, so the stricter of both holds for all. */
static void join_transports(const struct exp_draft *gss, struct exp_draft *to,
			    struct cfg_diags *diags)
{
	const uint32_t left_out = gss->options.opts.flags & EXP_XPRTSEC;
	uint32_t *flags = &to->options.opts.flags;

	if ((*flags & EXP_XPRTSEC) != left_out)
		cfg_diag_add(diags, gss->at, CFG_WARNING,
			     "%s: xprtsec= of %s and that of %s hold for both: write sec= instead "
			     "of %s",
			     gss->path, gss->client.spec, to->client.spec, gss->client.spec);
	*flags |= left_out;
}

/* An identity that only a gss/ line gives is that of the export all the same. */
static void copy_identity(struct exp_opts *to, const struct exp_opts *from)
{
	if (from->has_fsid && !to->has_fsid) {
		to->has_fsid = true;
		to->fsid = from->fsid;
	}
	if (from->has_uuid && !to->has_uuid) {
		to->has_uuid = true;
		memcpy(to->uuid, from->uuid, sizeof(to->uuid));
	}
}

/* Adds the flavours of the gss/ lines to an ordinary line. */
static void extend(struct exp_draft *to, const struct exp_draft *drafts, size_t n,
		   struct cfg_diags *diags)
{
	const bool own_sec = (to->client.own | to->client.inherited) & EXP_GIVEN_SEC;

	for (size_t i = 0; i < n; i++) {
		const struct exp_draft *gss = &drafts[i];

		if (gss->client.gss)
			copy_identity(&to->options.opts, &gss->options.opts);
		if (!gss->client.gss || own_sec)
			continue;
		warn_of_anonymous(gss, to, diags);
		join_transports(gss, to, diags);
		exp_opts_add_flavor(&to->options.opts, gss->client.gss, gss->options.opts.flags);
	}
}

/* Makes the first gss/ line one for all hosts, under the flavours of all of them. */
static void unite(struct exp_draft *first, const struct exp_draft *drafts, size_t n,
		  struct cfg_diags *diags)
{
	struct exp_opts *opts = &first->options.opts;

	opts->n_flavors = 0;
	for (size_t i = 0; i < n; i++) {
		if (!drafts[i].client.gss)
			continue;
		copy_identity(opts, &drafts[i].options.opts);
		join_transports(&drafts[i], first, diags);
		exp_opts_add_flavor(opts, drafts[i].client.gss, drafts[i].options.opts.flags);
	}
	opts->flags = (opts->flags & ~(uint32_t)EXP_FLAVOR_FLAGS) | opts->flavors[0].flags;
}

/*
 * Joins the lines of one export. Other lines get the flavours of the gss/ lines, unless they have a sec= of
 * their own, which then holds alone, as in the kernel's server. The gss/ lines become one for all hosts that
 * no other line admits. Returns the number of drafts that are left.
 */
static size_t exp_gss_join(struct exp_draft *drafts, size_t n, struct cfg_diags *diags)
{
	bool world = false;
	size_t kept = 0;
	struct exp_draft *first = NULL;

	for (size_t i = 0; i < n; i++) {
		if (drafts[i].client.gss) {
			first = first ? first : &drafts[i];
			continue;
		}
		world |= drafts[i].client.kind == EXP_CLIENT_ANY;
		extend(&drafts[i], drafts, n, diags);
	}
	if (!first)
		return n;
	unite(first, drafts, n, diags);
	for (size_t i = 0; i < n; i++) {
		struct exp_draft moved = drafts[i];

		if (moved.client.gss && (world || &drafts[i] != first)) {
			exp_draft_free(&drafts[i]);
			continue;
		}
		memset(&drafts[i], 0, sizeof(drafts[i]));
		drafts[kept++] = moved;
	}
	return kept;
}

void exp_builder_init(struct exp_builder *builder)
{
	memset(builder, 0, sizeof(*builder));
}

void exp_draft_free(struct exp_draft *draft)
{
	free(draft->path);
	draft->path = NULL;
	exp_client_free(&draft->client);
	exp_options_free(&draft->options);
}

void exp_builder_free(struct exp_builder *builder)
{
	for (size_t i = 0; i < builder->n; i++)
		exp_draft_free(&builder->drafts[i]);
	for (size_t i = 0; i < builder->n_files; i++)
		free(builder->files[i]);
	free(builder->drafts);
	free(builder->files);
	exp_builder_init(builder);
}

const char *exp_builder_file(struct exp_builder *builder, const char *name)
{
	char **files = realloc(builder->files, (builder->n_files + 1) * sizeof(*files));

	if (!files)
		return NULL;
	builder->files = files;
	files[builder->n_files] = strdup(name);
	if (!files[builder->n_files])
		return NULL;
	return files[builder->n_files++];
}

int exp_builder_add(struct exp_builder *builder, struct exp_draft *draft)
{
	if (builder->n == builder->cap) {
		size_t cap = builder->cap ? builder->cap * 2 : 64;
		struct exp_draft *drafts = realloc(builder->drafts, cap * sizeof(*drafts));

		if (!drafts) {
			exp_draft_free(draft);
			return -ENOMEM;
		}
		builder->drafts = drafts;
		builder->cap = cap;
	}
	draft->seq = builder->n;
	builder->drafts[builder->n++] = *draft;
	return 0;
}

static int by_path_and_seq(const void *a, const void *b)
{
	const struct exp_draft *x = a;
	const struct exp_draft *y = b;
	int order = strcmp(x->path, y->path);

	return order ? order : (x->seq > y->seq) - (x->seq < y->seq);
}

/* Drafts [from, to) of one path. */
struct group {
	struct exp_draft *drafts;
	size_t n;
	bool bad;
};

/* Asks whether the file systems of all paths answer. Drafts with the same path follow one another. 0 or -ENOMEM. */
static int exp_builder_ask(struct exp_builder *b, const struct exp_load_opts *opts)
{
	const char **path = calloc(2 * b->n + 1, sizeof(*path));
	bool *answers = calloc(2 * b->n + 1, sizeof(*answers));
	const int rc = path && answers ? 0 : -ENOMEM;

	for (size_t i = 0; !rc && i < b->n; i++) {
		const struct exp_draft *d = &b->drafts[i];

		path[2 * i] = i > 0 && strcmp(d[-1].path, d->path) == 0 ? NULL : d->path;
		path[2 * i + 1] = d->options.mp == EXP_MP_PATH ? d->options.mp_path : NULL;
	}
	if (!rc)
		opts->ask(opts->ask_ctx, path, 2 * b->n, answers);
	for (size_t i = 0; !rc && i < b->n; i++)
		b->drafts[i].silent = !answers[2 * i] || !answers[2 * i + 1];
	free(path);
	free(answers);
	return rc;
}

/* The first of two lines for the same machine holds, as exportfs(8) has it. */
static void drop_duplicates(struct group *group, struct cfg_diags *diags)
{
	size_t kept = 0;

	for (size_t i = 0; i < group->n; i++) {
		struct exp_draft *draft = &group->drafts[i];
		size_t j = 0;

		while (j < kept && !exp_client_same(&group->drafts[j].client, &draft->client))
			j++;
		if (j < kept) {
			cfg_diag_add(diags, draft->at, CFG_WARNING,
				     "%s is exported to %s twice: the first, in %s line %u, holds",
				     draft->path, draft->client.spec, group->drafts[j].at.file,
				     group->drafts[j].client.line);
			exp_draft_free(draft);
		} else {
			struct exp_draft moved = *draft;

			memset(draft, 0, sizeof(*draft));
			group->drafts[kept++] = moved;
		}
	}
	group->n = kept;
}

/* True if every client's options have mp: something must be mounted first. */
static bool waits_for_mount(const struct group *group)
{
	for (size_t i = 0; i < group->n; i++) {
		const struct exp_draft *draft = &group->drafts[i];
		const char *mp =
			draft->options.mp == EXP_MP_PATH ? draft->options.mp_path : draft->path;

		if (draft->options.mp == EXP_MP_NONE || exp_check_mountpoint(mp) == 0)
			return false;
	}
	return true;
}

static void exp_group_check_path(struct group *group, struct cfg_diags *diags)
{
	const struct exp_draft *first = &group->drafts[0];
	struct stat st;
	int rc = stat(first->path, &st) ? errno : 0;

	if (rc == ENOENT && waits_for_mount(group)) {
		cfg_diag_add(diags, first->at, CFG_WARNING,
			     "%s is not there: it is served when it is mounted, as mp says",
			     first->path);
	} else if (rc) {
		cfg_diag_add(diags, first->at, CFG_ERROR,
			     "%s: %s; create the directory or correct "
			     "the path",
			     first->path, strerror(rc));
		group->bad = true;
	} else if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode)) {
		cfg_diag_add(diags, first->at, CFG_ERROR,
			     "%s is neither a directory nor a regular file: only these can be "
			     "exported",
			     first->path);
		group->bad = true;
	}
}

/* The option promises that nobody else changes the files. */
static void exp_group_check_promise(struct group *group, struct cfg_diags *diags)
{
	for (size_t i = 0; i < group->n; i++) {
		const struct exp_draft *draft = &group->drafts[i];

		if (!(draft->options.opts.flags & EXP_NFS_ONLY))
			continue;
		cfg_diag_add(diags, draft->at, CFG_ERROR,
			     "%s: nfs_only says that nobody but this server's clients changes the "
			     "directory, and other members of the cluster do: remove the option",
			     draft->path);
		group->bad = true;
	}
}

/* All clients of a path share its identity: of several fsid= the first counts. */
static void join_identity(struct group *group, struct exp_id_request *request,
			  struct cfg_diags *diags)
{
	*request = (struct exp_id_request){
		.first = &group->drafts[0],
		.path = group->drafts[0].path,
	};
	for (size_t i = 0; i < group->n; i++) {
		const struct exp_draft *draft = &group->drafts[i];
		const struct exp_opts *opts = &draft->options.opts;

		if ((opts->has_fsid && request->has_fsid && opts->fsid != request->fsid) ||
		    (opts->has_uuid && request->has_uuid &&
		     memcmp(opts->uuid, request->uuid, sizeof(opts->uuid)))) {
			cfg_diag_add(diags, draft->at, CFG_WARNING,
				     "%s has two different fsid=: the first counts for all its "
				     "machines",
				     draft->path);
			continue;
		}
		if (opts->has_fsid) {
			request->has_fsid = true;
			request->fsid = opts->fsid;
		}
		if (opts->has_uuid) {
			request->has_uuid = true;
			request->uuid = opts->uuid;
		}
	}
}

static void examine_group(struct group *group, const struct exp_load_opts *opts,
			  struct exp_id_request *request, struct cfg_diags *diags)
{
	bool silent = false;

	for (size_t i = 0; i < group->n; i++) {
		group->bad |= group->drafts[i].bad;
		silent |= group->drafts[i].silent;
	}
	if (opts->check_paths && !silent)
		exp_group_check_path(group, diags);
	if (opts->shared)
		exp_group_check_promise(group, diags);
	if (!group->bad)
		drop_duplicates(group, diags);
	if (!group->bad)
		group->n = exp_gss_join(group->drafts, group->n, diags);
	if (!group->bad)
		join_identity(group, request, diags);
	if (group->bad)
		cfg_diag_add(diags, group->drafts[0].at, CFG_NOTE,
			     "%s is not exported, because of the error", group->drafts[0].path);
}

/* Move a draft's strings and options into the table. */
static void settle_client(struct exp_client *client, struct exp_draft *draft,
			  const struct exp_export *export, const struct exp_id_request *request)
{
	*client = draft->client;
	client->opts = draft->options.opts;
	client->opts.has_fsid = request->has_fsid;
	client->opts.fsid = request->fsid;
	client->opts.has_uuid = request->has_uuid;
	if (request->has_uuid)
		memcpy(client->opts.uuid, request->uuid, sizeof(client->opts.uuid));
	if (draft->options.mp == EXP_MP_SELF)
		client->opts.mountpoint = export->path;
	else if (draft->options.mp == EXP_MP_PATH)
		client->opts.mountpoint = draft->options.mp_path;
	draft->client.spec = NULL;
	draft->client.name = NULL;
	draft->options.mp_path = NULL;
	client->opts.locations = draft->options.locations;
	draft->options.locations = NULL;
}

static int settle_export(struct exp_table *table, struct group *group,
			 const struct exp_id_request *request)
{
	struct exp_export *export = &table->exports[table->n_exports];

	export->clients = calloc(group->n, sizeof(*export->clients));
	if (!export->clients)
		return -ENOMEM;
	export->path = group->drafts[0].path;
	group->drafts[0].path = NULL;
	export->id = request->id;
	export->index = table->n_exports++;
	export->n_clients = (unsigned)group->n;
	for (size_t i = 0; i < group->n; i++)
		settle_client(&export->clients[i], &group->drafts[i], export, request);
	return 0;
}

/* Moves the path of a group in error into the table. */
static void refuse_group(struct exp_table *table, struct group *group)
{
	struct exp_draft *first = &group->drafts[0];

	table->refused[table->n_refused++] =
		(struct exp_refused){ first->path, first->at.file, first->at.line };
	first->path = NULL;
}

/* Cuts the sorted drafts into groups without errors, and their requests for ids. */
static size_t make_groups(struct exp_builder *builder, const struct exp_load_opts *opts,
			  struct exp_table *table, struct group *groups,
			  struct exp_id_request *requests, struct cfg_diags *diags)
{
	size_t n = 0;
	size_t end;

	for (size_t i = 0; i < builder->n; i = end) {
		struct group *group = &groups[n];

		for (end = i + 1; end < builder->n; end++)
			if (strcmp(builder->drafts[i].path, builder->drafts[end].path))
				break;
		*group = (struct group){ .drafts = builder->drafts + i, .n = end - i };
		examine_group(group, opts, &requests[n], diags);
		if (group->bad)
			refuse_group(table, group);
		else
			n++;
	}
	return n;
}

static int fill_table(struct exp_table *table, struct group *groups,
		      struct exp_id_request *requests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int rc = settle_export(table, &groups[i], &requests[i]);

		if (rc)
			return rc;
	}
	return exp_table_index(table);
}

/* The clients of the table name their files. */
static void take_files(struct exp_builder *builder, struct exp_table *table)
{
	table->files = builder->files;
	table->n_files = builder->n_files;
	builder->files = NULL;
	builder->n_files = 0;
}

int exp_builder_finish(struct exp_builder *builder, const struct exp_load_opts *opts,
		       struct cfg_diags *diags, struct exp_table **table)
{
	struct exp_table *made = exp_table_new(builder->n);
	struct group *groups = calloc(builder->n + 1, sizeof(*groups));
	struct exp_id_request *requests = calloc(builder->n + 1, sizeof(*requests));
	int rc = -ENOMEM;
	size_t n;

	if (builder->n)
		qsort(builder->drafts, builder->n, sizeof(*builder->drafts), by_path_and_seq);
	if (made && groups && requests)
		rc = opts->check_paths && opts->ask ? exp_builder_ask(builder, opts) : 0;
	if (!rc) {
		n = make_groups(builder, opts, made, groups, requests, diags);
		exp_assign_ids(requests, n, diags);
		rc = fill_table(made, groups, requests, n);
	}
	if (!rc)
		take_files(builder, made);
	free(groups);
	free(requests);
	if (rc) {
		exp_table_unref(made);
		return rc;
	}
	*table = made;
	return 0;
}
