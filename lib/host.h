/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The host of an address: the unit that quotas, limits and log lines go by, as one machine must not count as
 * several by its addresses.
 *
 * - An IPv4 address is a host, also if it is mapped into IPv6 (RFC 4291 section 2.5.5.2).
 * - A /64 of IPv6 is a host, since one machine may take any number of its addresses.
 * - A link-local address is a host together with its scope: all machines of a link share the prefix, and two
 *   links may have the same address (RFC 4007).
 *
 * Permissions go by the whole address, and are decided elsewhere. Functions without a table are thread-safe.
 */
#ifndef RN_LIB_HOST_H
#define RN_LIB_HOST_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

/* Compared and hashed as bytes: no padding. */
struct rn_host {
	uint8_t bytes[16]; /* IPv6, or IPv4 mapped to IPv6; of a /64 the first address */
	uint32_t scope;	   /* scope of a link-local address, or 0 */
};

/* Writes an address of either family as IPv6, zeros for any other. Returns its scope if it is link-local, or 0. */
uint32_t rn_address_map(const struct sockaddr *addr, uint8_t out[16]);
/* The same with its port, as a socket address of IPv6. sin6_family is 0 if it is of another family. */
void rn_address_as_ipv6(const struct sockaddr_storage *from, struct sockaddr_in6 *out);
bool rn_address_is_ipv4(const uint8_t addr[16]);
/* True if others can reach one machine by it: it is neither unspecified, multicast nor broadcast, nor needs a scope. */
bool rn_address_is_one_machine(const uint8_t addr[16]);
/* Writes such an address as its own family has it, with a port in host order. Returns the length. */
socklen_t rn_address_unmap(const uint8_t addr[16], uint32_t scope, uint16_t port,
			   struct sockaddr_storage *out);
/* Writes an address as text into INET6_ADDRSTRLEN bytes; an IPv4 address, mapped or not, with dots. */
#define RN_ADDRESS_TEXT 46u
void rn_address_text(const uint8_t addr[16], char out[RN_ADDRESS_TEXT]);
/* The host of a socket address of any port. */
void rn_host_of(const struct sockaddr *addr, struct rn_host *out);
/* The host of an address that rn_address_map has written, and its scope. */
void rn_host_of_mapped(const uint8_t addr[16], uint32_t scope, struct rn_host *out);
/* The network whose machines can pose as each other, by datagrams and by names: an IPv4 /24, an IPv6 /64, a link. */
void rn_network_of(const struct sockaddr *addr, struct rn_host *out);
bool rn_host_equal(const struct rn_host *a, const struct rn_host *b);
/* True if it stands for all addresses of a /64. */
bool rn_host_is_network(const struct rn_host *host);
/* For logs: "192.0.2.1", "2001:db8::/64", "fe80::1%2". */
#define RN_HOST_TEXT 64u
void rn_host_text(const struct rn_host *host, char out[RN_HOST_TEXT]);

/*
 * A table of objects that are found by their hosts, at most one each. The hash has a random key, so that nobody can aim
 * at one bucket. The owner of the table has the objects and a lock.
 */
#define RN_HOST_BUCKETS 1024u
struct rn_host_entry {
	LIST_ENTRY(rn_host_entry) link;
	struct rn_host host;
};
LIST_HEAD(rn_host_bucket, rn_host_entry);

struct rn_host_table {
	uint8_t key[16];
	struct rn_host_bucket bucket[RN_HOST_BUCKETS];
};

uint64_t rn_host_hash(const struct rn_host *host, const uint8_t key[16]);
void rn_host_table_init(struct rn_host_table *t);
struct rn_host_entry *rn_host_find(const struct rn_host_table *t, const struct rn_host *host);
/* The entry has its host set. */
void rn_host_add(struct rn_host_table *t, struct rn_host_entry *entry);
void rn_host_remove(struct rn_host_entry *entry);

#endif
