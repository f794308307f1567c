/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that run on the event thread that received them. A call begins there if its file system is
 * local and answers. What would wait, or needs another identity, moves to the pool
 * (rpc/worker.h, vfs/worker.h). Calls wait while the transports look at their descriptors, and run
 * before they do so again; so their order is that in which clients' connections have their turns
 * (transport/turns.h).
 *
 * A call may wait all the same: for a lock of the kernel's, or for memory. When it does so for 50
 * to 100 ms another thread goes on with the event loop, and calls of that file system go to the
 * pool until none is stuck.
 */
#ifndef RN_DAEMON_REACTOR_H
#define RN_DAEMON_REACTOR_H

#include <stdbool.h>
#include <stdint.h>

struct ev_loop;
struct reactor;
struct rpc_request;
struct stuck_lanes;
struct workers;

/* Starts an event thread. *loop is the caller's to free, before reactor_free. 0 or -errno. */
int reactor_new(struct workers *ws, const char *name, struct reactor **out, struct ev_loop **loop);
void reactor_free(struct reactor *r);

/* On an event thread: keeps the call, to run it there. False: it is for the pool. */
bool reactor_take(struct rpc_request *req);
/* In a call that is about to use a file system of that lane: moves it, if this is an event thread that began it for another
 * one. */
void reactor_enter(unsigned lane);

/* For the watch, every look_ms. Adds lanes with stuck calls to *lanes. True: it was busy. */
bool reactor_look(struct reactor *r, unsigned look_ms, struct stuck_lanes *lanes);
/* Threads that had to do with its loop and had been stuck for seconds at the last look. Any thread. */
unsigned reactor_stuck(const struct reactor *r);

#endif
