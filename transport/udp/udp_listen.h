/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_TRANSPORT_UDP_LISTEN_H
#define RN_TRANSPORT_UDP_LISTEN_H

#include "transport/udp/udp_types.h"

/* Stops reading; on the listener's loop. */
void udp_listener_quiet(void *listener);
/* Closes and frees a listener that was quieted, when no call is under way. */
void udp_listener_free(struct udp_listener *l);

#endif
