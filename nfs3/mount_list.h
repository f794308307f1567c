/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of mounts for MOUNT's DUMP: clients and the directories they have asked for. It is
 * information for administrators, nothing depends on it, so it is kept in memory and bounded: the
 * oldest row is dropped when it is full, or that of a client which has too many. A client is an address without its port. Thread-safe.
 */
#ifndef RN_NFS3_MOUNT_LIST_H
#define RN_NFS3_MOUNT_LIST_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#define MNT_LIST_ROWS 4096u
#define MNT_HOST_ROWS 256u /* of one client, so that it does not push others out */
#define MNT_HOST_SIZE INET6_ADDRSTRLEN

struct mnt_row {
	TAILQ_ENTRY(mnt_row) link;
	char host[MNT_HOST_SIZE];
	char path[]; /* without trailing slashes */
};

struct mnt_list {
	pthread_mutex_t lock;	    /* a leaf: no other lock is taken under it */
	TAILQ_HEAD(, mnt_row) rows; /* oldest first */
	unsigned nrows;
};

void mnt_list_init(struct mnt_list *l);
void mnt_list_fini(struct mnt_list *l);

/* path is a NUL-terminated string of at most MNT_PATH_MAX bytes. A row that exists becomes the
 * youngest. */
void mnt_list_add(struct mnt_list *l, const struct sockaddr *client, const char *path);
void mnt_list_remove(struct mnt_list *l, const struct sockaddr *client, const char *path);
void mnt_list_remove_all(struct mnt_list *l, const struct sockaddr *client);

/* Calls each for every row, oldest first, under the lock; false stops. */
void mnt_list_walk(struct mnt_list *l, bool (*each)(void *arg, const struct mnt_row *row),
		   void *arg);

#endif
