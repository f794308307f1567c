/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/mount_list.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

void mnt_list_init(struct mnt_list *l)
{
	pthread_mutex_init(&l->lock, NULL);
	TAILQ_INIT(&l->rows);
	l->nrows = 0;
}

static void drop_row(struct mnt_list *l, struct mnt_row *row)
{
	TAILQ_REMOVE(&l->rows, row, link);
	l->nrows--;
	free(row);
}

void mnt_list_fini(struct mnt_list *l)
{
	struct mnt_row *row;

	while ((row = TAILQ_FIRST(&l->rows)))
		drop_row(l, row);
	pthread_mutex_destroy(&l->lock);
}

/* An IPv4 client has the same name through an IPv6 socket. */
static void host_name(const struct sockaddr *client, char out[MNT_HOST_SIZE])
{
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)client;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)client;
	const char *text = NULL;

	if (client->sa_family == AF_INET)
		text = inet_ntop(AF_INET, &v4->sin_addr, out, MNT_HOST_SIZE);
	else if (client->sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
		text = inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], out, MNT_HOST_SIZE);
	else if (client->sa_family == AF_INET6)
		text = inet_ntop(AF_INET6, &v6->sin6_addr, out, MNT_HOST_SIZE);
	if (!text)
		strcpy(out, "?");
}

static size_t path_len(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return len;
}

static struct mnt_row *mnt_list_find_row(struct mnt_list *l, const char *host, const char *path,
					 size_t len)
{
	struct mnt_row *row;

	TAILQ_FOREACH (row, &l->rows, link)
		if (strcmp(row->host, host) == 0 && strlen(row->path) == len &&
		    memcmp(row->path, path, len) == 0)
			return row;
	return NULL;
}

/* The row that a new one replaces: the same one, the host's oldest if it has too many, the oldest of all if the
 * list is full; or NULL. */
static struct mnt_row *row_to_drop(struct mnt_list *l, const struct mnt_row *row)
{
	struct mnt_row *old, *own = NULL;
	unsigned n = 0;

	TAILQ_FOREACH (old, &l->rows, link) {
		if (strcmp(old->host, row->host) != 0)
			continue;
		if (strcmp(old->path, row->path) == 0)
			return old;
		if (n++ == 0)
			own = old;
	}
	if (n >= MNT_HOST_ROWS)
		return own;
	return l->nrows >= MNT_LIST_ROWS ? TAILQ_FIRST(&l->rows) : NULL;
}

void mnt_list_add(struct mnt_list *l, const struct sockaddr *client, const char *path)
{
	size_t len = path_len(path);
	struct mnt_row *row = calloc(1, sizeof(*row) + len + 1);
	struct mnt_row *old;

	if (!row) /* a missing row is no reason to refuse a mount */
		return;
	host_name(client, row->host);
	memcpy(row->path, path, len);
	pthread_mutex_lock(&l->lock);
	old = row_to_drop(l, row);
	if (old)
		drop_row(l, old);
	TAILQ_INSERT_TAIL(&l->rows, row, link);
	l->nrows++;
	pthread_mutex_unlock(&l->lock);
}

void mnt_list_remove(struct mnt_list *l, const struct sockaddr *client, const char *path)
{
	char host[MNT_HOST_SIZE];
	struct mnt_row *row;

	host_name(client, host);
	pthread_mutex_lock(&l->lock);
	row = mnt_list_find_row(l, host, path, path_len(path));
	if (row)
		drop_row(l, row);
	pthread_mutex_unlock(&l->lock);
}

void mnt_list_remove_all(struct mnt_list *l, const struct sockaddr *client)
{
	char host[MNT_HOST_SIZE];
	struct mnt_row *row, *next;

	host_name(client, host);
	pthread_mutex_lock(&l->lock);
	for (row = TAILQ_FIRST(&l->rows); row; row = next) {
		next = TAILQ_NEXT(row, link);
		if (strcmp(row->host, host) == 0)
			drop_row(l, row);
	}
	pthread_mutex_unlock(&l->lock);
}

void mnt_list_walk(struct mnt_list *l, bool (*each)(void *arg, const struct mnt_row *row),
		   void *arg)
{
	struct mnt_row *row;

	pthread_mutex_lock(&l->lock);
	TAILQ_FOREACH (row, &l->rows, link)
		if (!each(arg, row))
			break;
	pthread_mutex_unlock(&l->lock);
}
