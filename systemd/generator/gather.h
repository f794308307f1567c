/* SPDX-License-Identifier: BSD-2-Clause */
/* What the service needs of the machine, by its settings, the tables of exports and fstab(5). */
#ifndef RN_SYSTEMD_GATHER_H
#define RN_SYSTEMD_GATHER_H

#include <stdbool.h>

#include "systemd/generator/path_set.h"

struct needs {
	struct path_set exports; /* sorted, without symbolic links */
	struct path_set
		places; /* sorted: where mounts may be that the exports are on, or that are below them */
	struct path_set
		noauto; /* sorted: mount points of fstab(5) which the administrator does not want mounted */
	bool private_tmp; /* true if the service needs nothing of the machine's /tmp and /var/tmp */
};

/* root: "" or the path of a folder to take for the machine's root. 0 or -errno. needs_free() in every case. */
int needs_gather(const char *root, struct needs *needs);
void needs_free(struct needs *needs);

#endif
