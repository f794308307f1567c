/* SPDX-License-Identifier: BSD-2-Clause */
#include "nsm/nsm_records.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/saved_file.h"
#include "lib/util.h"

#define HEADER "ringnfs NLM hosts, format 1"
#define FILE_MAX (24u << 20)
#define RESERVE (64u << 10) /* of each file at least, bytes */

uint32_t nsm_next_state(uint32_t last)
{
	const uint32_t next = (last | 1) + (last & 1 ? 2 : 0);

	/* A signed integer on the wire. */
	return last >= INT32_MAX - 2 ? 1 : next;
}

void nsm_text_put(struct nsm_text *t, const char *text, size_t len)
{
	if (t->len + len > t->size && !t->failed) {
		const size_t size = rn_max(t->size * 2, t->len + len + 4096);
		char *data = realloc(t->data, size);

		t->failed = !data;
		if (data) {
			t->data = data;
			t->size = size;
		}
	}
	if (t->failed)
		return;
	memcpy(t->data + t->len, text, len);
	t->len += len;
}

void nsm_text_begin(struct nsm_text *t, uint32_t state)
{
	char line[80];

	nsm_text_put(t, line,
		     (size_t)snprintf(line, sizeof(line), HEADER "\nstate %" PRIu32 "\n", state));
}

void nsm_text_put_address(struct nsm_text *t, const struct rpc_address *a)
{
	char text[INET6_ADDRSTRLEN] = "", line[INET6_ADDRSTRLEN + 16];

	inet_ntop(AF_INET6, a->bytes, text, sizeof(text));
	nsm_text_put(t, line,
		     (size_t)snprintf(line, sizeof(line), " %s%%%" PRIu32, text, a->scope));
}

void nsm_text_put_bytes(struct nsm_text *t, const uint8_t *bytes, uint32_t len)
{
	static const char digits[] = "0123456789abcdef";

	nsm_text_put(t, " x", 2);
	for (uint32_t i = 0; i < len; i++) {
		const char hex[2] = { digits[bytes[i] >> 4], digits[bytes[i] & 15] };

		nsm_text_put(t, hex, 2);
	}
}

void nsm_text_add(struct nsm_text *t, const struct nsm_peer *host)
{
	nsm_text_put(t, "host", 4);
	nsm_text_put_address(t, &host->addr);
	nsm_text_put_address(t, &host->local);
	nsm_text_put_bytes(t, host->name, host->name_len);
	nsm_text_put(t, "\n", 1);
}

void nsm_text_end(struct nsm_text *t, unsigned hosts)
{
	char line[32];

	nsm_text_put(t, line, (size_t)snprintf(line, sizeof(line), "end %u\n", hosts));
}

void nsm_text_free(struct nsm_text *t)
{
	free(t->data);
	*t = (struct nsm_text){ .data = NULL };
}

bool nsm_read_number(const char *text, uint32_t *out)
{
	char *end;

	if (!text)
		return false;
	errno = 0;
	const unsigned long v = strtoul(text, &end, 10);

	*out = (uint32_t)v;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && v <= UINT32_MAX;
}

bool nsm_read_address(char *text, struct rpc_address *out)
{
	char *scope = text ? strchr(text, '%') : NULL;

	if (!scope)
		return false;
	*scope = '\0';
	return inet_pton(AF_INET6, text, out->bytes) == 1 &&
	       nsm_read_number(scope + 1, &out->scope);
}

static int nsm_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool nsm_read_bytes(const char *text, uint8_t *out, uint32_t size, uint32_t *len)
{
	const size_t digits = text && text[0] == 'x' ? strlen(text + 1) : 1;

	if (digits % 2 || digits / 2 > size)
		return false;
	for (size_t i = 0; i < digits / 2; i++) {
		const int high = nsm_hex_digit(text[1 + 2 * i]),
			  low = nsm_hex_digit(text[2 + 2 * i]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (uint8_t)(high << 4 | low);
	}
	*len = (uint32_t)(digits / 2);
	return true;
}

bool nsm_read_line(struct nsm_reader *r)
{
	const char *newline = memchr(r->at, '\n', (size_t)(r->end - r->at));
	const size_t len = newline ? (size_t)(newline - r->at) : sizeof(r->line);

	if (len >= sizeof(r->line) || memchr(r->at, '\0', len))
		return false;
	memcpy(r->line, r->at, len);
	r->line[len] = '\0';
	r->at = newline + 1;
	return true;
}

char *nsm_behind(char *line, const char *word)
{
	const size_t len = strlen(word);

	return strncmp(line, word, len) == 0 && line[len] == ' ' ? line + len + 1 : NULL;
}

static int read_host(char *text, int (*each)(void *ctx, const struct nsm_peer *host), void *ctx)
{
	uint8_t name[NSM_NAME_MAX];
	struct nsm_peer host = { .name = name };
	char *save = NULL, *addr = strtok_r(text, " ", &save), *local = strtok_r(NULL, " ", &save);
	const char *hex = strtok_r(NULL, " ", &save);

	if (!nsm_read_address(addr, &host.addr) || !nsm_read_address(local, &host.local) ||
	    !nsm_read_bytes(hex, name, sizeof(name), &host.name_len) || strtok_r(NULL, " ", &save))
		return -EINVAL;
	return each(ctx, &host);
}

int nsm_text_read(const char *data, size_t len, uint32_t *state,
		  int (*each)(void *ctx, const struct nsm_peer *host), void *ctx)
{
	struct nsm_reader r = { .at = data, .end = data + len };
	uint32_t hosts = 0, said;
	char *text;
	int rc;

	if (!nsm_read_line(&r) || strcmp(r.line, HEADER) != 0)
		return -EINVAL;
	if (!nsm_read_line(&r) || !(text = nsm_behind(r.line, "state")) ||
	    !nsm_read_number(text, state))
		return -EINVAL;
	for (; nsm_read_line(&r) && (text = nsm_behind(r.line, "host")); hosts++) {
		rc = read_host(text, each, ctx);
		if (rc)
			return rc;
	}
	text = nsm_behind(r.line, "end");
	return text && nsm_read_number(text, &said) && said == hosts && r.at == r.end ? 0 : -EINVAL;
}

static int nsm_records_open_dir(const char *dir)
{
	const int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int nsm_records_read_file(int fd, struct nsm_text *out)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0 && out->len < FILE_MAX)
		nsm_text_put(out, chunk, (size_t)n);
	if (n < 0)
		return -errno;
	return out->failed ? -ENOMEM : n > 0 ? -EFBIG : 0;
}

int nsm_records_load(const char *dir, const char *name, struct nsm_text *out)
{
	const int dirfd = nsm_records_open_dir(dir);
	int fd, rc;

	if (dirfd < 0)
		return dirfd;
	fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	rc = fd < 0 ? -errno : nsm_records_read_file(fd, out);
	if (fd >= 0)
		close(fd);
	close(dirfd);
	if (rc)
		nsm_text_free(out);
	return rc;
}

static void nsm_records_reserve(int fd, size_t len)
{
	(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)rn_max(2 * len, (size_t)RESERVE));
}

static int nsm_records_write_file(int fd, const struct nsm_text *t)
{
	const int rc = rn_write_all(fd, t->data, t->len);

	if (rc)
		return rc;
	/* Reserved blocks stay when others fill the disk. Some file systems cannot reserve: then there are none. */
	if (ftruncate(fd, (off_t)t->len) < 0)
		return -errno;
	nsm_records_reserve(fd, t->len);
	return fsync(fd) < 0 ? -errno : 0;
}

/* Exchanges both files, so that each keeps its blocks, and the next text has them on a full disk. */
static int nsm_records_exchange(int dirfd, const char *tmp, const char *name)
{
	int fd;

	if (renameat2(dirfd, tmp, dirfd, name, RENAME_EXCHANGE) == 0)
		return 0;
	if (errno != ENOENT && errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (renameat(dirfd, tmp, dirfd, name) < 0)
		return -errno;
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		nsm_records_reserve(fd, 0);
		close(fd);
	}
	return 0;
}

int nsm_records_save(const char *dir, const char *name, const struct nsm_text *t)
{
	char tmp[64];
	const int dirfd = t->failed ? -ENOMEM : nsm_records_open_dir(dir);
	int fd, rc;

	if (dirfd < 0)
		return dirfd;
	snprintf(tmp, sizeof(tmp), "%s.new", name);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	rc = fd < 0 ? -errno : nsm_records_write_file(fd, t);
	if (fd >= 0)
		close(fd);
	if (!rc)
		rc = nsm_records_exchange(dirfd, tmp, name);
	if (!rc && fsync(dirfd) < 0)
		rc = -errno;
	close(dirfd);
	return rc;
}

int nsm_records_set_aside(const char *dir, const char *name)
{
	const int dirfd = nsm_records_open_dir(dir);
	char damaged[64];
	int rc;

	if (dirfd < 0)
		return dirfd;
	snprintf(damaged, sizeof(damaged), "%s.damaged", name);
	rc = renameat(dirfd, name, dirfd, damaged) < 0 ? -errno : 0;
	close(dirfd);
	return rc;
}
