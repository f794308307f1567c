/* SPDX-License-Identifier: BSD-2-Clause */
#include "systemd/generator/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Links that one path may lead through, as in the kernel. */
enum { LINKS_MAX = 40 };

struct walk {
	int root;
	unsigned links;
	bool blind;	     /* true behind a mount point, or behind what does not exist */
	char done[PATH_MAX]; /* resolved: empty, or begins with a slash */
	char rest[PATH_MAX]; /* still to be walked */
};

/* Target of the link that `done` names: its length, 0 if it is no link. */
static size_t walk_read_link(struct walk *w, char target[PATH_MAX])
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_NO_XDEV };
	int fd = (int)syscall(SYS_openat2, w->root, w->done + 1, &how, sizeof(how));
	ssize_t len;

	if (fd < 0) {
		w->blind = true;
		return 0;
	}
	len = readlinkat(fd, "", target, PATH_MAX - 1);
	close(fd);
	if (len <= 0)
		return 0;
	target[len] = '\0';
	return (size_t)len;
}

static void drop_last(struct walk *w)
{
	char *slash = strrchr(w->done, '/');

	if (slash)
		*slash = '\0';
}

/* Puts the link's target before the rest. False if that is too long. */
static bool walk_follow_link(struct walk *w, const char *target, size_t len)
{
	size_t rest = strlen(w->rest);

	if (len + 1 + rest >= sizeof(w->rest))
		return false;
	memmove(w->rest + len + 1, w->rest, rest + 1);
	memcpy(w->rest, target, len);
	w->rest[len] = '/';
	if (target[0] == '/')
		w->done[0] = '\0';
	else
		drop_last(w);
	return true;
}

/* Takes one component from the rest. False at its end, or if the path leads nowhere. */
static bool walk_step(struct walk *w, bool *wrong)
{
	char target[PATH_MAX];
	size_t skip = strspn(w->rest, "/"), len = strcspn(w->rest + skip, "/");
	size_t done = strlen(w->done);
	const char *name = w->rest + skip;

	if (!len)
		return false;
	if (len == 2 && !strncmp(name, "..", 2)) {
		drop_last(w);
	} else if (len > 1 || *name != '.') {
		*wrong = done + len + 2 > sizeof(w->done);
		if (*wrong)
			return false;
		w->done[done] = '/';
		memcpy(w->done + done + 1, name, len);
		w->done[done + 1 + len] = '\0';
	}
	memmove(w->rest, name + len, strlen(name + len) + 1);
	if (w->blind || !w->done[0])
		return true;
	len = walk_read_link(w, target);
	*wrong = len && (++w->links > LINKS_MAX || !walk_follow_link(w, target, len));
	return !*wrong;
}

char *resolve_path(int root, const char *path)
{
	struct walk *w = calloc(1, sizeof(*w));
	bool wrong = strlen(path) >= sizeof(w->rest);
	char *result;

	if (!w)
		return NULL;
	w->root = root;
	if (!wrong)
		strcpy(w->rest, path);
	while (!wrong && walk_step(w, &wrong))
		;
	result = strdup(wrong ? path : w->done[0] ? w->done : "/");
	free(w);
	return result;
}
