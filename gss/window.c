/* SPDX-License-Identifier: BSD-2-Clause */
/* The bit of a number is its remainder by the window's size. Numbers are above 0 from the first call that raises
 * `highest`; 0 itself has a bit like any other. */
#include "gss/window.h"

#include <string.h>

static void gss_window_clear(struct gss_window *w, uint32_t seq)
{
	w->used[seq % GSS_WINDOW / 64] &= ~(UINT64_C(1) << seq % 64);
}

static bool gss_window_set(struct gss_window *w, uint32_t seq)
{
	uint64_t *word = &w->used[seq % GSS_WINDOW / 64];
	const uint64_t bit = UINT64_C(1) << seq % 64;
	const bool was = *word & bit;

	*word |= bit;
	return !was;
}

bool gss_window_take(struct gss_window *w, uint32_t seq)
{
	if (seq > w->highest) {
		if (seq - w->highest >= GSS_WINDOW)
			memset(w->used, 0, sizeof(w->used));
		else
			for (uint32_t s = w->highest + 1; s <= seq; s++)
				gss_window_clear(w, s);
		w->highest = seq;
	} else if (w->highest - seq >= GSS_WINDOW) {
		return false;
	}
	return gss_window_set(w, seq);
}
