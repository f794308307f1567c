/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine and the server's process in a support bundle. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "config.h"
#include "ctl/bundle.h"
#include "lib/util.h"

#define RDMA "/sys/class/infiniband"
#define NO_RDMA "This machine has no RDMA device.\n"
#define LINE_MOST 4096

/* A text that is being written, as a file of the bundle. */
struct page {
	FILE *out;
	char *text;
	size_t len;
};

static bool bundle_page_begin(struct page *p)
{
	*p = (struct page){ 0 };
	p->out = open_memstream(&p->text, &p->len);
	return p->out;
}

static void bundle_page_end(struct page *p, struct bundle *b, const char *name)
{
	fclose(p->out);
	tar_add(&b->tar, name, p->text, p->len);
	free(p->text);
}

/* The first line of a small file, behind a name. */
static void bundle_put_line(FILE *out, const char *name, const char *path)
{
	char line[LINE_MOST];
	FILE *in = fopen(path, "re");

	if (in && fgets(line, sizeof(line), in)) {
		line[strcspn(line, "\n")] = '\0';
		fprintf(out, "%s: %s\n", name, line);
	}
	if (in)
		fclose(in);
}

static void put_distribution(FILE *out)
{
	char line[LINE_MOST];
	FILE *in = fopen("/etc/os-release", "re");

	while (in && fgets(line, sizeof(line), in))
		if (strncmp(line, "PRETTY_NAME=", 12) == 0)
			fprintf(out, "distribution: %s", line + 12);
	if (in)
		fclose(in);
}

static void add_machine(struct bundle *b)
{
	struct utsname u;
	struct page p;

	if (!bundle_page_begin(&p))
		return;
	fprintf(p.out, "ringnfsctl: %s\n", PACKAGE_VERSION);
	if (uname(&u) == 0)
		fprintf(p.out, "kernel: %s %s %s %s\n", u.sysname, u.release, u.version, u.machine);
	put_distribution(p.out);
	fprintf(p.out, "processors: %d\n", get_nprocs());
	bundle_put_line(p.out, "load", "/proc/loadavg");
	bundle_put_line(p.out, "memory", "/proc/meminfo");
	bundle_put_line(p.out, "pressure of memory", "/proc/pressure/memory");
	bundle_put_line(p.out, "pressure of input and output", "/proc/pressure/io");
	bundle_put_line(p.out, "security modules", "/sys/kernel/security/lsm");
	bundle_page_end(&p, b, "machine.txt");
}

static void put_port(FILE *out, const char *device, const char *port)
{
	static const char *const names[] = { "link_layer", "state", "phys_state", "rate" };
	char path[LINE_MOST], name[LINE_MOST];

	for (size_t i = 0; i < rn_array_size(names); i++) {
		snprintf(path, sizeof(path), RDMA "/%.255s/ports/%.255s/%s", device, port,
			 names[i]);
		snprintf(name, sizeof(name), "  port %.255s %s", port, names[i]);
		bundle_put_line(out, name, path);
	}
}

static void bundle_put_device(FILE *out, const char *device)
{
	static const char *const names[] = { "node_type", "fw_ver", "hca_type", "board_id" };
	char path[LINE_MOST], name[64];
	const struct dirent *e;

	fprintf(out, "%s\n", device);
	for (size_t i = 0; i < rn_array_size(names); i++) {
		snprintf(path, sizeof(path), RDMA "/%.255s/%s", device, names[i]);
		snprintf(name, sizeof(name), "  %s", names[i]);
		bundle_put_line(out, name, path);
	}
	snprintf(path, sizeof(path), RDMA "/%.255s/ports", device);
	DIR *ports = opendir(path);

	while (ports && (e = readdir(ports)))
		if (e->d_name[0] != '.')
			put_port(out, device, e->d_name);
	if (ports)
		closedir(ports);
}

static void bundle_add_rdma(struct bundle *b)
{
	const struct dirent *e;
	DIR *devices = opendir(RDMA);
	struct page p;

	if (!devices) {
		if (errno == ENOENT)
			tar_add(&b->tar, "rdma.txt", NO_RDMA, sizeof(NO_RDMA) - 1);
		else
			bundle_missing(b, "rdma.txt", RDMA ": %s", strerror(errno));
		return;
	}
	if (bundle_page_begin(&p)) {
		while ((e = readdir(devices)))
			if (e->d_name[0] != '.')
				bundle_put_device(p.out, e->d_name);
		bundle_page_end(&p, b, "rdma.txt");
	}
	closedir(devices);
}

/* True if path is base, or below it. */
static bool is_below(const char *path, const char *base)
{
	const size_t len = strcmp(base, "/") == 0 ? 0 : strlen(base);

	return strncmp(path, base, len) == 0 && (path[len] == '/' || !path[len]);
}

/* A mount that an export is on, or that lies below one. */
static bool concerns(const struct bundle *b, const char *mount)
{
	const json_t *export;
	size_t i;

	json_array_foreach(json_object_get(b->exports, "exports"), i, export)
	{
		const char *path = json_string_value(json_object_get(export, "path"));

		if (path && (is_below(path, mount) || is_below(mount, path)))
			return true;
	}
	return false;
}

/* The server may be in a mount namespace of its own. */
static void add_mounts(struct bundle *b)
{
	char path[64] = "/proc/self/mountinfo", line[LINE_MOST], mount[LINE_MOST];
	struct page p;

	if (b->pid)
		snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)b->pid);
	FILE *in = fopen(path, "re");

	if (!in) {
		bundle_missing(b, "mounts.txt", "%s: %s", path, strerror(errno));
		return;
	}
	if (bundle_page_begin(&p)) {
		while (fgets(line, sizeof(line), in))
			if (sscanf(line, "%*d %*d %*s %*s %4095s", mount) == 1 &&
			    concerns(b, mount))
				bundle_put_mount(p.out, line);
		bundle_page_end(&p, b, "mounts.txt");
	}
	fclose(in);
}

static void add_process(struct bundle *b)
{
	static const char *const names[] = { "limits", "status", "cgroup" };
	char path[64], name[64];

	for (size_t i = 0; b->pid && i < rn_array_size(names); i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)b->pid, names[i]);
		snprintf(name, sizeof(name), "process-%s.txt", names[i]);
		bundle_file(b, name, path);
	}
}

void bundle_host(struct bundle *b)
{
	add_machine(b);
	bundle_add_rdma(b);
	add_mounts(b);
	add_process(b);
}
