/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended attributes of a file, as setfattr and getfattr handle them.
 *
 *   vmxattr set FILE NAME VALUE [create|replace]
 *   vmxattr fill FILE NAME SIZE SEED     a value of SIZE bytes that depend on SEED
 *   vmxattr get FILE NAME                prints it; asks for its length first
 *   vmxattr check FILE NAME SIZE SEED    compares it with what fill has set
 *   vmxattr remove FILE NAME
 *   vmxattr list FILE                    prints the names of the namespace "user", sorted
 *   vmxattr many FILE COUNT LENGTH       sets COUNT of them, with names of LENGTH bytes and no value
 *
 * Exits with 1 and the error's text if the file system refuses.
 */
#define _GNU_SOURCE
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>

enum { NAME_SIZE = 256, VALUE_SIZE = 65536 };

static void fill(char *p, size_t size, unsigned seed)
{
	for (size_t i = 0; i < size; i++)
		p[i] = (char)((i * 7 + i / 251 + seed) % 256);
}

static size_t size_of(const char *s)
{
	const unsigned long n = strtoul(s, NULL, 10);

	if (n > VALUE_SIZE)
		errx(2, "%s is too long", s);
	return n;
}

static void set(const char *path, const char *name, const void *value, size_t size, int flags)
{
	if (setxattr(path, name, value, size, flags) != 0)
		err(1, "%s", name);
}

/* Returns the value's length. */
static size_t get(const char *path, const char *name, char *out)
{
	ssize_t len = getxattr(path, name, NULL, 0);

	if (len > 0)
		len = getxattr(path, name, out, (size_t)len);
	if (len < 0)
		err(1, "%s", name);
	return (size_t)len;
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void list(const char *path)
{
	static char buf[VALUE_SIZE], *names[VALUE_SIZE / 2];
	size_t n = 0;
	ssize_t len = listxattr(path, buf, sizeof(buf));

	if (len < 0)
		err(1, "%s", path);
	for (char *p = buf; p < buf + len; p += strlen(p) + 1) {
		if (strncmp(p, "user.", 5) == 0)
			names[n++] = p;
	}
	qsort(names, n, sizeof(names[0]), compare);
	for (size_t i = 0; i < n; i++)
		puts(names[i]);
}

static void many(const char *path, unsigned count, int length)
{
	char name[NAME_SIZE];

	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "user.%0*u", length - 5, i);
		set(path, name, "", 0, 0);
	}
}

static int flags_of(const char *s)
{
	return !s ? 0 : strcmp(s, "create") == 0 ? XATTR_CREATE : XATTR_REPLACE;
}

int main(int argc, char **argv)
{
	static char value[VALUE_SIZE], want[VALUE_SIZE];
	const char *what = argc > 2 ? argv[1] : "";
	size_t len;

	if (argc >= 5 && strcmp(what, "set") == 0) {
		set(argv[2], argv[3], argv[4], strlen(argv[4]), flags_of(argv[5]));
	} else if (argc == 6 && strcmp(what, "fill") == 0) {
		len = size_of(argv[4]);
		fill(value, len, (unsigned)atoi(argv[5]));
		set(argv[2], argv[3], value, len, 0);
	} else if (argc == 4 && strcmp(what, "get") == 0) {
		fwrite(value, 1, get(argv[2], argv[3], value), stdout);
	} else if (argc == 6 && strcmp(what, "check") == 0) {
		len = size_of(argv[4]);
		fill(want, len, (unsigned)atoi(argv[5]));
		if (get(argv[2], argv[3], value) != len || memcmp(value, want, len) != 0)
			errx(1, "%s: another value", argv[3]);
	} else if (argc == 4 && strcmp(what, "remove") == 0) {
		if (removexattr(argv[2], argv[3]) != 0)
			err(1, "%s", argv[3]);
	} else if (argc == 3 && strcmp(what, "list") == 0) {
		list(argv[2]);
	} else if (argc == 5 && strcmp(what, "many") == 0) {
		many(argv[2], (unsigned)atoi(argv[3]), atoi(argv[4]));
	} else {
		errx(2, "see the beginning of vmxattr.c");
	}
	return 0;
}
