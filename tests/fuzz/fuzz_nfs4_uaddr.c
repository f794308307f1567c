/* SPDX-License-Identifier: BSD-2-Clause */
/* Universal addresses: what is read is an address of the netid, and is read again from its canonical
 * form; of IPv4 there is no other form. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/client/client_host.h"

static void check(const char *netid, const char *text)
{
	struct sockaddr_in6 a, b;
	char canonical[NFS4_UADDR_MAX];
	const bool v4 = strcmp(netid, "tcp") == 0;

	if (!nfs4_parse_uaddr(netid, text, &a))
		return;
	if (a.sin6_family != AF_INET6 || a.sin6_port == 0 || a.sin6_scope_id != 0 ||
	    IN6_IS_ADDR_V4MAPPED(&a.sin6_addr) != v4)
		abort();
	nfs4_uaddr(&a, canonical);
	if (v4 && strcmp(text, canonical) != 0)
		abort();
	if (!nfs4_parse_uaddr(netid, canonical, &b) || memcmp(&a, &b, sizeof(a)) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[NFS4_UADDR_MAX] = { 0 };

	memcpy(text, data, size < sizeof(text) - 1 ? size : sizeof(text) - 1);
	check("tcp", text);
	check("tcp6", text);
	return 0;
}
