/* SPDX-License-Identifier: BSD-2-Clause */
/* A call's first file handle and its export, found without decoding the call: to choose its file system's queue, and to show it.
 * Nothing is verified: a client that sends a wrong one only gets a worse queue. */
#ifndef RN_DAEMON_WORKERS_ADMISSION_H
#define RN_DAEMON_WORKERS_ADMISSION_H

#include <stdbool.h>

#include "daemon/exports/export_set.h"
#include "rpc/request.h"
#include "vfs/types.h"

/* False: the call has none, or not in the usual position, or its memory was given back already. */
bool first_handle(const struct rpc_request *req, struct vfs_fh *out);
bool first_handle_export(const struct rpc_request *req, uint32_t *export_id);

/*
 * Admission of hosts by the exports, for rpc_server.admission. A host is a stranger unless some
 * line of exports(5) admits it. The answer is kept with the connection, for some seconds and until
 * the exports change, so it costs a call two loads.
 *
 * Admitted hosts are remembered by address (a bounded number; the one unseen for longest is
 * forgotten first), so that a host whose last export is removed may give back its state for the
 * time of a lease. Strangers are not remembered, so they cannot displace others.
 */

struct admission;

struct admission_config {
	struct exports *exports;
	const struct rn_logger *log;
	unsigned lease_seconds; /* time in which hosts that were admitted may give state back */
};

struct admission *admission_new(const struct admission_config *cfg); /* NULL: no memory */
void admission_free(struct admission *s);

/* Any thread; does not wait. */
enum rpc_admission admission_of(void *admission, struct rpc_conn *conn);

#endif
