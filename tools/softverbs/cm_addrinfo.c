/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_getaddrinfo(): the resolver's answer in librdmacm's form. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm.h"

SV_EXPORT void rdma_freeaddrinfo(struct rdma_addrinfo *res)
{
	while (res) {
		struct rdma_addrinfo *next = res->ai_next;
		free(res->ai_src_addr);
		free(res->ai_dst_addr);
		free(res->ai_src_canonname);
		free(res->ai_dst_canonname);
		free(res->ai_route);
		free(res->ai_connect);
		free(res);
		res = next;
	}
}

static int cm_addrinfo_copy(void **to, const void *from, size_t len)
{
	if (!from || !len)
		return 0;
	*to = malloc(len);
	if (!*to)
		return EAI_MEMORY;
	memcpy(*to, from, len);
	return 0;
}

static int cm_addrinfo_set_addr(struct rdma_addrinfo *r, bool passive, const struct sockaddr *sa,
				socklen_t n)
{
	int err;

	r->ai_family = sa->sa_family;
	if (passive) {
		err = cm_addrinfo_copy((void **)&r->ai_src_addr, sa, n);
		r->ai_src_len = n;
	} else {
		err = cm_addrinfo_copy((void **)&r->ai_dst_addr, sa, n);
		r->ai_dst_len = n;
	}
	return err;
}

static int cm_addrinfo_look_up(struct rdma_addrinfo *r, const char *node, const char *service,
			       int family)
{
	bool passive = r->ai_flags & RAI_PASSIVE;
	struct addrinfo hints = {
		.ai_family = family,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = (passive ? AI_PASSIVE : 0) |
			    (r->ai_flags & RAI_NUMERICHOST ? AI_NUMERICHOST : 0),
	};
	struct addrinfo *ai;
	int err = getaddrinfo(node, service, &hints, &ai);

	if (err)
		return err;
	err = cm_addrinfo_set_addr(r, passive, ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	return err;
}

static int cm_addrinfo_fill(struct rdma_addrinfo *r, const char *node, const char *service,
			    const struct rdma_addrinfo *h)
{
	int err = 0;

	r->ai_flags = h ? h->ai_flags : 0;
	r->ai_family = h ? h->ai_family : 0;
	r->ai_qp_type = h && h->ai_qp_type ? h->ai_qp_type : IBV_QPT_RC;
	r->ai_port_space = h && h->ai_port_space ? h->ai_port_space : RDMA_PS_TCP;
	if (r->ai_qp_type != IBV_QPT_RC)
		return EAI_SOCKTYPE;
	if (node || service)
		err = cm_addrinfo_look_up(r, node, service,
					  r->ai_flags & RAI_FAMILY ? r->ai_family : 0);
	if (err || !h)
		return err;
	if (!r->ai_src_addr && h->ai_src_len) {
		err = cm_addrinfo_copy((void **)&r->ai_src_addr, h->ai_src_addr, h->ai_src_len);
		r->ai_src_len = h->ai_src_len;
	}
	if (!err && !r->ai_dst_addr && h->ai_dst_len) {
		err = cm_addrinfo_copy((void **)&r->ai_dst_addr, h->ai_dst_addr, h->ai_dst_len);
		r->ai_dst_len = h->ai_dst_len;
	}
	return err;
}

SV_EXPORT int rdma_getaddrinfo(const char *node, const char *service,
			       const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	if (!node && !service && !hints)
		return cm_result(-EINVAL);
	struct rdma_addrinfo *r = calloc(1, sizeof(*r));
	if (!r)
		return EAI_MEMORY;
	int err = cm_addrinfo_fill(r, node, service, hints);
	if (err) {
		rdma_freeaddrinfo(r);
		return err;
	}
	*res = r;
	return 0;
}
