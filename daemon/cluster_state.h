/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state that a member leaves when it is moved (doc/design/upgrade.md): an image in a file of its state directory, for its next run on whatever
 * machine. The file is encrypted and authenticated by the cluster's key of file handles, together with the names and the number of the run that wrote
 * it. So nobody without that key reads or makes one, and none is good for another member or after another run.
 */
#ifndef RN_DAEMON_CLUSTER_STATE_H
#define RN_DAEMON_CLUSTER_STATE_H

#include <stdint.h>

#include "daemon/state_dir.h"
#include "lib/image.h"

#define CLUSTER_STATE_NAME "moved-state"

/* The run that the state belongs to. */
struct cluster_state_of {
	const char *dir;    /* the member's state directory */
	const char *member; /* "CLUSTER/INSTANCE" */
	uint64_t incarnation;
	uint8_t secret[STATE_SECRET_SIZE]; /* the cluster's key of file handles */
};

/* Writes the image in the sealed file fd. 0: the state file is whole and on disk; -errno: there is none. */
int cluster_state_write(const struct cluster_state_of *of, int fd);

/*
 * Takes the file out of the directory, for good before anything of it is used, and reads it if it is of that run. 0; -ENOENT: there is none;
 * -ESTALE: it is of another run; -EBADMSG: it is damaged or forged; -EPERM: it is not a file of this user's alone; -EPROTO: *fault says why
 * the image cannot be read; or -errno.
 */
int cluster_state_take(const struct cluster_state_of *of, struct image_reader **out,
		       enum image_fault *fault);

#endif
