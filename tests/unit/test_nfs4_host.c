/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of one address together: shares of the memory for state. */
#include <criterion/criterion.h>

#include <string.h>

#include "lib/budget.h"
#include "nfs4/client/client_host.h"

#define ALL 8000u
#define EIGHTH (ALL / 8u)

static struct rn_budget budget;
static struct nfs4_hosts *hosts;

static void start(void)
{
	rn_budget_init(&budget, ALL);
	hosts = nfs4_hosts_new(&budget);
	cr_assert_not_null(hosts);
}

static void stop(void)
{
	nfs4_hosts_free(hosts);
}

TestSuite(nfs4_host, .init = start, .fini = stop);

static struct nfs4_host *host(uint8_t low, uint16_t port)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = port };

	memset(sa.sin6_addr.s6_addr + 10, 0xff, 2);
	sa.sin6_addr.s6_addr[15] = low;
	return nfs4_host_get(hosts, &sa);
}

Test(nfs4_host, is_an_address_whatever_the_port)
{
	struct nfs4_host *a = host(1, 700), *again = host(1, 701), *b = host(2, 700);

	cr_expect_eq(a, again);
	cr_expect_neq(a, b);
	nfs4_host_put(again);
	cr_expect(nfs4_host_take(a, 100, NFS4_TO_HOLD), "one reference is left");
	nfs4_host_give(a, 100);
	nfs4_host_put(a);
	nfs4_host_put(b);
	nfs4_host_put(NULL);
	cr_expect_eq(budget.used, 0);
}

/* The first host may take half of the memory, the next half of the rest, and so on. */
Test(nfs4_host, holds_as_much_as_is_left)
{
	struct nfs4_host *h[3];
	size_t had[3] = { 0 };

	for (uint8_t i = 0; i < 3; i++) {
		h[i] = host(i, 0);
		while (nfs4_host_take(h[i], 10, NFS4_TO_HOLD))
			had[i] += 10;
	}
	cr_expect_eq(had[0], ALL / 2);
	cr_expect_eq(had[1], ALL / 4);
	cr_expect_eq(had[2], ALL / 8);
	cr_expect_eq(budget.used, had[0] + had[1] + had[2]);
	for (int i = 0; i < 3; i++) {
		nfs4_host_give(h[i], had[i]);
		nfs4_host_put(h[i]);
	}
}

Test(nfs4_host, begins_and_answers_beyond_its_share_but_not_with_the_last_eighth)
{
	struct nfs4_host *much = host(1, 0), *little = host(2, 0);
	size_t had = ALL / 2;

	cr_assert(nfs4_host_take(much, had, NFS4_TO_HOLD));
	cr_expect_not(nfs4_host_fits(much, 10, NFS4_TO_HOLD));
	cr_expect(nfs4_host_fits(much, 10, NFS4_TO_ANSWER));
	for (; nfs4_host_take(much, 10, NFS4_TO_BEGIN); had += 10)
		;
	cr_expect_eq(had, ALL - EIGHTH);
	cr_expect_not(nfs4_host_take(much, 10, NFS4_TO_ANSWER));
	cr_expect(nfs4_host_take(little, EIGHTH / 2, NFS4_TO_HOLD));
	nfs4_host_give(little, EIGHTH / 2);
	nfs4_host_give(much, had);
	nfs4_host_put(much);
	nfs4_host_put(little);
}

/* A host below its quota may take memory from courtesy clients of others; one above it must drop
 * its own. */
Test(nfs4_host, has_its_quota_if_it_has_much)
{
	struct nfs4_host *much = host(1, 0), *little = host(2, 0);

	cr_expect_not(nfs4_host_has_its_quota(much, 10));
	cr_assert(nfs4_host_take(much, ALL / 2, NFS4_TO_HOLD));
	cr_expect(nfs4_host_has_its_quota(much, 10));
	cr_expect_not(nfs4_host_has_its_quota(much, ALL), "there is not so much for anybody");
	cr_assert(nfs4_host_take(little, EIGHTH, NFS4_TO_HOLD));
	cr_expect_not(nfs4_host_has_its_quota(little, ALL / 4));
	nfs4_host_give(little, EIGHTH);
	nfs4_host_give(much, ALL / 2);
	nfs4_host_put(much);
	nfs4_host_put(little);
}

static struct nfs4_host *host6(uint8_t network, uint8_t low)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6 };

	sa.sin6_addr.s6_addr[0] = 0x20;
	sa.sin6_addr.s6_addr[7] = network;
	sa.sin6_addr.s6_addr[15] = low;
	return nfs4_host_get(hosts, &sa);
}

Test(nfs4_host, is_a_network_with_ipv6)
{
	struct nfs4_host *a = host6(1, 1), *b = host6(1, 2), *c = host6(2, 1);

	cr_expect_eq(a, b);
	cr_expect_neq(a, c);
	nfs4_host_put(a);
	nfs4_host_put(b);
	nfs4_host_put(c);
}

/* Every host takes as much as it may. A late host still gets a little. */
Test(nfs4_host, leaves_a_little_for_everybody)
{
	struct nfs4_host *h[20], *late = host(200, 0);
	size_t had[20] = { 0 };

	for (uint8_t i = 0; i < 20; i++) {
		h[i] = host(i, 0);
		while (nfs4_host_take(h[i], 5, NFS4_TO_BEGIN))
			had[i] += 5;
	}
	cr_expect(nfs4_host_take(late, 10, NFS4_TO_BEGIN));
	cr_expect_not(nfs4_host_take(late, 10, NFS4_TO_BEGIN));
	nfs4_host_give(late, 10);
	nfs4_host_put(late);
	for (int i = 0; i < 20; i++) {
		nfs4_host_give(h[i], had[i]);
		nfs4_host_put(h[i]);
	}
	cr_expect_eq(budget.used, 0);
}

Test(nfs4_host, the_one_that_has_most)
{
	struct nfs4_host *a = host(1, 0), *b = host(2, 0), *most;

	cr_expect_null(nfs4_hosts_greediest(hosts, NFS4_SESSIONS, 0));
	nfs4_host_count(a, NFS4_SESSIONS, 1);
	nfs4_host_count(b, NFS4_SESSIONS, 1);
	nfs4_host_count(b, NFS4_SESSIONS, 1);
	most = nfs4_hosts_greediest(hosts, NFS4_SESSIONS, 1);
	cr_expect_eq(most, b);
	nfs4_host_put(most);
	cr_expect_null(nfs4_hosts_greediest(hosts, NFS4_SESSIONS, 2));
	cr_expect_null(nfs4_hosts_greediest(hosts, NFS4_UNCONFIRMED, 0));
	nfs4_host_put(a);
	nfs4_host_put(b);
}
