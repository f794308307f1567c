/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The TCP connections of a member's clients, in a file of its state directory, so that its next run can end those that died with a machine.
 *
 * A client whose calls were all acknowledged by the dead machine's TCP sends nothing, and waits. A SYN from the same address and port has its TCP
 * answer by an ACK (RFC 9293 section 3.5.1, half-open connections), to which the kernel here answers RST, as it knows no such connection. That needs no
 * capability: it is connect(2) of a socket that is given up at once.
 */
#ifndef RN_DAEMON_CLUSTER_CONNS_H
#define RN_DAEMON_CLUSTER_CONNS_H

#include "conf/settings.h"
#include "lib/log.h"
#include "rpc/conns.h"

struct cluster_conns;

/* Reads the file, and takes the port of the member's addresses, which is not listened on yet; if continues, the connections of before go on, and
 * none is read. *out is NULL if the settings name no address or no port. 0 or -ENOMEM. */
int cluster_conns_new(const struct cfg_settings *settings, struct rpc_conns *conns, bool continues,
		      const struct rn_logger *log, struct cluster_conns **out);
/* The port is listened on: sends to each client that was read. Once only. NULL is allowed in all of these. */
void cluster_conns_end_former(struct cluster_conns *c);
/* Writes the connections of now, if they have changed. Waits for the disk. */
void cluster_conns_note(struct cluster_conns *c);
void cluster_conns_free(struct cluster_conns *c);

#endif
