/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rpc/client.h"

static struct rpc_clients *all;

static void start(void)
{
	all = rpc_clients_new();
	cr_assert_not_null(all);
}

static void stop(void)
{
	cr_expect_eq(rpc_clients_count(all), 0);
	rpc_clients_free(all);
}

TestSuite(client, .init = start, .fini = stop);

static struct rpc_client *get(const char *text, uint16_t port, uint32_t scope)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (struct sockaddr_in *)&ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		cr_assert_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		in6->sin6_scope_id = scope;
	}
	return rpc_client_get(all, &ss);
}

static bool same(const char *a, uint32_t scope_a, const char *b, uint32_t scope_b)
{
	struct rpc_client *x = get(a, 700, scope_a), *y = get(b, 1023, scope_b);
	const bool is = x == y;

	rpc_client_put(x);
	rpc_client_put(y);
	return is;
}

Test(client, is_an_address_without_its_port)
{
	cr_assert(same("192.0.2.1", 0, "192.0.2.1", 0));
	cr_assert_not(same("192.0.2.1", 0, "192.0.2.2", 0));
	cr_assert(same("2001:db8::1", 0, "2001:db8::1", 0));
	cr_assert_not(same("2001:db8::1", 0, "2001:db9::1", 0));
}

Test(client, is_a_network_of_ipv6)
{
	cr_assert(same("2001:db8::1", 0, "2001:db8::2", 0));
	cr_assert(same("2001:db8:0:7::1", 0, "2001:db8:0:7:ffff:ffff:ffff:ffff", 0));
	cr_assert_not(same("2001:db8:0:7::1", 0, "2001:db8:0:8::1", 0));
	cr_assert_not(same("fe80::1", 1, "fe80::2", 1), "all hosts of a link share that prefix");
	cr_assert_not(same("::ffff:192.0.2.1", 0, "::ffff:192.0.2.2", 0));
}

Test(client, a_mapped_address_is_the_ipv4_address)
{
	cr_assert(same("::ffff:192.0.2.1", 0, "192.0.2.1", 0));
	cr_assert_not(same("::192.0.2.1", 0, "192.0.2.1", 0));
}

Test(client, a_scope_counts_for_link_local_addresses)
{
	cr_assert_not(same("fe80::1", 1, "fe80::1", 2));
	cr_assert(same("2001:db8::1", 1, "2001:db8::1", 2));
}

Test(client, exists_while_it_has_connections)
{
	struct rpc_client *a = get("192.0.2.1", 1, 0), *b = get("192.0.2.1", 2, 0);

	cr_assert_eq(a, b);
	cr_assert_eq(rpc_clients_count(all), 1);
	rpc_client_put(a);
	cr_assert_eq(rpc_clients_count(all), 1);
	a->memory.bytes = 5;
	rpc_client_put(b);
	cr_assert_eq(rpc_clients_count(all), 0);
	a = get("192.0.2.1", 1, 0);
	cr_assert_eq(a->memory.bytes, 0);
	rpc_client_put(a);
	rpc_client_put(NULL);
}

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	struct rpc_client *held[50] = { 0 };

	for (unsigned i = 0; i < 20000; i++) {
		struct sockaddr_storage ss = { .ss_family = AF_INET };
		const unsigned n = (unsigned)rand_r(&seed);

		((struct sockaddr_in *)&ss)->sin_addr.s_addr = htonl(n % 3000);
		rpc_client_put(held[n % 50]);
		held[n % 50] = rpc_client_get(all, &ss);
	}
	for (unsigned i = 0; i < 50; i++)
		rpc_client_put(held[i]);
	return NULL;
}

Test(client, threads_agree)
{
	pthread_t t[4];

	for (uintptr_t i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, churn, (void *)(i + 1));
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

static void call(struct rpc_client *c, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		rpc_usage_call(&c->usage, 1, i == 0, 1000 + i);
}

static struct rpc_client *get_numbered(unsigned i)
{
	char text[32];

	snprintf(text, sizeof(text), "10.0.%u.%u", i / 256, i % 256);
	return get(text, 1, 0);
}

/* Usage outlives the connections of a client, and goes on with the next one. */
Test(client, usage_is_kept_without_connections)
{
	struct rpc_client *c = get("192.0.2.1", 1, 0);
	struct rpc_usage_view v;
	struct sockaddr_storage ss = { .ss_family = AF_INET };

	inet_pton(AF_INET, "192.0.2.1", &((struct sockaddr_in *)&ss)->sin_addr);
	cr_expect_not(rpc_usage_find(all, &ss, &v), "no call was made");
	call(c, 3);
	cr_assert(rpc_usage_find(all, &ss, &v));
	cr_expect_eq(v.connections, 1);
	cr_expect_eq(v.usage.proc[1], 3);
	rpc_client_put(c);
	cr_assert(rpc_usage_find(all, &ss, &v));
	cr_expect_eq(v.connections, 0);
	c = get("192.0.2.1", 2, 0);
	call(c, 2);
	cr_assert(rpc_usage_find(all, &ss, &v));
	cr_expect_eq(v.usage.proc[1], 5);
	cr_expect_eq(v.usage.errors, 2);
	cr_expect_eq(v.usage.last_ns, 1001, "the last call");
	rpc_client_put(c);
}

/* A walk shows each address once; those that were forgotten are in the sum of the others. */
Test(client, no_usage_is_lost)
{
	enum { MANY = 3000 };
	static struct rpc_client *c[MANY];
	struct rn_host at, *after = NULL;
	struct rpc_usage_view v;
	struct rpc_usage others;
	uint64_t calls = 0, n = 0;

	for (unsigned i = 0; i < MANY; i++) {
		c[i] = get_numbered(i);
		call(c[i], 2);
	}
	for (unsigned i = 0; i < MANY; i += 2)
		rpc_client_put(c[i]);
	while (rpc_usage_next(all, after, &v)) {
		cr_assert(!after || !rn_host_equal(after, &v.host));
		calls += v.usage.proc[1];
		n++;
		at = v.host;
		after = &at;
	}
	cr_expect_geq(n, MANY / 2, "all with connections are shown");
	const uint64_t forgotten = rpc_usage_others(all, &others);

	cr_expect_gt(forgotten, 0);
	cr_expect_eq(n + forgotten, MANY);
	cr_expect_eq(calls + others.proc[1], 2 * MANY);
	for (unsigned i = 1; i < MANY; i += 2)
		rpc_client_put(c[i]);
}
