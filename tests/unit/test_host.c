/* SPDX-License-Identifier: BSD-2-Clause */
/* The host of an address: what one machine cannot multiply, and what two machines do not share. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/host.h"

static struct sockaddr_storage address(const char *text, uint32_t scope)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(700);
		return ss;
	}
	cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(2049);
	in6->sin6_scope_id = scope;
	return ss;
}

static const struct {
	const char *a;
	uint32_t scope_a;
	const char *b;
	uint32_t scope_b;
	bool host, network; /* a and b are of one */
} pairs[] = {
	{ "192.0.2.1", 0, "192.0.2.1", 0, true, true },
	{ "192.0.2.1", 0, "192.0.2.2", 0, false, true },
	{ "192.0.2.1", 0, "192.0.3.1", 0, false, false },
	{ "192.0.2.1", 0, "::ffff:192.0.2.1", 0, true, true },
	{ "::ffff:192.0.2.1", 0, "::ffff:192.0.2.2", 0, false, true },
	{ "192.0.2.1", 0, "::192.0.2.1", 0, false, false },
	{ "2001:db8::1", 0, "2001:db8::ffff:0:0:1", 0, true, true },
	{ "2001:db8:0:7::1", 0, "2001:db8:0:8::1", 0, false, false },
	{ "2001:db8::1", 1, "2001:db8::1", 2, true, true },
	{ "fe80::1", 1, "fe80::1", 1, true, true },
	{ "fe80::1", 1, "fe80::2", 1, false, true },
	{ "fe80::1", 1, "fe80::1", 2, false, false },
	{ "fe80::1", 0, "2001:db8::1", 0, false, false },
};

Test(host, pairs_of_addresses)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct sockaddr_storage a = address(pairs[i].a, pairs[i].scope_a);
		const struct sockaddr_storage b = address(pairs[i].b, pairs[i].scope_b);
		struct rn_host x, y;

		rn_host_of((const struct sockaddr *)&a, &x);
		rn_host_of((const struct sockaddr *)&b, &y);
		cr_expect_eq(rn_host_equal(&x, &y), pairs[i].host, "%s%%%u, %s%%%u", pairs[i].a,
			     pairs[i].scope_a, pairs[i].b, pairs[i].scope_b);
		rn_network_of((const struct sockaddr *)&a, &x);
		rn_network_of((const struct sockaddr *)&b, &y);
		cr_expect_eq(rn_host_equal(&x, &y), pairs[i].network, "networks of %s%%%u, %s%%%u",
			     pairs[i].a, pairs[i].scope_a, pairs[i].b, pairs[i].scope_b);
	}
}

static bool is_network(const char *text)
{
	const struct sockaddr_storage ss = address(text, 3);
	struct rn_host h;

	rn_host_of((const struct sockaddr *)&ss, &h);
	return rn_host_is_network(&h);
}

Test(host, only_routed_addresses_of_ipv6_stand_for_a_network)
{
	cr_expect(is_network("2001:db8::1"));
	cr_expect_not(is_network("192.0.2.1"));
	cr_expect_not(is_network("::ffff:192.0.2.1"));
	cr_expect_not(is_network("fe80::1"));
}

Test(host, other_families_are_one_host)
{
	const struct sockaddr_storage local = { .ss_family = AF_UNIX };
	const struct rn_host none = { 0 };
	struct rn_host h;

	rn_host_of((const struct sockaddr *)&local, &h);
	cr_expect(rn_host_equal(&h, &none));
}

static const struct {
	const char *text, *is; /* address, and the text that it gets */
	int family;
} forms[] = {
	{ "192.0.2.1", "192.0.2.1", AF_INET },	    { "::ffff:192.0.2.1", "192.0.2.1", AF_INET },
	{ "::192.0.2.1", "::192.0.2.1", AF_INET6 }, { "2001:db8::1", "2001:db8::1", AF_INET6 },
	{ "fe80::1", "fe80::1", AF_INET6 },
};

Test(host, an_address_in_its_own_family)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const struct sockaddr_storage from = address(forms[i].text, 3);
		struct sockaddr_storage to;
		char text[RN_ADDRESS_TEXT];
		uint8_t bytes[16], again[16];
		const uint32_t scope = rn_address_map((const struct sockaddr *)&from, bytes);
		const socklen_t len = rn_address_unmap(bytes, scope, 2049, &to);

		rn_address_text(bytes, text);
		cr_expect_str_eq(text, forms[i].is);
		cr_expect_eq(to.ss_family, forms[i].family, "%s", forms[i].text);
		cr_expect_eq(len, forms[i].family == AF_INET ? sizeof(struct sockaddr_in)
							     : sizeof(struct sockaddr_in6));
		cr_expect_eq(((const struct sockaddr_in *)&to)->sin_port, htons(2049));
		cr_expect_eq(rn_address_map((const struct sockaddr *)&to, again), scope);
		cr_expect_arr_eq(bytes, again, sizeof(bytes));
	}
}

Test(host, a_table_finds_each_host_once)
{
	enum { HOSTS = 3000 };
	static struct rn_host_table t;
	static struct rn_host_entry entry[HOSTS];

	rn_host_table_init(&t);
	for (uint32_t i = 0; i < HOSTS; i++) {
		memcpy(entry[i].host.bytes, &i, sizeof(i));
		cr_assert_null(rn_host_find(&t, &entry[i].host));
		rn_host_add(&t, &entry[i]);
	}
	for (uint32_t i = 0; i < HOSTS; i += 2)
		rn_host_remove(&entry[i]);
	for (uint32_t i = 0; i < HOSTS; i++) {
		struct rn_host_entry *found = rn_host_find(&t, &entry[i].host);

		cr_assert_eq(found, i % 2 ? &entry[i] : NULL);
	}
}

Test(host, addresses_of_one_machine)
{
	static const struct {
		const char *text;
		bool one;
	} cases[] = {
		{ "192.0.2.1", true },
		{ "127.0.0.1", true },
		{ "::ffff:192.0.2.1", true },
		{ "2001:db8::1", true },
		{ "::1", true },
		{ "0.0.0.0", false },
		{ "0.1.2.3", false },
		{ "224.0.0.1", false },
		{ "255.255.255.255", false },
		{ "::", false },
		{ "ff02::1", false },
		{ "fe80::1", false },
		{ "::ffff:224.0.0.1", false },
	};
	uint8_t mapped[16];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sockaddr_storage ss = address(cases[i].text, 0);

		rn_address_map((const struct sockaddr *)&ss, mapped);
		cr_expect_eq(rn_address_is_one_machine(mapped), cases[i].one, "%s", cases[i].text);
	}
}
