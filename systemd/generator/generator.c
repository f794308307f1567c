/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ringnfs-generator DIRECTORY [EARLY LATE [ROOT]]: a generator, see systemd.generator(7). Writes
 * DIRECTORY/ringnfsd.service.d/50-exports.conf, which lets the server start after the mounts of its exports, and gives it a
 * /tmp of its own where no export needs the machine's. ROOT, for tests, is a folder to take for the machine's root.
 *
 * The mounts are wanted and not required: one that fails stops no other export.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "systemd/generator/gather.h"
#include "systemd/generator/mount_unit.h"

/* Prints the mounts. Those of fstab(5) are wanted at boot by local-fs.target and remote-fs.target, unless they are to stay unmounted. If the
 * service wanted them too, each restart would mount again what somebody has unmounted, and wait for a disk that is gone. */
static void print_mounts(FILE *out, const struct needs *needs)
{
	char name[MOUNT_UNIT_SIZE];

	for (size_t i = 0; i < needs->places.n; i++) {
		const char *path = needs->places.paths[i];

		if (!mount_unit_name(path, strlen(path), name))
			continue;
		fprintf(out, "After=%s\n", name);
		if (!path_set_has(&needs->fstab, path, strlen(path)))
			fprintf(out, "Wants=%s\n", name);
	}
}

static void print_drop_in(FILE *out, const struct needs *needs)
{
	fputs("# Made by ringnfs-generator from the tables of exports and fstab(5).\n", out);
	if (needs->places.n)
		fputs("[Unit]\n", out);
	print_mounts(out, needs);
	if (needs->private_tmp)
		fputs("[Service]\nPrivateTmp=yes\n", out);
}

/* 0 or -errno. */
static int write_drop_in_file(const char *path, const struct needs *needs)
{
	FILE *out = fopen(path, "we");
	int rc;

	if (!out)
		return -errno;
	print_drop_in(out, needs);
	rc = ferror(out) ? -EIO : 0;
	if (fclose(out) && !rc)
		rc = -errno;
	return rc;
}

static int write_drop_in(const char *directory, const struct needs *needs)
{
	char *dir = NULL, *file = NULL;
	int rc = 0;

	if (asprintf(&dir, "%s/ringnfsd.service.d", directory) < 0)
		return -ENOMEM;
	if (asprintf(&file, "%s/50-exports.conf", dir) < 0)
		rc = -ENOMEM;
	else if (mkdir(dir, 0755) && errno != EEXIST)
		rc = -errno;
	else
		rc = write_drop_in_file(file, needs);
	if (rc != -ENOMEM)
		free(file);
	free(dir);
	return rc;
}

int main(int argc, char **argv)
{
	struct needs needs = { 0 };
	int rc;

	if (argc != 2 && argc != 4 && argc != 5) {
		fprintf(stderr, "usage: ringnfs-generator DIRECTORY [EARLY LATE [ROOT]]\n");
		return 2;
	}
	rc = needs_gather(argc == 5 ? argv[4] : "", &needs);
	if (!rc)
		rc = write_drop_in(argv[1], &needs);
	if (rc)
		fprintf(stderr,
			"ringnfs-generator: ringnfsd is not ordered after its exports' mounts: "
			"%s\n",
			strerror(-rc));
	needs_free(&needs);
	return rc ? 1 : 0;
}
