/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/treap.h"

#include <stddef.h>

/* After what n sums up has changed. */
static void treap_changed(struct vfs_treap *n, vfs_treap_update update)
{
	for (; update && n; n = n->parent)
		update(n);
}

/* The link that leads to n. */
static struct vfs_treap **link_to(struct vfs_treap **root, struct vfs_treap *n)
{
	if (!n->parent)
		return root;
	return n->parent->left == n ? &n->parent->left : &n->parent->right;
}

/* c, a child of n, takes its place, and n becomes a child of c. */
static void rotate(struct vfs_treap **root, struct vfs_treap *n, struct vfs_treap *c,
		   vfs_treap_update update)
{
	struct vfs_treap **inner = n->left == c ? &c->right : &c->left;

	*link_to(root, n) = c;
	c->parent = n->parent;
	if (n->left == c)
		n->left = *inner;
	else
		n->right = *inner;
	if (*inner)
		(*inner)->parent = n;
	*inner = n;
	n->parent = c;
	if (update) {
		update(n);
		update(c);
	}
}

void vfs_treap_insert(struct vfs_treap **root, struct vfs_treap *n, struct vfs_treap *parent,
		      struct vfs_treap **at, uint32_t priority, vfs_treap_update update)
{
	*n = (struct vfs_treap){ .parent = parent, .priority = priority };
	*at = n;
	treap_changed(n, update);
	while (n->parent && n->parent->priority < n->priority)
		rotate(root, n->parent, n, update);
}

void vfs_treap_remove(struct vfs_treap **root, struct vfs_treap *n, vfs_treap_update update)
{
	struct vfs_treap *child, *parent;

	while (n->left && n->right)
		rotate(root, n, n->left->priority > n->right->priority ? n->left : n->right, NULL);
	child = n->left ? n->left : n->right;
	parent = n->parent;
	*link_to(root, n) = child;
	if (child)
		child->parent = parent;
	treap_changed(parent, update);
}

struct vfs_treap *vfs_treap_first(struct vfs_treap *root)
{
	while (root && root->left)
		root = root->left;
	return root;
}

struct vfs_treap *vfs_treap_last(struct vfs_treap *root)
{
	while (root && root->right)
		root = root->right;
	return root;
}

struct vfs_treap *vfs_treap_next(struct vfs_treap *n)
{
	if (n->right)
		return vfs_treap_first(n->right);
	while (n->parent && n->parent->right == n)
		n = n->parent;
	return n->parent;
}
