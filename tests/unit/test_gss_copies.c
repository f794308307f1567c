/* SPDX-License-Identifier: BSD-2-Clause */
/* The copies of one context (gss/gss_copies.h), with a library that counts them and does nothing else. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "gss/gss_copies.h"
#include "gss/mech.h"

struct gss_mech_ctx {
	char unused;
};

static unsigned live;
/* Called while copies are made, as another thread would call; NULL: nobody does. */
static void (*meanwhile)(struct gss_copies *c);
static struct gss_copies copies;

static struct gss_mech_ctx *new_ctx(void)
{
	struct gss_mech_ctx *x = malloc(sizeof(*x));

	cr_assert_not_null(x);
	live++;
	return x;
}

void gss_mech_ctx_free(struct gss_mech_ctx *x)
{
	if (!x)
		return;
	live--;
	free(x);
}

bool gss_mech_ctx_copy(struct gss_mech_ctx *x, struct gss_mech_ctx **out, unsigned want,
		       unsigned *n)
{
	void (*other)(struct gss_copies * c) = meanwhile;

	cr_assert_not_null(x);
	meanwhile = NULL;
	if (other)
		other(&copies);
	for (*n = 0; *n < want; ++*n)
		out[*n] = new_ctx();
	return true;
}

static void grow_too(struct gss_copies *c)
{
	cr_expect(gss_copies_grow(c, GSS_COPIES_MOST));
}

Test(gss_copies, two_threads_that_make_copies_make_no_more_than_there_may_be)
{
	gss_copies_init(&copies, new_ctx());
	cr_expect(gss_copies_grow(&copies, 3));
	cr_expect_eq(live, 3);
	meanwhile = grow_too;
	cr_expect(gss_copies_grow(&copies, GSS_COPIES_MOST));
	cr_assert_eq(copies.n, GSS_COPIES_MOST);
	cr_assert_eq(copies.nidle, GSS_COPIES_MOST);
	cr_expect_eq(live, GSS_COPIES_MOST);
	gss_copies_fini(&copies);
	cr_expect_eq(live, 0);
}

Test(gss_copies, a_copy_in_use_goes_when_it_is_given_back)
{
	struct gss_mech_ctx *used;

	gss_copies_init(&copies, new_ctx());
	cr_expect(gss_copies_grow(&copies, 4));
	used = gss_copies_take(&copies);
	gss_copies_shrink(&copies);
	cr_expect_eq(live, 1);
	gss_copies_give(&copies, used);
	cr_expect_eq(live, 1, "the last one stays");
	gss_copies_fini(&copies);
	cr_expect_eq(live, 0);
}
