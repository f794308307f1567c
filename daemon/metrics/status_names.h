/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of statuses, without NFS4ERR_: those of NFSv4 for the statuses that NFSv3 and MOUNT have as well. */
#ifndef RN_DAEMON_METRICS_STATUS_NAMES_H
#define RN_DAEMON_METRICS_STATUS_NAMES_H

/* The status that the counters have at this place: "NOENT"; "REFUSED" if RPC has refused the call; NULL if it has no name. */
const char *status_name(unsigned place);

#endif
