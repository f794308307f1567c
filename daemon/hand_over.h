/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From one program of the server to the next, in the same process: the next one is run by execve(2) with an image of the state (lib/image.h),
 * whose descriptor the environment names. doc/design/upgrade.md describes each step.
 */
#ifndef RN_DAEMON_HAND_OVER_H
#define RN_DAEMON_HAND_OVER_H

#include <stdint.h>

#include "lib/image.h"
#include "lib/log.h"

struct hand_over; /* descriptor and image that the program before this one has passed */

/* Before other descriptors are opened and threads start. *out is NULL if there is nothing: an ordinary start. 0, or an enum image_fault: what there
 * is cannot be used, and all descriptors but the first three are closed, as those of the program before hold its files locked. */
int hand_over_receive(struct hand_over **out);
/* The image. */
struct image_reader *hand_over_image(struct hand_over *h);
/* Closes the descriptors of the image that no part has taken. NULL is allowed. */
void hand_over_end(struct hand_over *h);

/*
 * Asks the program at that path whether it starts with these arguments, and reads what this one writes: for some seconds at most. 0;
 * -ENOEXEC: it does not start, or refuses its settings; -EPROTO: it cannot read the image, and starts without.
 */
int hand_over_try(const char *program, char *const argv[], const struct rn_logger *log);
/* Ends this program and runs the next. w: sealed; NULL: without an image. Returns if it cannot: -errno. */
int hand_over_run(const char *program, char *const argv[], struct image_writer *w);

/* Says on standard output, for another program's hand_over_try(), which images this one reads. */
void hand_over_print_formats(void);

#endif
