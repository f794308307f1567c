/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identity of this server, for clients that reach it by several addresses or after a restart: a
 * random name in the state directory, beside the client records. A server that gets the state
 * directory of another one takes over its identity.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "nfs4/client/client_table.h"
#include "nfs4/session/registry.h"

#define FILE_NAME "nfs4-server-id"
#define PREFIX "ringnfs-"
#define RANDOM_BYTES 12u

static bool server_id_is_valid(const char *id, size_t len)
{
	return len == sizeof(PREFIX) - 1 + 2 * RANDOM_BYTES &&
	       strncmp(id, PREFIX, sizeof(PREFIX) - 1) == 0 &&
	       strspn(id + sizeof(PREFIX) - 1, "0123456789abcdef") == 2 * RANDOM_BYTES;
}

static bool read_id(int dir, char id[SERVER_ID_LEN])
{
	const int fd = openat(dir, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, id, SERVER_ID_LEN - 1);
	close(fd);
	if (n < 0)
		n = 0;
	id[n] = '\0';
	if (n > 0 && id[n - 1] == '\n')
		id[--n] = '\0';
	return server_id_is_valid(id, (size_t)n);
}

/* Writes the file atomically, even if the power fails. */
static int write_id(int dir, const char *id)
{
	const int fd = openat(dir, FILE_NAME ".new",
			      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (dprintf(fd, "%s\n", id) < 0 || fsync(fd) < 0)
		rc = -errno;
	if (close(fd) < 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && renameat(dir, FILE_NAME ".new", dir, FILE_NAME) < 0)
		rc = -errno;
	if (rc == 0 && fsync(dir) < 0)
		rc = -errno;
	return rc;
}

static void make_id(char id[SERVER_ID_LEN])
{
	uint8_t bytes[RANDOM_BYTES];
	char hex[2 * RANDOM_BYTES + 1];

	randombytes_buf(bytes, sizeof(bytes));
	sodium_bin2hex(hex, sizeof(hex), bytes, sizeof(bytes));
	snprintf(id, SERVER_ID_LEN, PREFIX "%s", hex);
}

void nfs4_server_id(struct nfs4_clients *all)
{
	const struct nfs4_config *cfg = &all->srv->cfg;
	int dir = -1, rc;

	if (cfg->state_dir)
		dir = open(cfg->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && read_id(dir, all->server_id)) {
		close(dir);
		return;
	}
	make_id(all->server_id);
	if (!cfg->state_dir)
		return;
	rc = dir < 0 ? -errno : write_id(dir, all->server_id);
	if (rc < 0)
		rn_warn(cfg->log,
			"%s/" FILE_NAME ": %s: NFSv4 clients will take this server for another "
			"one after a restart",
			cfg->state_dir, strerror(-rc));
	if (dir >= 0)
		close(dir);
}
