/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl support-bundle */
#include "ctl/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctl/ctl.h"
#include "ctl/ctl_options.h"
#include "lib/util.h"

#define FILE_MOST (1u << 20) /* bytes of a file of /proc or /sys that are taken */

static const char about[] =
	"What is here\n"
	"  status, config, exports, clients, grace, log levels, metrics: answers of the server\n"
	"  log.txt: the last lines of its log\n"
	"  machine.txt, rdma.txt, mounts.txt, process-*: the machine, and the server's process\n"
	"\n"
	"What is left out\n"
	"  - secrets: the state directory, with the key that signs file handles, is not read;\n"
	"    ids of sessions, which let others use them, are taken out\n"
	"  - names of files: what clients have open, locked and delegated is here as numbers "
	"only,\n"
	"    unless --with-paths was given\n"
	"  - contents of files, and names of users\n"
	"Addresses and names of clients, paths of exports and of mounts below them, and the log as "
	"it\n"
	"is are here: look at it before you give it away.\n";

void bundle_missing(struct bundle *b, const char *name, const char *fmt, ...)
{
	va_list ap;

	if (!b->missing)
		return;
	fprintf(b->missing, "%s: ", name);
	va_start(ap, fmt);
	vfprintf(b->missing, fmt, ap);
	va_end(ap);
	fputc('\n', b->missing);
}

/* Files of /proc have no size that is known before. */
static ssize_t bundle_read_fd(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size && (n = read(fd, text + len, size - len)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

void bundle_file(struct bundle *b, const char *name, const char *path)
{
	char *text = malloc(FILE_MOST);
	const int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	const ssize_t len = fd < 0 ? -(text ? errno : ENOMEM) : bundle_read_fd(fd, text, FILE_MOST);

	if (len < 0)
		bundle_missing(b, name, "%s: %s", path, strerror((int)-len));
	else
		tar_add(&b->tar, name, text, (size_t)len);
	if (fd >= 0)
		close(fd);
	free(text);
}

/* The last part tells what the others are. */
static void add_about(struct bundle *b, char *const *missing, const size_t *missing_len)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out || fflush(b->missing) != 0) {
		b->tar.error = b->tar.error ? b->tar.error : -ENOMEM;
		return;
	}
	fputs(about, out);
	if (*missing_len)
		fprintf(out, "\nWhat could not be had\n%s", *missing);
	fclose(out);
	tar_add(&b->tar, "README.txt", text, len);
	free(text);
}

static int bundle_fill(struct bundle *b, bool with_paths)
{
	char *missing = NULL;
	size_t missing_len = 0;

	b->missing = open_memstream(&missing, &missing_len);
	if (!b->missing) {
		tar_close(&b->tar);
		return -ENOMEM;
	}
	bundle_server(b, with_paths);
	bundle_host(b);
	bundle_log(b);
	json_decref(b->exports);
	add_about(b, &missing, &missing_len);
	fclose(b->missing);
	if (missing_len)
		fprintf(stderr, "ringnfsctl: not all of it could be had:\n%s", missing);
	free(missing);
	return tar_close(&b->tar);
}

static int bundle_make(const struct ctl *ctl, const char *output, const char *folder,
		       bool with_paths)
{
	struct bundle b = { .socket = ctl->socket };
	int rc = tar_open(&b.tar, output, folder);

	if (!rc) {
		rc = bundle_fill(&b, with_paths);
		if (rc)
			unlink(output);
	}
	if (!rc) {
		printf("%s\n", output);
		return CTL_DONE;
	}
	fprintf(stderr, "ringnfsctl: %s: %s%s\n", output, strerror(-rc),
		rc == -EEXIST ? "; nothing is overwritten" : "");
	return CTL_REFUSED;
}

int ctl_support_bundle(const struct ctl *ctl, int argc, char **argv)
{
	const char *output = NULL;
	bool with_paths = false;
	const struct ctl_option options[] = { { "output", &output, NULL },
					      { "with-paths", NULL, &with_paths } };
	const int left = ctl_options(options, rn_array_size(options), argc, argv);
	char folder[64], name[80];
	const time_t now = time(NULL);
	struct tm tm;

	if (left > 1)
		fprintf(stderr, "ringnfsctl: support-bundle takes options only, and not '%s'\n",
			argv[1]);
	if (left != 1)
		return CTL_USAGE;
	localtime_r(&now, &tm);
	strftime(folder, sizeof(folder), "ringnfs-support-%Y%m%d-%H%M%S", &tm);
	snprintf(name, sizeof(name), "%s.tar", folder);
	return bundle_make(ctl, output ? output : name, folder, with_paths);
}
