/* SPDX-License-Identifier: BSD-2-Clause */
/* The screen of ringnfsctl top, by ncurses. One at a time. */
#ifndef RN_CTL_TOP_SCREEN_H
#define RN_CTL_TOP_SCREEN_H

#include <stdbool.h>
#include <time.h>

#include "ctl/top_rows.h"

/* Contents of the screen. */
struct top_view {
	const struct top_reading *now;
	const struct top_rows *rows; /* or NULL: there is one reading only */
	enum top_sort sort;
	bool help;
	unsigned first;	     /* row at the top of the table */
	const char *failure; /* why there is no newer reading, or NULL */
	time_t heard;	     /* time of day of the reading */
};

enum top_key { TOP_NO_KEY, TOP_QUIT, TOP_HELP, TOP_UP, TOP_DOWN, TOP_REFRESH, TOP_OTHER, TOP_SORT };

struct top_screen;

/* NULL: the terminal is of a kind that ncurses does not know. */
struct top_screen *top_screen_open(void);
void top_screen_draw(struct top_screen *s, const struct top_view *v);
/* Waits for a key, at most that long. With TOP_SORT, *sort is what it chooses. TOP_OTHER: draw again, for example because
 * the terminal has another size. */
enum top_key top_screen_key(struct top_screen *s, int milliseconds, enum top_sort *sort);
/* Rows that the table has room for. */
unsigned top_screen_room(const struct top_screen *s);
/* Gives the terminal back. NULL is allowed. */
void top_screen_close(struct top_screen *s);

#endif
