/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/dialer.h"

#include <errno.h>

#include "transport/tcp/tcp_server.h"

void dialer_init(struct dialer *d)
{
	pthread_mutex_init(&d->lock, NULL);
	d->tcp = NULL;
}

void dialer_fini(struct dialer *d)
{
	pthread_mutex_destroy(&d->lock);
}

/* The lock is held for system calls that do not wait, and keeps the transport alive. */
static int dialer_dial_tcp(void *ctx, const struct rpc_route *route, struct rpc_backchannel **out)
{
	struct dialer *d = ctx;
	int rc = -ENOTCONN;

	pthread_mutex_lock(&d->lock);
	if (d->tcp)
		rc = tcp_server_dial(d->tcp, route, out);
	pthread_mutex_unlock(&d->lock);
	return rc;
}

struct rpc_dialer dialer_view(struct dialer *d)
{
	return (struct rpc_dialer){ .dial = dialer_dial_tcp, .ctx = d };
}

void dialer_open(struct dialer *d, struct tcp_server *tcp)
{
	pthread_mutex_lock(&d->lock);
	d->tcp = tcp;
	pthread_mutex_unlock(&d->lock);
}

void dialer_close(struct dialer *d)
{
	dialer_open(d, NULL);
}
