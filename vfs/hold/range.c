/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/range.h"

#include <stddef.h>

#include "lib/util.h"

/* Brings the sums of a node up to date with those of its children. */
typedef void (*vfs_treap_update)(struct vfs_treap *n);

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

/* Inserts n at *at, the empty link of parent where the caller's descent ended (or the root, with
 * parent NULL). priority: random. */
static void vfs_treap_insert(struct vfs_treap **root, struct vfs_treap *n, struct vfs_treap *parent,
			     struct vfs_treap **at, uint32_t priority, vfs_treap_update update)
{
	*n = (struct vfs_treap){ .parent = parent, .priority = priority };
	*at = n;
	treap_changed(n, update);
	while (n->parent && n->parent->priority < n->priority)
		rotate(root, n->parent, n, update);
}

static void vfs_treap_remove(struct vfs_treap **root, struct vfs_treap *n, vfs_treap_update update)
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

static struct vfs_treap *vfs_treap_first(struct vfs_treap *root)
{
	while (root && root->left)
		root = root->left;
	return root;
}

static struct vfs_treap *vfs_treap_last(struct vfs_treap *root)
{
	while (root && root->right)
		root = root->right;
	return root;
}

static struct vfs_treap *vfs_treap_next(struct vfs_treap *n)
{
	if (n->right)
		return vfs_treap_first(n->right);
	while (n->parent && n->parent->right == n)
		n = n->parent;
	return n->parent;
}

static struct vfs_range *of_file(const struct vfs_treap *n)
{
	return n ? rn_container_of(n, struct vfs_range, by_file) : NULL;
}

static struct vfs_range *of_owner(const struct vfs_treap *n)
{
	return n ? rn_container_of(n, struct vfs_range, by_owner) : NULL;
}

/* Takes an end into r's sums. */
static void range_sum_up(struct vfs_range *r, const struct vfs_lock_owner *owner, uint64_t end)
{
	if (owner == r->top_owner) {
		if (end > r->top_end)
			r->top_end = end;
	} else if (end > r->top_end) {
		r->other_end = r->top_end;
		r->other_owner = r->top_owner;
		r->top_end = end;
		r->top_owner = owner;
	} else if (!r->other_owner || end > r->other_end) {
		r->other_end = end;
		r->other_owner = owner;
	}
}

static void sum_up_child(struct vfs_range *r, const struct vfs_range *child)
{
	if (!child)
		return;
	range_sum_up(r, child->top_owner, child->top_end);
	if (child->other_owner)
		range_sum_up(r, child->other_owner, child->other_end);
}

static void range_update(struct vfs_treap *n)
{
	struct vfs_range *r = of_file(n);

	r->top_end = r->end;
	r->top_owner = r->owner;
	r->other_owner = NULL;
	sum_up_child(r, of_file(n->left));
	sum_up_child(r, of_file(n->right));
}

/* xorshift64: only the shape of trees depends on it. */
static uint32_t next_priority(struct vfs_ranges *all)
{
	uint64_t x = all->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	all->random = x;
	return (uint32_t)(x >> 32);
}

static void insert_by_file(struct vfs_ranges *all, struct vfs_range *r)
{
	struct vfs_treap **root = &all->tree[r->type == VFS_LOCK_WRITE], **at = root;
	struct vfs_treap *parent = NULL;

	while (*at) {
		parent = *at;
		at = r->start < of_file(parent)->start ? &parent->left : &parent->right;
	}
	vfs_treap_insert(root, &r->by_file, parent, at, next_priority(all), range_update);
}

static void insert_by_owner(struct vfs_ranges *all, struct vfs_range *r)
{
	struct vfs_treap **at = &r->owner->ranges;
	struct vfs_treap *parent = NULL;

	while (*at) {
		parent = *at;
		at = r->start < of_owner(parent)->start ? &parent->left : &parent->right;
	}
	vfs_treap_insert(&r->owner->ranges, &r->by_owner, parent, at, next_priority(all), NULL);
}

void vfs_range_insert(struct vfs_ranges *all, struct vfs_range *r)
{
	insert_by_file(all, r);
	insert_by_owner(all, r);
	r->owner->count++;
	all->count++;
}

void vfs_range_remove(struct vfs_ranges *all, struct vfs_range *r)
{
	vfs_treap_remove(&all->tree[r->type == VFS_LOCK_WRITE], &r->by_file, range_update);
	vfs_treap_remove(&r->owner->ranges, &r->by_owner, NULL);
	r->owner->count--;
	all->count--;
}

/* True if a range below n that is not owner's ends at or after at. */
static bool reaches(const struct vfs_treap *n, const struct vfs_lock_owner *owner, uint64_t at)
{
	const struct vfs_range *r = of_file(n);

	if (!r)
		return false;
	if (r->top_owner != owner)
		return r->top_end >= at;
	return r->other_owner && r->other_end >= at;
}

/* The first of a tree that overlaps span and is another's. */
static struct vfs_range *first_overlap(struct vfs_treap *n, const struct vfs_lock_owner *owner,
				       const struct vfs_span *span)
{
	while (reaches(n, owner, span->start)) {
		struct vfs_range *r = of_file(n);

		if (reaches(n->left, owner, span->start)) {
			/* A range there that ends late enough starts before all others */
			n = n->left;
			continue;
		}
		if (r->start > span->end)
			return NULL;
		if (r->owner != owner && r->end >= span->start)
			return r;
		n = n->right;
	}
	return NULL;
}

struct vfs_range *vfs_range_conflict(const struct vfs_ranges *all,
				     const struct vfs_lock_owner *owner, enum vfs_lock_type type,
				     const struct vfs_span *span)
{
	struct vfs_range *w = first_overlap(all->tree[1], owner, span), *r = NULL;

	if (type == VFS_LOCK_WRITE)
		r = first_overlap(all->tree[0], owner, span);
	if (r && w)
		return r->start < w->start ? r : w;
	return r ? r : w;
}

/* The first of a tree that overlaps span, is another's and stays there. */
static struct vfs_range *first_staying(struct vfs_treap *n, const struct vfs_lock_owner *owner,
				       const struct vfs_span *span)
{
	struct vfs_range *r = first_overlap(n, owner, span);

	while (r && (r->owner == owner || r->end < span->start ||
		     vfs_holder_is_yielding(r->owner->holder))) {
		r = of_file(vfs_treap_next(&r->by_file));
		if (r && r->start > span->end)
			r = NULL;
	}
	return r;
}

struct vfs_range *vfs_range_lasting_conflict(const struct vfs_ranges *all,
					     const struct vfs_lock_owner *owner,
					     enum vfs_lock_type type, const struct vfs_span *span)
{
	struct vfs_range *first = vfs_range_conflict(all, owner, type, span), *r = NULL;

	if (!first || !vfs_holder_is_yielding(first->owner->holder))
		return first;
	if (type == VFS_LOCK_WRITE)
		r = first_staying(all->tree[0], owner, span);
	if (!r)
		r = first_staying(all->tree[1], owner, span);
	return r ? r : first;
}

struct vfs_range *vfs_range_own(const struct vfs_lock_owner *o, uint64_t at)
{
	struct vfs_treap *n = o->ranges;
	struct vfs_range *found = NULL;

	while (n) {
		struct vfs_range *r = of_owner(n);

		if (r->end >= at) {
			found = r;
			n = n->left;
		} else {
			n = n->right;
		}
	}
	return found;
}

struct vfs_range *vfs_range_own_next(struct vfs_range *r)
{
	return of_owner(vfs_treap_next(&r->by_owner));
}

uint64_t vfs_range_first_start(const struct vfs_ranges *all)
{
	uint64_t first = UINT64_MAX;

	for (unsigned i = 0; i < 2; i++) {
		const struct vfs_range *r = of_file(vfs_treap_first(all->tree[i]));

		if (r && r->start < first)
			first = r->start;
	}
	return first;
}

uint64_t vfs_range_last_start(const struct vfs_ranges *all)
{
	uint64_t last = 0;

	for (unsigned i = 0; i < 2; i++) {
		const struct vfs_range *r = of_file(vfs_treap_last(all->tree[i]));

		if (r && r->start > last)
			last = r->start;
	}
	return last;
}
