/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that calls a function once a second. The function may wait for a file system, while the
 * main thread goes on to take signals. */
#ifndef RN_DAEMON_TICKER_H
#define RN_DAEMON_TICKER_H

struct ticker;

/* name: the thread's name, up to 15 characters. 0 or -errno. */
int ticker_start(const char *name, void (*tick)(void *ctx), void *ctx, struct ticker **out);
/* Has it called soon, or once more after the call under way. NULL is allowed. */
void ticker_hurry(struct ticker *t);
/* Waits for the end of a tick under way. NULL is allowed. */
void ticker_stop(struct ticker *t);

#endif
