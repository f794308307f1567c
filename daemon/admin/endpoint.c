/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "lib/host.h"

void endpoint_put_address(const struct sockaddr_storage *from, char text[INET6_ADDRSTRLEN])
{
	uint8_t addr[16];

	text[0] = '\0';
	rn_address_map((const struct sockaddr *)from, addr);
	if (from->ss_family == AF_INET || from->ss_family == AF_INET6)
		rn_address_text(addr, text);
}

bool endpoint_read_address(const char *text, struct sockaddr_storage *out)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *in = (struct sockaddr_in *)out;

	memset(out, 0, sizeof(*out));
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1)
		out->ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1)
		out->ss_family = AF_INET6;
	return out->ss_family != 0;
}

/* sin_port and sin6_port have the same place. */
_Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port),
	       "the port of either family");

void endpoint_add(json_t *to, const char *address, const char *port,
		  const struct sockaddr_storage *from)
{
	char text[INET6_ADDRSTRLEN];

	endpoint_put_address(from, text);
	json_object_set_new(to, address, json_string(text));
	json_object_set_new(to, port,
			    json_integer(ntohs(((const struct sockaddr_in *)from)->sin_port)));
}
