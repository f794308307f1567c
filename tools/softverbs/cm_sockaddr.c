/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tools/softverbs/cm.h"

int cm_addr_copy(union cm_addr *to, const struct sockaddr *from)
{
	if (!from)
		return -EINVAL;
	memset(to, 0, sizeof(*to));
	if (from->sa_family == AF_INET)
		memcpy(&to->sin, from, sizeof(to->sin));
	else if (from->sa_family == AF_INET6)
		memcpy(&to->sin6, from, sizeof(to->sin6));
	else
		return -EAFNOSUPPORT;
	return 0;
}

bool cm_addr_any(const union cm_addr *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&a->sin6.sin6_addr);
	return a->sin.sin_addr.s_addr == htonl(INADDR_ANY);
}

bool cm_addr_same(const union cm_addr *a, const union cm_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&a->sin6.sin6_addr, &b->sin6.sin6_addr);
	return a->sin.sin_addr.s_addr == b->sin.sin_addr.s_addr;
}

/* The port is at the same place in both families. */
uint16_t cm_addr_port(const union cm_addr *a)
{
	return ntohs(a->sin.sin_port);
}

void cm_addr_set_port(union cm_addr *a, uint16_t port)
{
	a->sin.sin_port = htons(port);
}

size_t cm_addr_len(const union cm_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? sizeof(a->sin6) : sizeof(a->sin);
}
