/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static void addr_set(struct exp_addr *addr, const void *bytes, uint8_t len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(addr, 0, sizeof(*addr));
	if (len == 16 && !memcmp(bytes, mapped, sizeof(mapped))) {
		bytes = (const uint8_t *)bytes + sizeof(mapped);
		len = 4;
	}
	memcpy(addr->bytes, bytes, len);
	addr->len = len;
}

bool exp_addr_from_sockaddr(const struct sockaddr *sa, struct exp_addr *addr)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&in, sa, sizeof(in));
		addr_set(addr, &in.sin_addr, 4);
		return true;
	case AF_INET6:
		memcpy(&in6, sa, sizeof(in6));
		addr_set(addr, &in6.sin6_addr, 16);
		return true;
	default:
		return false;
	}
}

bool exp_addr_from_text(const char *text, struct exp_addr *addr)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		addr_set(addr, bytes, 4);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		addr_set(addr, bytes, 16);
	else
		return false;
	return true;
}

void exp_addr_to_text(const struct exp_addr *addr, char text[EXP_ADDR_STRLEN])
{
	text[0] = '\0';
	inet_ntop(addr->len == 4 ? AF_INET : AF_INET6, addr->bytes, text, EXP_ADDR_STRLEN);
}

void exp_addr_to_sockaddr(const struct exp_addr *addr, struct sockaddr_storage *sa)
{
	memset(sa, 0, sizeof(*sa));
	if (addr->len == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)sa;

		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, addr->bytes, 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, addr->bytes, 16);
	}
}

bool exp_addr_equal(const struct exp_addr *a, const struct exp_addr *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

bool exp_addr_within(const struct exp_addr *addr, const struct exp_addr *net, unsigned prefix)
{
	unsigned whole = prefix / 8;
	unsigned rest = prefix % 8;

	if (addr->len != net->len || prefix > addr->len * 8u)
		return false;
	if (memcmp(addr->bytes, net->bytes, whole))
		return false;
	return !rest || !((addr->bytes[whole] ^ net->bytes[whole]) >> (8 - rest));
}

bool exp_addr_mask(struct exp_addr *addr, unsigned prefix)
{
	bool cleared = false;

	for (unsigned i = 0; i < addr->len; i++) {
		unsigned keep = prefix >= (i + 1) * 8 ? 8 : prefix > i * 8 ? prefix - i * 8 : 0;
		uint8_t mask = (uint8_t)(0xff00u >> keep);

		cleared |= addr->bytes[i] & (uint8_t)~mask;
		addr->bytes[i] &= mask;
	}
	return cleared;
}
