/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "transport/udp/udp_ration.h"

static struct udp_ration *r;

static void setup(void)
{
	r = calloc(1, sizeof(*r));
	udp_ration_init(r);
}

static void teardown(void)
{
	udp_ration_fini(r);
	free(r);
}

TestSuite(ration, .init = setup, .fini = teardown);

static struct sockaddr_storage peer(const char *text, uint16_t port)
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
	}
	return ss;
}

Test(ration, a_second_has_so_many_bytes_and_no_more)
{
	const struct sockaddr_storage a = peer("192.0.2.1", 700);

	cr_assert(udp_ration_take(r, &a, false, UDP_RATION - 1, RN_NS_PER_SECOND));
	cr_assert_not(udp_ration_take(r, &a, false, 2, RN_NS_PER_SECOND + 5));
	cr_assert(udp_ration_take(r, &a, false, 1, RN_NS_PER_SECOND + 6));
	cr_assert_not(udp_ration_take(r, &a, false, 1, 2 * RN_NS_PER_SECOND - 1));
	cr_assert(udp_ration_take(r, &a, false, UDP_RATION, 2 * RN_NS_PER_SECOND));
	cr_assert_not(udp_ration_take(r, &a, false, UINT32_MAX, 3 * RN_NS_PER_SECOND));
}

Test(ration, ports_of_a_host_and_addresses_of_a_network_share)
{
	const struct sockaddr_storage a = peer("192.0.2.1", 700), b = peer("192.0.2.1", 701),
				      c = peer("2001:db8::1", 700), d = peer("2001:db8::ffff:2", 9);

	cr_assert(udp_ration_take(r, &a, false, UDP_RATION, RN_NS_PER_SECOND));
	cr_assert_not(udp_ration_take(r, &b, false, 1, RN_NS_PER_SECOND));
	cr_assert(udp_ration_take(r, &c, false, UDP_RATION, 5 * RN_NS_PER_SECOND));
	cr_assert_not(udp_ration_take(r, &d, false, 1, 5 * RN_NS_PER_SECOND));
}

Test(ration, calls_with_a_handle_have_one_of_their_own)
{
	const struct sockaddr_storage a = peer("192.0.2.1", 700);

	cr_assert(udp_ration_take(r, &a, true, UDP_RATION_HANDLE - 1, RN_NS_PER_SECOND));
	cr_assert_not(udp_ration_take(r, &a, true, 2, RN_NS_PER_SECOND + 1));
	cr_assert(udp_ration_take(r, &a, false, UDP_RATION, RN_NS_PER_SECOND + 2));
	cr_assert(udp_ration_take(r, &a, true, UDP_RATION_HANDLE, 2 * RN_NS_PER_SECOND));
}
