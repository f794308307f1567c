/* SPDX-License-Identifier: BSD-2-Clause */
/* From a datagram to a call. */
#ifndef RN_TRANSPORT_UDP_CALL_H
#define RN_TRANSPORT_UDP_CALL_H

#include "transport/udp/udp_types.h"

struct udp_datagram {
	const uint8_t *data;
	uint32_t len;
	struct sockaddr_storage peer, local;
};

/* Hands the call to the sink, or counts it as dropped. On the listener's event loop. */
void udp_call_take(struct udp_listener *l, const struct udp_datagram *d);

#endif
