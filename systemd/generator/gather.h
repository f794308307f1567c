/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects what the service needs of the machine, by its settings, the tables of exports and fstab(5). */
#ifndef RN_SYSTEMD_GATHER_H
#define RN_SYSTEMD_GATHER_H

#include <stdbool.h>

#include "systemd/generator/path_set.h"

struct needs {
	struct path_set exports; /* sorted, without symbolic links */
	struct path_set places;	 /* sorted: possible mount points of the exports and below them */
	struct path_set fstab;	 /* sorted: mount points of fstab(5) */
	bool private_tmp;	 /* true if nothing of the machine's /tmp and /var/tmp is needed */
};

/* root: "" or the path of a folder to take for the machine's root. 0 or -errno. needs_free() in every case. */
int needs_gather(const char *root, struct needs *needs);
void needs_free(struct needs *needs);

#endif
