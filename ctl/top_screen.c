/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/top_screen.h"

#include <ctype.h>
#include <inttypes.h>
#include <ncurses.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/print.h"
#include "lib/util.h"

#define CTRL(c) ((c)&31)
#define CELL_MAX 32

enum { TABLE_LINE = 6, FOOT_LINES = 1, NAME_WIDTH = 26 };
enum { COLOUR_BAD = 1 };

struct top_screen {
	SCREEN *screen;
	attr_t bad; /* how what needs attention is shown */
};

static const struct {
	const char *title;
	int width;
	enum top_sort sort;
	int key;
	const char *help;
} columns[] = {
	{ "OPERATION", -NAME_WIDTH, TOP_BY_NAME, 'n', "by name" },
	{ "CALLS/S", 10, TOP_BY_CALLS, 'c', "by calls" },
	{ "P50", 10, TOP_BY_P50, '5', "by the median" },
	{ "P95", 10, TOP_BY_P95, '9', "by the 95th percentile" },
	{ "P99", 10, TOP_BY_P99, 'p', "by the 99th percentile" },
	{ "ERRORS/S", 10, TOP_BY_ERRORS, 'e', "by errors" },
};

static const char *print_quantile(double s, char text[CELL_MAX])
{
	if (s < 0)
		snprintf(text, CELL_MAX, "-");
	else if (s < 1e-3)
		snprintf(text, CELL_MAX, "%.*f us", s < 1e-4 ? 1 : 0, s * 1e6);
	else if (s < 1)
		snprintf(text, CELL_MAX, "%.*f ms", s < 0.1 ? 1 : 0, s * 1e3);
	else
		snprintf(text, CELL_MAX, "%.1f s", s);
	return text;
}

static const char *print_rate(double n, char text[CELL_MAX])
{
	snprintf(text, CELL_MAX, "%.*f", n > 0 && n < 10 ? 1 : 0, n);
	return text;
}

/* A number that a server has sent, as an integer. */
static uint64_t whole(double n)
{
	return n >= 0 && n < 1e18 ? (uint64_t)n : 0;
}

static const char *size(double n, char text[PRINT_MAX])
{
	return print_size(whole(n), text);
}

static void draw_title(const struct top_view *v)
{
	const double started = v->now->started, up = (double)time(NULL) - started;
	char age[PRINT_MAX], clock[16] = "";
	struct tm tm;

	attron(A_REVERSE);
	mvhline(0, 0, ' ', COLS);
	mvprintw(0, 0, "ringnfsd %s", v->now->version);
	if (started > 0)
		printw(", running for %s", print_age(whole(up), age));
	if (localtime_r(&v->heard, &tm) && strftime(clock, sizeof(clock), "%H:%M:%S", &tm))
		mvprintw(0, COLS > 9 ? COLS - 8 : 0, "%s", clock);
	attroff(A_REVERSE);
}

static void draw_traffic(const struct top_view *v)
{
	char read[PRINT_MAX], written[PRINT_MAX], calls[CELL_MAX], errors[CELL_MAX], p99[CELL_MAX];

	if (!v->rows) {
		mvprintw(1, 0, "waiting for a second reading");
		return;
	}
	mvprintw(1, 0, "read %s/s, written %s/s, %s calls/s (p99 %s), %s errors/s",
		 size(v->rows->read, read), size(v->rows->written, written),
		 print_rate(v->rows->all.calls, calls), print_quantile(v->rows->all.p99, p99),
		 print_rate(v->rows->all.errors, errors));
}

static void draw_state(const struct top_reading *r)
{
	char memory[PRINT_MAX], limit[PRINT_MAX];

	mvprintw(2, 0,
		 "connections: %" PRIu64 " TCP, %" PRIu64 " RDMA; NFSv4: %" PRIu64
		 " clients, %" PRIu64 " opens, %" PRIu64 " locks, %" PRIu64 " delegations",
		 whole(r->tcp), whole(r->rdma), whole(r->clients), whole(r->opens), whole(r->locks),
		 whole(r->delegations));
	mvprintw(3, 0, "workers: %" PRIu64 " of %" PRIu64 " busy; descriptors: %" PRIu64,
		 whole(r->workers_busy), whole(r->workers), whole(r->descriptors));
	printw("; exports: %" PRIu64 "; memory: %s", whole(r->exports), size(r->memory, memory));
	if (r->memory_limit > 0)
		printw(" of %s", size(r->memory_limit, limit));
}

/* The most urgent of what needs attention. */
static void draw_notice(const struct top_screen *s, const struct top_view *v)
{
	attron(s->bad);
	if (v->failure)
		mvprintw(4, 0, "NO ANSWER (%s); the figures are old", v->failure);
	else if (v->now->stuck > 0)
		mvprintw(4, 0, "%" PRIu64 " THREADS wait for a file system that does not answer",
			 whole(v->now->stuck));
	else if (v->now->grace)
		mvprintw(4, 0, "GRACE PERIOD: clients reclaim their locks, and others wait");
	attroff(s->bad);
}

static void draw_heads(enum top_sort sort)
{
	int x = 0;

	for (size_t i = 0; i < rn_array_size(columns); i++) {
		const attr_t how = columns[i].sort == sort ? A_BOLD | A_UNDERLINE : A_BOLD;
		const int width = abs(columns[i].width);

		/* The padding is not underlined. */
		const int at = columns[i].width < 0 ? x : x + width - (int)strlen(columns[i].title);

		attron(how);
		mvprintw(TABLE_LINE - 1, at, "%s", columns[i].title);
		attroff(how);
		x += width;
	}
}

static void draw_row(const struct top_screen *s, int line, const struct top_row *r)
{
	char name[2 * TOP_NAME_MAX + 4], text[CELL_MAX];

	/* The version is a number for NFS, and a name with a number for its companions. */
	snprintf(name, sizeof(name), "%s%s %s", isdigit((unsigned char)r->version[0]) ? "v" : "",
		 r->version, r->name);
	mvprintw(line, 0, "%-*.*s", NAME_WIDTH, NAME_WIDTH, name);
	printw("%10s", print_rate(r->calls, text));
	printw("%10s", print_quantile(r->p50, text));
	printw("%10s", print_quantile(r->p95, text));
	printw("%10s", print_quantile(r->p99, text));
	if (r->errors > 0)
		attron(s->bad);
	printw("%10s", print_rate(r->errors, text));
	attroff(s->bad);
}

static void draw_table(const struct top_screen *s, const struct top_view *v)
{
	const unsigned room = top_screen_room(s);

	draw_heads(v->sort);
	for (unsigned i = 0; v->rows && i < room && v->first + i < v->rows->n; i++)
		draw_row(s, TABLE_LINE + (int)i, &v->rows->rows[v->first + i]);
	if (v->rows && !v->rows->n)
		mvprintw(TABLE_LINE, 0, "no calls");
}

static void draw_help(void)
{
	int line = TABLE_LINE;

	mvprintw(line++, 0, "Rates and times are those since the reading before; times are the");
	mvprintw(line++, 0, "server's own. Operations of NFSv4 are parts of calls.");
	line++;
	for (size_t i = 0; i < rn_array_size(columns); i++)
		mvprintw(line++, 0, "  %c      sort %s", columns[i].key, columns[i].help);
	mvprintw(line++, 0, "  arrows scroll");
	mvprintw(line++, 0, "  space  read now");
	mvprintw(line++, 0, "  h      this help");
	mvprintw(line, 0, "  q      quit");
}

/* Lines that do not fit are not drawn: ncurses refuses places outside of the screen. */
void top_screen_draw(struct top_screen *s, const struct top_view *v)
{
	erase();
	draw_title(v);
	draw_traffic(v);
	draw_state(v->now);
	draw_notice(s, v);
	if (v->help)
		draw_help();
	else
		draw_table(s, v);
	move(LINES - FOOT_LINES, 0);
	clrtoeol();
	attron(A_DIM);
	mvprintw(LINES - FOOT_LINES, 0,
		 "q quit  h help  sort: c calls  n name  5 p50  9 p95  p p99  e errors");
	attroff(A_DIM);
	refresh();
}

unsigned top_screen_room(const struct top_screen *s)
{
	(void)s;
	return LINES > TABLE_LINE + FOOT_LINES ? (unsigned)(LINES - TABLE_LINE - FOOT_LINES) : 0;
}

static enum top_key sort_key(int c, enum top_sort *sort)
{
	for (size_t i = 0; i < rn_array_size(columns); i++)
		if (columns[i].key == c) {
			*sort = columns[i].sort;
			return TOP_SORT;
		}
	return TOP_OTHER;
}

enum top_key top_screen_key(struct top_screen *s, int milliseconds, enum top_sort *sort)
{
	(void)s;
	timeout(milliseconds);
	const int c = getch();

	switch (c) {
	case ERR:
		return TOP_NO_KEY;
	case 'q':
	case 'Q':
	case CTRL('c'):
		return TOP_QUIT;
	case 'h':
	case '?':
		return TOP_HELP;
	case KEY_UP:
		return TOP_UP;
	case KEY_DOWN:
		return TOP_DOWN;
	case ' ':
		return TOP_REFRESH;
	case CTRL('z'):
		raise(SIGTSTP); /* ncurses gives the terminal back, and takes it again */
		return TOP_OTHER;
	default:
		return sort_key(c, sort);
	}
}

struct top_screen *top_screen_open(void)
{
	struct top_screen *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->screen = newterm(NULL, stdout, stdin);
	if (!s->screen) {
		free(s);
		return NULL;
	}
	s->bad = A_BOLD;
	if (start_color() == OK && use_default_colors() == OK &&
	    init_pair(COLOUR_BAD, COLOR_RED, -1) == OK)
		s->bad |= COLOR_PAIR(COLOUR_BAD);
	raw(); /* so that Ctrl-C ends it as q does */
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	set_escdelay(50);
	return s;
}

void top_screen_close(struct top_screen *s)
{
	if (!s)
		return;
	endwin();
	delscreen(s->screen);
	free(s);
}
