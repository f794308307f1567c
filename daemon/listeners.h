/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sockets and RDMA identifiers that the settings ask for. Listening sockets may come from the service manager (sd_listen_fds(3),
 * ringnfsd.socket), which keeps them while the server is restarted, or from the program before this one (daemon/hand_over.h): clients which
 * connect meanwhile wait and are not refused.
 */
#ifndef RN_DAEMON_LISTENERS_H
#define RN_DAEMON_LISTENERS_H

#include <stdbool.h>

#include "conf/settings.h"
#include "daemon/daemon_register.h"
#include "lib/image.h"
#include "lib/log.h"

struct tcp_server;
struct udp_server;
struct rr_server;

/* Listens for NFS, for MOUNT if ports->nfs3 and for RQUOTA if ports->rquota; fills their ports. Where the service manager, or image (or
 * NULL), has a socket for an address and port, that one is used. A NFS port that is taken is an error; a
 * MOUNT or RQUOTA port that is taken is a warning, since both are answered on the NFS port too. 0 or -errno, logged. */
int listeners_tcp(struct tcp_server *s, const struct cfg_tcp *cfg, struct image_reader *image,
		  const struct rn_logger *log, struct registration_ports *ports);

/* Receives on the UDP ports of the same numbers, for MOUNT, NLM and RQUOTA, and for NFS if the settings say so; fills
 * their ports. A port that is taken is an error if NFS is to be served there, else a warning. 0 or -errno, logged. */
int listeners_udp(struct udp_server *s, const struct cfg_settings *set, const struct rn_logger *log,
		  struct registration_ports *ports);

/* Listens on every RDMA device. With auto, a failure is only a notice. 0 or -errno, logged. */
int listeners_rdma(struct rr_server *s, const struct cfg_rdma *cfg, const struct rn_logger *log,
		   struct registration_ports *ports);

/* Enters RDMA's ports into ports where a device has come since they were not served. True: one has.
 */
bool listeners_rdma_came(struct rr_server *s, const struct cfg_rdma *cfg,
			 struct registration_ports *ports);

#endif
