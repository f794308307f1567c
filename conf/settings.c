/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/settings.h"

#include <errno.h>
#include <ini.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "conf/diag.h"
#include "conf/settings_schema.h"
#include "lib/host.h"
#include "lib/utf8.h"
#include "lib/util.h"

/* Most bytes of a file. */
enum { FILE_LIMIT = 1 << 20 };

int cfg_set_defaults(struct cfg_settings *settings)
{
	char wrong[CFG_TEXT_MAX];

	memset(settings, 0, sizeof(*settings));
	for (unsigned i = 0; i < cfg_n_rows; i++) {
		int rc = cfg_value_parse(&cfg_rows[i], settings, cfg_rows[i].def, wrong);

		if (rc) {
			cfg_free(settings);
			return rc;
		}
	}
	return 0;
}

void cfg_free(struct cfg_settings *settings)
{
	for (unsigned i = 0; i < cfg_n_rows; i++) {
		cfg_value_clear(&cfg_rows[i], settings);
		free(settings->origin[i].name);
		settings->origin[i] = (struct cfg_origin){ 0 };
	}
}

/* State of one parse: the text that inih reads by next_line(), and the settings that cfg_take_value()
 * fills from it. */
struct reader {
	struct cfg_settings *settings;
	struct cfg_diags *diags;
	const char *name;
	const char *text;
	size_t len;
	size_t off;
	unsigned line;
	int err;
	unsigned seen[CFG_MAX_ROWS]; /* line of each row's first value; 0 if none was seen */
};

/* Adds an error for the current line. fmt has exactly two %s; those not needed get "". */
static void cfg_report_error(struct reader *r, const char *fmt, const char *what, const char *best)
{
	cfg_diag_add(r->diags, (struct cfg_position){ r->name, r->line, 0 }, CFG_ERROR, fmt, what,
		     best);
}

/* True if inih may have the line; else the line is reported, and inih gets an empty one. */
static bool check_line(struct reader *r, const char *line, size_t len, int room)
{
	if (memchr(line, '\0', len)) {
		cfg_report_error(r, "a NUL octet: this is no text file%s%s", "", "");
		return false;
	}
	/* inih needs room for a line end and a terminator. */
	if (len + 3 > (size_t)room) {
		cfg_diag_add(r->diags, (struct cfg_position){ r->name, r->line, 0 }, CFG_ERROR,
			     "the line is too long: at most %d octets", room - 3);
		return false;
	}
	return true;
}

/* The reader function of inih: counts lines, and refuses those that inih would cut. */
static char *next_line(char *buf, int room, void *arg)
{
	struct reader *r = arg;
	const char *line = r->text + r->off;
	const char *end;
	size_t len;

	if (r->off >= r->len || room < 2)
		return NULL;
	end = memchr(line, '\n', r->len - r->off);
	len = end ? (size_t)(end - line) : r->len - r->off;
	r->off += len + (end != NULL);
	r->line++;
	/* inih takes a line with leading blanks for a continuation of the line before. */
	while (len && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (!check_line(r, line, len, room))
		len = 0;
	memcpy(buf, line, len);
	buf[len] = '\n';
	buf[len + 1] = '\0';
	return buf;
}

static const struct cfg_row *cfg_find_row(const char *section, const char *name)
{
	for (unsigned i = 0; i < cfg_n_rows; i++)
		if (!strcmp(section, cfg_rows[i].section) && !strcmp(name, cfg_rows[i].name))
			return &cfg_rows[i];
	return NULL;
}

static bool has_section(const char *section, struct cfg_suggest *suggest)
{
	for (unsigned i = 0; i < cfg_n_sections; i++) {
		if (!strcmp(section, cfg_sections[i].name))
			return true;
		cfg_suggest_try(suggest, cfg_sections[i].name);
	}
	return false;
}

/* Sections of nfs.conf(5), which configures the kernel's server, and the settings of ringnfs that
 * correspond to them. */
static const struct {
	const char *name;
	const char *here;
} nfs_conf_sections[] = {
	{ "nfsd",
	  "[server] threads, [tcp] port, [rdma] port, [nfs3] and [nfs4] enabled, [udp] nfs" },
	{ "mountd", "[tcp] mount_port, [nfs3] manage_gids, [nfs4] manage_gids" },
	{ "exportfs", "nowhere: the exports files are read by ringnfsd itself" },
	{ "exportd", "nowhere: the exports files are read by ringnfsd itself" },
	{ "lockd", "nowhere: locks of NFSv3 are on the ports of NFS" },
	{ "statd", "[nlm] statd, statd_port" },
	{ "nfsdcld", "[server] state_dir" },
	{ "nfsdcltrack", "[server] state_dir" },
	{ "gssd", "nowhere: it configures the client" },
	{ "svcgssd", "[gss] enabled, keytab, principal" },
	{ "sm-notify", "[nlm] statd_port: the server itself tells clients of a restart" },
	{ "nfsrahead", "nowhere: it configures the client" },
	{ "general", "nowhere" },
};

/* The names of all sections, as "a, b and c". */
static void list_sections(char text[CFG_TEXT_MAX])
{
	size_t len = 0;

	for (unsigned i = 0; i < cfg_n_sections && len < CFG_TEXT_MAX; i++) {
		const char *before = i + 1 == cfg_n_sections ? " and " : ", ";

		len += (size_t)snprintf(text + len, CFG_TEXT_MAX - len, "%s%s", i ? before : "",
					cfg_sections[i].name);
	}
}

/* True if the section is one of nfs.conf(5); it is then reported. */
static bool report_nfs_conf(struct reader *r, const char *section)
{
	for (size_t i = 0; i < rn_array_size(nfs_conf_sections); i++) {
		if (strcmp(section, nfs_conf_sections[i].name) != 0)
			continue;
		cfg_report_error(r,
				 "[%s] is a section of nfs.conf(5), which the kernel's server "
				 "reads; what it "
				 "sets is here: %s",
				 section, nfs_conf_sections[i].here);
		return true;
	}
	return false;
}

static void report_unknown(struct reader *r, const char *section, const char *name)
{
	struct cfg_suggest in_sections = { .word = section };
	struct cfg_suggest in_names = { .word = name };
	char sections[CFG_TEXT_MAX];

	if (!*section) {
		cfg_report_error(
			r,
			"\"%s\" is before the first section: write [server] or another above it%s",
			name, "");
		return;
	}
	if (!has_section(section, &in_sections)) {
		if (report_nfs_conf(r, section))
			return;
		list_sections(sections);
		if (in_sections.best)
			cfg_report_error(r, "unknown section [%s]: did you mean [%s]?", section,
					 in_sections.best);
		else
			cfg_report_error(r, "unknown section [%s]: there are %s", section,
					 sections);
		return;
	}
	for (unsigned i = 0; i < cfg_n_rows; i++)
		if (!strcmp(section, cfg_rows[i].section))
			cfg_suggest_try(&in_names, cfg_rows[i].name);
	if (in_names.best)
		cfg_report_error(r, "unknown key \"%s\": did you mean \"%s\"?", name,
				 in_names.best);
	else
		cfg_report_error(r, "unknown key \"%s\" in [%s]: ringnfs.conf(5) lists the keys",
				 name, section);
}

/* True if the value is to be taken: the first one of its key, or a further one of a list. The first
 * one replaces a list from earlier files. A second value of any other key is reported. */
static bool first_or_list(struct reader *r, const struct cfg_row *row)
{
	unsigned *seen = &r->seen[row - cfg_rows];

	if (!*seen) {
		*seen = r->line;
		if (cfg_is_list(row))
			cfg_value_clear(row, r->settings);
		return true;
	}
	if (cfg_is_list(row))
		return true;
	cfg_diag_add(r->diags, (struct cfg_position){ r->name, r->line, 0 }, CFG_ERROR,
		     "%s.%s is given twice, first in line %u: remove one", row->section, row->name,
		     *seen);
	return false;
}

/* Notes the position of the value that was taken last. */
static int note_origin(const struct reader *r, const struct cfg_row *row)
{
	struct cfg_origin *o = &r->settings->origin[row - cfg_rows];
	char *name = strdup(r->name);

	if (!name)
		return -ENOMEM;
	free(o->name);
	*o = (struct cfg_origin){ name, r->line };
	return 0;
}

/* The value handler of inih. 1 lets inih go on after an error too, so that all are reported. */
static int cfg_take_value(void *arg, const char *section, const char *name, const char *value)
{
	struct reader *r = arg;
	const struct cfg_row *row = cfg_find_row(section, name);
	char wrong[CFG_TEXT_MAX];
	int rc;

	if (!row) {
		report_unknown(r, section, name);
		return 1;
	}
	if (!first_or_list(r, row))
		return 1;
	rc = cfg_value_parse(row, r->settings, value, wrong);
	if (!rc)
		rc = note_origin(r, row);
	if (rc == -EINVAL)
		cfg_report_error(r, "%s%s", wrong, "");
	else if (rc)
		r->err = rc;
	return 1;
}

_Static_assert(sizeof(struct cfg_settings) < 16384, "settings stay small");

int cfg_parse(struct cfg_settings *settings, const char *name, const char *text, size_t len,
	      struct cfg_diags *diags)
{
	struct reader r = {
		.settings = settings,
		.diags = diags,
		.name = name,
		.text = text,
		.len = len,
		.off = rn_utf8_bom(text, len),
	};
	unsigned errors = diags->errors;
	int bad_line = ini_parse_stream(next_line, &r, cfg_take_value, &r);

	if (r.err)
		return r.err;
	if (bad_line < 0)
		return -ENOMEM;
	if (bad_line)
		cfg_diag_add(diags, (struct cfg_position){ name, (unsigned)bad_line, 0 }, CFG_ERROR,
			     "neither \"[section]\" nor \"key = value\"");
	return diags->errors > errors ? -EINVAL : 0;
}

static int cfg_read_text(const char *path, char *text, size_t size, size_t *len)
{
	FILE *in = fopen(path, "re");
	int rc = 0;

	if (!in)
		return -errno;
	errno = 0;
	*len = fread(text, 1, size, in);
	if (ferror(in))
		rc = errno ? -errno : -EIO;
	else if (*len == size)
		rc = -EFBIG;
	fclose(in);
	return rc;
}

int cfg_load(struct cfg_settings *settings, const char *path, struct cfg_diags *diags)
{
	char *text = malloc(FILE_LIMIT);
	size_t len = 0;
	int rc;

	if (!text)
		return -ENOMEM;
	rc = cfg_read_text(path, text, FILE_LIMIT, &len);
	if (rc)
		cfg_diag_add(diags, (struct cfg_position){ .file = path }, CFG_ERROR,
			     "cannot be read: %s", strerror(-rc));
	else
		rc = cfg_parse(settings, path, text, len, diags);
	free(text);
	return rc;
}

int cfg_set(struct cfg_settings *settings, const char *key, const char *value, const char *origin,
	    struct cfg_diags *diags)
{
	struct reader r = { .settings = settings, .diags = diags, .name = origin };
	unsigned errors = diags->errors;
	const char *dot = strchr(key, '.');
	char section[CFG_WORD_MAX];

	if (!dot || (size_t)(dot - key) >= sizeof(section)) {
		cfg_report_error(&r, "unknown key \"%s\": a key is written SECTION.NAME%s", key,
				 "");
		return -EINVAL;
	}
	memcpy(section, key, (size_t)(dot - key));
	section[dot - key] = '\0';
	cfg_take_value(&r, section, dot + 1, value);
	if (r.err)
		return r.err;
	return diags->errors > errors ? -EINVAL : 0;
}

/* Checks that a record can hold a WRITE and 4096 bytes of headers. */
static void check_record(const struct cfg_settings *settings, struct cfg_position at,
			 struct cfg_diags *diags)
{
	const struct cfg_nfs3 *v3 = &settings->nfs3;
	const struct cfg_nfs4 *v4 = &settings->nfs4;
	const bool is_v4 = v4->enabled && (!v3->enabled || v4->max_io > v3->max_io);
	const uint64_t need = (is_v4 ? v4->max_io : v3->max_io) + 4096;

	if (settings->tcp.enabled && settings->tcp.max_record < need)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "tcp.max_record is too small for a WRITE of %s.max_io: make it %lluK "
			     "or more",
			     is_v4 ? "nfs4" : "nfs3", (unsigned long long)need / 1024);
}

/* Place of the first key of [cluster] that was given, or NULL. */
static const struct cfg_origin *cluster_origin(const struct cfg_settings *settings)
{
	const struct cfg_origin *found = NULL;

	for (unsigned i = 0; i < cfg_n_rows && !found; i++)
		if (strcmp(cfg_rows[i].section, "cluster") == 0)
			found = cfg_origin_of(settings, cfg_rows[i].key);
	return found;
}

/* Checks the name of a cluster or of a member, which becomes part of a file's name. */
static void check_cluster_name(const char *key, const char *name, struct cfg_position at,
			       struct cfg_diags *diags)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (name[0] == '.' || name[strspn(name, allowed)] != '\0')
		cfg_diag_add(diags, at, CFG_ERROR,
			     "%s: \"%s\" is not right: a name has letters, digits, \".\", \"_\" "
			     "and \"-\", and does not begin with \".\"",
			     key, name);
}

/* True if NFS is served at that address. */
static bool cfg_listens_at(const struct cfg_addrs *listen, const uint8_t address[16])
{
	uint8_t one[16];

	for (unsigned i = 0; i < listen->n; i++) {
		rn_address_map((const struct sockaddr *)&listen->addrs[i], one);
		if (memcmp(one, address, sizeof(one)) == 0)
			return true;
	}
	return listen->n == 0;
}

static void check_cluster_address(const struct cfg_settings *settings, struct cfg_position at,
				  struct cfg_diags *diags)
{
	const struct cfg_addrs *a = &settings->cluster.address;
	char text[RN_ADDRESS_TEXT];
	uint8_t address[16];

	if (a->n > CFG_MEMBER_ADDRS)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "cluster.address: a member has at most %d addresses",
			     CFG_MEMBER_ADDRS);
	for (unsigned i = 0; i < a->n; i++) {
		rn_address_map((const struct sockaddr *)&a->addrs[i], address);
		rn_address_text(address, text);
		if (!rn_address_is_one_machine(address))
			cfg_diag_add(diags, at, CFG_ERROR,
				     "cluster.address: clients do not reach one machine by %s",
				     text);
		else if (settings->tcp.enabled && !cfg_listens_at(&settings->tcp.listen, address))
			cfg_diag_add(diags, at, CFG_ERROR,
				     "cluster.address: tcp.listen has others, but not %s", text);
	}
}

static void check_cluster_backend(const struct cfg_settings *settings, struct cfg_position at,
				  struct cfg_diags *diags)
{
	static const char *const rados[] = { "cluster.pool", "cluster.ceph_conf",
					     "cluster.ceph_user", "cluster.ceph_fs" };
	const struct cfg_cluster *c = &settings->cluster;

	if (c->backend == CFG_BACKEND_RADOS && !*c->pool)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "cluster.pool is missing: backend = rados keeps objects in a pool of "
			     "Ceph; name it, or say backend = file");
	for (size_t i = 0; i < rn_array_size(rados) && c->backend == CFG_BACKEND_FILE; i++) {
		const struct cfg_origin *origin = cfg_origin_of(settings, rados[i]);
		const struct cfg_position there = { .file = origin ? origin->name : NULL,
						    .line = origin ? origin->line : 0 };

		if (origin)
			cfg_diag_add(diags, there, CFG_ERROR,
				     "%s is for backend = rados only: say so, or leave it out",
				     rados[i]);
	}
}

#define CLUSTER_GRACE_MIN                                                                          \
	60u /* seconds: Linux's timeo, after which a client whose server was silent looks for it */

static void check_cluster_grace(const struct cfg_settings *settings, struct cfg_diags *diags)
{
	const struct cfg_origin *origin = cfg_origin_of(settings, "nfs4.grace_time");

	if (!origin || settings->nfs4.grace_time >= CLUSTER_GRACE_MIN)
		return;
	cfg_diag_add(diags, (struct cfg_position){ .file = origin->name, .line = origin->line },
		     CFG_WARNING,
		     "nfs4.grace_time of %" PRIu64 " is short for a member of a cluster: clients "
		     "that find their server again after %u s, as Linux's may, lose their locks; "
		     "leave it at 90, the default",
		     settings->nfs4.grace_time, CLUSTER_GRACE_MIN);
}

static void check_cluster(const struct cfg_settings *settings, struct cfg_diags *diags)
{
	const struct cfg_cluster *c = &settings->cluster;
	const struct cfg_origin *origin = cluster_origin(settings);
	const char *missing = !*c->name	      ? "name"
			      : !*c->instance ? "instance"
			      : !*c->path     ? "path"
					      : NULL;

	if (!origin ||
	    (!*c->name && !*c->instance && !*c->path && !c->address.n &&
	     c->backend == CFG_BACKEND_FILE && !cfg_origin_of(settings, "cluster.dead_time")))
		return;
	const struct cfg_position at = { .file = origin->name, .line = origin->line };

	if (missing)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "cluster.%s is missing: a member of a cluster has name, instance and "
			     "path; give all of them, or leave [cluster] out",
			     missing);
	check_cluster_name("cluster.name", c->name, at, diags);
	check_cluster_name("cluster.instance", c->instance, at, diags);
	check_cluster_address(settings, at, diags);
	check_cluster_name("cluster.pool", c->pool, at, diags);
	check_cluster_name("cluster.ceph_user", c->ceph_user, at, diags);
	check_cluster_name("cluster.ceph_fs", c->ceph_fs, at, diags);
	check_cluster_backend(settings, at, diags);
	check_cluster_grace(settings, diags);
	if (c->pnfs && (!settings->nfs3.enabled || settings->nfs4.minor_max < 1))
		cfg_diag_add(diags, at, CFG_ERROR,
			     "cluster.pnfs needs nfs3.enabled, as clients read and write at other "
			     "members by NFSv3, and nfs4.minor_max of 1 or 2");
	if (!settings->nfs4.enabled)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "[cluster] needs nfs4.enabled, whose records and grace period it "
			     "uses: set it to yes, or leave [cluster] out");
}

int cfg_check(const struct cfg_settings *settings, const char *origin, struct cfg_diags *diags)
{
	const struct cfg_position at = { .file = origin };
	unsigned errors = diags->errors;

	check_record(settings, at, diags);
	if (!settings->tcp.enabled && settings->rdma.enabled == CFG_NO)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "neither tcp.enabled nor rdma.enabled: enable one of them");
	if (!settings->nfs3.enabled && !settings->nfs4.enabled)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "neither nfs3.enabled nor nfs4.enabled: enable one of them");
	if (settings->nfs2.enabled && !settings->nfs3.enabled)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "nfs2.enabled needs nfs3.enabled, whose MOUNT and locks it uses: set "
			     "both to "
			     "yes, or nfs2.enabled to no");
	if (settings->nfs4.minor_min > settings->nfs4.minor_max)
		cfg_diag_add(diags, at, CFG_ERROR,
			     "nfs4.minor_min is above nfs4.minor_max: no minor version is left");
	check_cluster(settings, diags);
	return diags->errors > errors ? -EINVAL : 0;
}

void cfg_each(const struct cfg_settings *settings,
	      void (*each)(void *ctx, const struct cfg_shown *shown), void *ctx)
{
	for (unsigned s = 0; s < cfg_n_sections; s++) {
		for (unsigned i = 0; i < cfg_n_rows; i++) {
			const struct cfg_row *row = &cfg_rows[i];
			char value[CFG_VALUE_MAX];

			if (strcmp(row->section, cfg_sections[s].name) != 0)
				continue;
			cfg_value_print(row, settings, value);
			each(ctx, &(struct cfg_shown){ row->section, row->name, row->key, value,
						       &settings->origin[i] });
		}
	}
}

const struct cfg_origin *cfg_origin_of(const struct cfg_settings *settings, const char *key)
{
	for (unsigned i = 0; i < cfg_n_rows; i++)
		if (!strcmp(key, cfg_rows[i].key) && settings->origin[i].name)
			return &settings->origin[i];
	return NULL;
}

struct printer {
	FILE *out;
	const char *section; /* of the last line; NULL: none so far */
	bool origins;
};

/* On one line, whatever bytes the name of the file has. */
static void print_origin(FILE *out, const struct cfg_origin *o)
{
	fputs("# ", out);
	for (const char *c = o->name; *c; c++)
		fputc((unsigned char)*c < ' ' ? '?' : *c, out);
	if (o->line)
		fprintf(out, ":%u", o->line);
	fputc('\n', out);
}

static void print_one(void *ctx, const struct cfg_shown *s)
{
	struct printer *p = ctx;

	if (!p->section || strcmp(p->section, s->section) != 0)
		fprintf(p->out, "%s[%s]\n", p->section ? "\n" : "", s->section);
	p->section = s->section;
	if (p->origins && s->origin->name)
		print_origin(p->out, s->origin);
	fprintf(p->out, "%s =%s%s\n", s->name, *s->value ? " " : "", s->value);
}

void cfg_print(const struct cfg_settings *settings, FILE *out)
{
	cfg_each(settings, print_one, &(struct printer){ .out = out });
}

void cfg_print_origins(const struct cfg_settings *settings, FILE *out)
{
	cfg_each(settings, print_one, &(struct printer){ .out = out, .origins = true });
}
