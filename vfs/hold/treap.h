/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A balanced binary tree whose shape is that of a treap: ordered by the caller's key, a heap by
 * random priorities. The caller finds the place of an insertion itself. Where nodes sum up what is
 * below them, update is called for each node whose children have changed, the lower ones first;
 * NULL where they do not. Nothing here allocates, recurses or locks.
 */
#ifndef RN_VFS_TREAP_H
#define RN_VFS_TREAP_H

#include <stdint.h>

struct vfs_treap {
	struct vfs_treap *left, *right, *parent;
	uint32_t priority;
};

typedef void (*vfs_treap_update)(struct vfs_treap *n);

/* Inserts n at *at, the empty link of parent where the caller's descent ended (or the root, with
 * parent NULL). priority: random. */
void vfs_treap_insert(struct vfs_treap **root, struct vfs_treap *n, struct vfs_treap *parent,
		      struct vfs_treap **at, uint32_t priority, vfs_treap_update update);
void vfs_treap_remove(struct vfs_treap **root, struct vfs_treap *n, vfs_treap_update update);

struct vfs_treap *vfs_treap_first(struct vfs_treap *root);
struct vfs_treap *vfs_treap_last(struct vfs_treap *root);
struct vfs_treap *vfs_treap_next(struct vfs_treap *n);

#endif
