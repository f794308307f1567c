/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of clients and peers in one shape: IPv4-mapped IPv6 is IPv4. */
#ifndef RINGNFS_CONF_EXPORTS_ADDR_H
#define RINGNFS_CONF_EXPORTS_ADDR_H

#include <sys/socket.h>

#include "conf/exports.h"

enum { EXP_ADDR_STRLEN = 46 };

/* Address of a sockaddr; false for a family without one. */
bool exp_addr_from_sockaddr(const struct sockaddr *sa, struct exp_addr *addr);
/* Address of a text, IPv4 or IPv6; false when it is neither. */
bool exp_addr_from_text(const char *text, struct exp_addr *addr);
void exp_addr_to_text(const struct exp_addr *addr, char text[EXP_ADDR_STRLEN]);
void exp_addr_to_sockaddr(const struct exp_addr *addr, struct sockaddr_storage *sa);

bool exp_addr_equal(const struct exp_addr *a, const struct exp_addr *b);
/* True if addr is within net/prefix. Families never mix. */
bool exp_addr_within(const struct exp_addr *addr, const struct exp_addr *net, unsigned prefix);
/* Clear the bits past the prefix; true when there were any. */
bool exp_addr_mask(struct exp_addr *addr, unsigned prefix);

#endif
