/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of devices and their addresses. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/cm_hooks.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp.h"
#include "tools/softverbs/sv_device.h"

#undef ibv_get_device_list

#define DEFAULT_DEVICES "sv0=127.0.0.0/8,::1"

/* Parses ADDRESS or ADDRESS/BITS. */
static int parse_net(char *text, struct sv_net *net)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&net->addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&net->addr;
	char *slash = strchr(text, '/');

	if (slash)
		*slash++ = '\0';
	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		net->addr.ss_family = AF_INET;
		net->prefix = 32;
	} else if (inet_pton(AF_INET6, text, &in6->sin6_addr) == 1) {
		net->addr.ss_family = AF_INET6;
		net->prefix = 128;
	} else {
		return -EINVAL;
	}
	unsigned long bits = slash ? strtoul(slash, NULL, 10) : net->prefix;
	if (bits > net->prefix)
		return -EINVAL;
	net->prefix = (unsigned)bits;
	return 0;
}

static void name_device(struct sv_device *dev, const char *name)
{
	struct ibv_device *ibv = &dev->ibv;

	ibv->node_type = dev->iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	ibv->transport_type = dev->iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	snprintf(ibv->name, sizeof(ibv->name), "%.60s", name);
	snprintf(ibv->dev_name, sizeof(ibv->dev_name), "softverbs%u", dev->index);
	snprintf(ibv->dev_path, sizeof(ibv->dev_path), "%.180s/%.60s", sv_fabric.dir, name);
	snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "%.180s/%.60s", sv_fabric.dir, name);
}

/* Parses NAME=NET[,NET...][:iwarp|:siw|:ib]. */
static int parse_device(char *text)
{
	char *nets = strchr(text, '='), *save, *s;
	struct sv_device *dev = calloc(1, sizeof(*dev));
	int err = 0;

	if (!dev || !nets) {
		free(dev);
		return nets ? -ENOMEM : -EINVAL;
	}
	*nets++ = '\0';
	char *kind = strrchr(nets, ':');
	const bool siw = kind && strcmp(kind, ":siw") == 0;
	if (siw || (kind && (strcmp(kind, ":iwarp") == 0 || strcmp(kind, ":ib") == 0))) {
		dev->siw = siw;
		dev->iwarp = siw || strcmp(kind, ":iwarp") == 0;
		*kind = '\0';
	}
	for (s = strtok_r(nets, ",", &save); s && !err; s = strtok_r(NULL, ",", &save))
		err = dev->nnets < SV_DEVICE_ADDRS ? parse_net(s, &dev->net[dev->nnets++]) : -E2BIG;
	if (err || !dev->nnets) {
		free(dev);
		return err ? err : -EINVAL;
	}
	LIST_INIT(&dev->contexts);
	dev->removed = atoi(sv_env("SOFTVERBS_LATE", "0")) != 0;
	dev->index = sv_fabric.ndevices++;
	name_device(dev, text);
	TAILQ_INSERT_TAIL(&sv_fabric.devices, dev, link);
	return 0;
}

int sv_devices_init(void)
{
	char *copy = strdup(sv_env("SOFTVERBS_DEVICES", DEFAULT_DEVICES)), *save, *s;
	int err = copy ? 0 : -ENOMEM;

	TAILQ_INIT(&sv_fabric.devices);
	sv_fabric.ndevices = 0;
	if (copy)
		for (s = strtok_r(copy, " ;", &save); s && !err; s = strtok_r(NULL, " ;", &save))
			err = parse_device(s);
	free(copy);
	return err;
}

static const uint8_t *address_bytes(const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET)
		return (const uint8_t *)&((const struct sockaddr_in *)addr)->sin_addr;
	return (const uint8_t *)&((const struct sockaddr_in6 *)addr)->sin6_addr;
}

static bool is_inside(const struct sv_net *net, const struct sockaddr *addr)
{
	unsigned whole = net->prefix / 8, bits = net->prefix % 8;

	if (net->addr.ss_family != addr->sa_family)
		return false;
	const uint8_t *a = address_bytes((const struct sockaddr *)&net->addr);
	const uint8_t *b = address_bytes(addr);
	if (memcmp(a, b, whole) != 0)
		return false;
	return !bits || (a[whole] ^ b[whole]) >> (8 - bits) == 0;
}

struct sv_device *sv_device_for_addr(const struct sockaddr *addr)
{
	struct sv_device *dev;

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return NULL;
	TAILQ_FOREACH (dev, &sv_fabric.devices, link)
		for (unsigned i = 0; i < dev->nnets && !dev->removed; i++)
			if (is_inside(&dev->net[i], addr))
				return dev;
	return NULL;
}

/* For an IPv4 network, returns its first host. */
int sv_device_addr(const struct sv_device *dev, int family, struct sockaddr_storage *out)
{
	for (unsigned i = 0; i < dev->nnets; i++) {
		const struct sv_net *net = &dev->net[i];
		if (net->addr.ss_family != family)
			continue;
		*out = net->addr;
		if (family == AF_INET && net->prefix < 32)
			((struct sockaddr_in *)out)->sin_addr.s_addr |= htonl(1);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

SV_EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	struct sv_device *dev;
	int n = 0, err = sv_open();
	struct ibv_device **list = err ? NULL : calloc(sv_fabric.ndevices + 1, sizeof(*list));

	if (num)
		*num = 0;
	if (!list) {
		errno = err ? -err : ENOMEM;
		return NULL;
	}
	sv_lock();
	TAILQ_FOREACH (dev, &sv_fabric.devices, link)
		if (!dev->removed)
			list[n++] = &dev->ibv;
	sv_unlock();
	if (num)
		*num = n;
	return list;
}

SV_EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

SV_EXPORT const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

SV_EXPORT int ibv_get_device_index(struct ibv_device *device)
{
	return (int)sv_device_of(device)->index;
}

SV_EXPORT __be64 ibv_get_device_guid(struct ibv_device *device)
{
	return htobe64(0x0200737600000001u + sv_device_of(device)->index);
}

void sv_devices_plug(void)
{
	struct sv_device *dev;

	TAILQ_FOREACH (dev, &sv_fabric.devices, link)
		if (LIST_EMPTY(&dev->contexts))
			dev->removed = false;
}

void sv_device_remove(struct sv_device *dev)
{
	struct sv_context *ctx;

	if (dev->removed)
		return;
	dev->removed = true;
	LIST_FOREACH (ctx, &dev->contexts, link)
		sv_async(ctx, IBV_EVENT_DEVICE_FATAL, NULL);
	sv_qps_device_removed(dev);
	sv_cm_device_removed(dev);
}
