/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/layout/data_server.h"

#include <endian.h>
#include <string.h>

/* Hash of bytes that all members have alike, so by a key that is no secret. */
static uint64_t plain_hash(const void *bytes, size_t len)
{
	static const uint8_t key[crypto_shorthash_KEYBYTES];
	uint8_t out[crypto_shorthash_BYTES];
	uint64_t hash;

	crypto_shorthash(out, bytes, len, key);
	memcpy(&hash, out, sizeof(hash));
	return le64toh(hash);
}

/* Members that can be data servers, in *all, which has room for NFS4_DEVICES_MAX. */
static unsigned get_members(const struct nfs4_server *srv, struct nfs4_member *all)
{
	const struct nfs4_cluster *cluster = srv->cfg.cluster;
	unsigned n, kept = 0;

	if (!nfs4_gives_layouts(srv))
		return 0;
	n = cluster->members(cluster->ctx, all, NFS4_DEVICES_MAX);
	for (unsigned i = 0; i < n; i++) {
		if (all[i].naddresses > 0 && (all[i].tcp_port || all[i].rdma_port))
			all[kept++] = all[i];
	}
	return kept;
}

static void set_id(const struct nfs4_member *m, uint8_t id[NFS4_DEVICEID_SIZE])
{
	struct {
		uint8_t address[NFS4_MEMBER_ADDRESSES][16];
		uint8_t name[sizeof(m->name)];
		uint16_t tcp_port, rdma_port;
	} what = { .tcp_port = htobe16(m->tcp_port), .rdma_port = htobe16(m->rdma_port) };
	const uint64_t run = htobe64(m->run);
	uint64_t hash;

	memcpy(what.address, m->address, 16 * (size_t)m->naddresses);
	memcpy(what.name, m->name, strnlen(m->name, sizeof(m->name)));
	hash = htobe64(plain_hash(&what, sizeof(what)));
	memcpy(id, &run, sizeof(run));
	memcpy(id + sizeof(run), &hash, sizeof(hash));
}

static uint64_t device_weight_of(const struct nfs4_member *m, const struct vfs_fh *fh)
{
	uint8_t what[VFS_FH_MAX + sizeof(m->name)];
	const size_t len = strnlen(m->name, sizeof(m->name));

	memcpy(what, fh->data, fh->len);
	memcpy(what + fh->len, m->name, len);
	return plain_hash(what, fh->len + len);
}

bool nfs4_device_of_file(const struct nfs4_server *srv, const struct vfs_fh *fh,
			 struct nfs4_device *out)
{
	struct nfs4_member all[NFS4_DEVICES_MAX];
	const unsigned n = get_members(srv, all);
	uint64_t most = 0;
	unsigned best = 0;

	for (unsigned i = 0; i < n; i++) {
		const uint64_t weight = device_weight_of(&all[i], fh);

		if (i == 0 || weight > most) {
			most = weight;
			best = i;
		}
	}
	if (n == 0)
		return false;
	out->member = all[best];
	set_id(&all[best], out->id);
	return true;
}

bool nfs4_device_find(const struct nfs4_server *srv, const uint8_t id[NFS4_DEVICEID_SIZE],
		      struct nfs4_device *out)
{
	struct nfs4_member all[NFS4_DEVICES_MAX];
	const unsigned n = get_members(srv, all);

	for (unsigned i = 0; i < n; i++) {
		set_id(&all[i], out->id);
		if (memcmp(out->id, id, sizeof(out->id)) == 0) {
			out->member = all[i];
			return true;
		}
	}
	return false;
}

unsigned nfs4_device_ids(const struct nfs4_server *srv,
			 uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE])
{
	struct nfs4_member all[NFS4_DEVICES_MAX];
	const unsigned n = get_members(srv, all);

	for (unsigned i = 0; i < n; i++)
		set_id(&all[i], ids[i]);
	return n;
}
