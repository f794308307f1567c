/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"

uint64_t sample_clientid = 1;
static struct vfs_fh file_fh, link_fh;

static void put_sid(struct fixture *f)
{
	static const struct nfs4_stateid anonymous;

	fix4_stateid(f, &anonymous);
}

static void put_u32(struct fixture *f)
{
	xdr_put_u32(&f->out, 1);
}

static void put_u64(struct fixture *f)
{
	xdr_put_u64(&f->out, 1);
}

static void put_device(struct fixture *f)
{
	static const uint8_t id[NFS4_DEVICEID_SIZE];

	xdr_put_fixed(&f->out, id, sizeof(id));
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 0);
}

static void put_layoutget(struct fixture *f)
{
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, LAYOUTIOMODE4_READ);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u64(&f->out, 0);
	put_sid(f);
	xdr_put_u32(&f->out, 4096);
}

static void put_layoutreturn(struct fixture *f)
{
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, LAYOUTIOMODE4_ANY);
	xdr_put_u32(&f->out, LAYOUT4_RET_REC_FILE);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	put_sid(f);
	xdr_put_u32(&f->out, 0);
}

static void put_layoutcommit(struct fixture *f)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u32(&f->out, 0);
	put_sid(f);
	xdr_put_u32(&f->out, 0); /* no last byte, no time */
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, 0);
}

static void put_layouterror(struct fixture *f)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	put_sid(f);
	xdr_put_u32(&f->out, 0);
}

static void put_layoutstats(struct fixture *f)
{
	static const uint8_t id[NFS4_DEVICEID_SIZE];

	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	put_sid(f);
	for (unsigned i = 0; i < 4; i++)
		xdr_put_u64(&f->out, 0);
	xdr_put_fixed(&f->out, id, sizeof(id));
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, 0);
}

static void put_name(struct fixture *f)
{
	fix4_name(f, "nothing");
}

static void put_made(struct fixture *f)
{
	fix4_name(f, "made");
}

static void put_range(struct fixture *f)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 1);
}

static void put_sid_range(struct fixture *f)
{
	put_sid(f);
	put_range(f);
}

void sample_put_owner(struct fixture *f)
{
	static unsigned n;
	char name[16];

	snprintf(name, sizeof(name), "owner %u", n++);
	xdr_put_u64(&f->out, sample_clientid);
	fix4_name(f, name);
}

static void put_no_attrs(struct fixture *f)
{
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

static void put_close(struct fixture *f)
{
	put_u32(f);
	put_sid(f);
}

static void put_confirm(struct fixture *f)
{
	put_sid(f);
	put_u32(f);
}

static void put_downgrade(struct fixture *f)
{
	put_confirm(f);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
	xdr_put_u32(&f->out, 0);
}

static void put_commit(struct fixture *f)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

static void put_create(struct fixture *f)
{
	xdr_put_u32(&f->out, NF4DIR);
	fix4_name(f, "made");
	put_no_attrs(f);
}

static void put_getattr(struct fixture *f)
{
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_TYPE);
}

static void put_verify(struct fixture *f)
{
	put_getattr(f);
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, NF4DIR);
}

static void put_nverify(struct fixture *f)
{
	put_getattr(f);
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, NF4REG);
}

static void put_lock(struct fixture *f)
{
	xdr_put_u32(&f->out, 1); /* READ_LT */
	xdr_put_bool(&f->out, false);
	put_range(f);
	xdr_put_bool(&f->out, false);
	put_confirm(f);
}

static void put_lockt(struct fixture *f)
{
	xdr_put_u32(&f->out, 1);
	put_range(f);
	sample_put_owner(f);
}

static void put_locku(struct fixture *f)
{
	xdr_put_u32(&f->out, 1);
	put_close(f);
	put_range(f);
}

static void put_open(struct fixture *f)
{
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
	xdr_put_u32(&f->out, 0);
	sample_put_owner(f);
	xdr_put_u32(&f->out, 0); /* OPEN4_NOCREATE */
	xdr_put_u32(&f->out, 0); /* CLAIM_NULL */
	fix4_name(f, "file");
}

static void put_putfh(struct fixture *f)
{
	xdr_put_opaque(&f->out, f->root.data, f->root.len);
}

static void put_read(struct fixture *f)
{
	put_sid(f);
	put_commit(f);
}

static void put_readdir(struct fixture *f)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1000);
	xdr_put_u32(&f->out, 1000);
	xdr_put_u32(&f->out, 0);
}

static void put_rename(struct fixture *f)
{
	fix4_name(f, "nothing");
	fix4_name(f, "other");
}

static void put_setattr(struct fixture *f)
{
	put_sid(f);
	put_no_attrs(f);
}

static void put_setclientid(struct fixture *f)
{
	xdr_put_fixed(&f->out, "verifier", NFS4_VERIFIER_SIZE);
	fix4_name(f, "sample");
	xdr_put_u32(&f->out, 0x40000000);
	fix4_name(f, "tcp");
	fix4_name(f, "192.0.2.1.3.232");
	xdr_put_u32(&f->out, 1);
}

static void put_setclientid_confirm(struct fixture *f)
{
	put_u64(f);
	xdr_put_fixed(&f->out, "verifier", NFS4_VERIFIER_SIZE);
}

static void put_write(struct fixture *f)
{
	put_sid(f);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 2);
	xdr_put_opaque(&f->out, "x", 1);
}

static void put_backchannel(struct fixture *f)
{
	xdr_put_u32(&f->out, 0x40000000);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, RPC_AUTH_NONE);
}

static void put_session(struct fixture *f)
{
	xdr_put_fixed(&f->out, "no session at all", NFS4_SESSIONID_SIZE);
}

static void put_bind_conn(struct fixture *f)
{
	put_session(f);
	xdr_put_u32(&f->out, 1);
	xdr_put_bool(&f->out, false);
}

static void put_exchange_id(struct fixture *f)
{
	xdr_put_fixed(&f->out, "verifier", NFS4_VERIFIER_SIZE);
	fix4_name(f, "sample");
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

static void put_channel(struct fixture *f)
{
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&f->out, i == 0 ? 0 : 4096);
	xdr_put_u32(&f->out, 0);
}

static void put_create_session(struct fixture *f)
{
	xdr_put_u64(&f->out, 1);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 0);
	put_channel(f);
	put_channel(f);
	put_backchannel(f);
}

static void put_sequence(struct fixture *f)
{
	put_session(f);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	xdr_put_bool(&f->out, false);
}

static void put_ssv(struct fixture *f)
{
	xdr_put_opaque(&f->out, "ssv!", 4);
	xdr_put_opaque(&f->out, "digest", 6);
}

static void put_test_stateid(struct fixture *f)
{
	xdr_put_u32(&f->out, 1);
	put_sid(f);
}

static void put_advise(struct fixture *f)
{
	put_sid_range(f);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1);
}

static void put_want(struct fixture *f)
{
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_WANT_READ_DELEG);
	xdr_put_u32(&f->out, 4); /* CLAIM_FH */
}

static void put_get_dir(struct fixture *f)
{
	xdr_put_bool(&f->out, true);
	xdr_put_u32(&f->out, 0); /* notifications */
	xdr_put_u64(&f->out, 0); /* two times */
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0); /* attributes */
	xdr_put_u32(&f->out, 0);
}

static void put_seek(struct fixture *f)
{
	put_sid(f);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

static void put_read_plus(struct fixture *f)
{
	put_sid(f);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 5);
}

/* Two blocks of two bytes, without numbers */
static void put_write_same(struct fixture *f)
{
	put_sid(f);
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, 2);
	xdr_put_u64(&f->out, 2);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, 1);
	xdr_put_opaque(&f->out, "x", 1);
}

static void put_xattr(struct fixture *f)
{
	fix4_name(f, "key");
}

static void put_setxattr(struct fixture *f)
{
	xdr_put_u32(&f->out, 0);
	fix4_name(f, "key");
	xdr_put_opaque(&f->out, "value", 5);
}

static void put_listxattrs(struct fixture *f)
{
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1000);
}

static void put_clone(struct fixture *f)
{
	put_sid(f);
	put_sid(f);
	xdr_put_u64(&f->out, 0);
	put_range(f);
}

static void put_copy(struct fixture *f)
{
	put_clone(f);
	xdr_put_bool(&f->out, true);
	xdr_put_bool(&f->out, true);
	xdr_put_u32(&f->out, 0);
}

static void put_copy_notify(struct fixture *f)
{
	put_sid(f);
	xdr_put_u32(&f->out, 3); /* NL4_NETADDR */
	xdr_put_opaque(&f->out, "tcp", 3);
	xdr_put_opaque(&f->out, "127.0.0.1.8.1", 13);
}

/* clang-format off */
const struct sample samples[] = {
	{ OP_ACCESS, SAMPLE_DIR, 0, put_u32 },
	{ OP_CLOSE, SAMPLE_FILE, 0, put_close },
	{ OP_COMMIT, SAMPLE_FILE, 0, put_commit },
	{ OP_CREATE, SAMPLE_DIR, 0, put_create },
	{ OP_DELEGPURGE, 0, 0, put_u64 },
	{ OP_DELEGRETURN, SAMPLE_FILE, 0, put_sid },
	{ OP_GETATTR, SAMPLE_DIR, 0, put_getattr },
	{ OP_GETFH, SAMPLE_DIR, 0, NULL },
	{ OP_LINK, SAMPLE_DIR, SAMPLE_FILE, put_made },
	{ OP_LOCK, SAMPLE_FILE, 0, put_lock },
	{ OP_LOCKT, SAMPLE_FILE, 0, put_lockt },
	{ OP_LOCKU, SAMPLE_FILE, 0, put_locku },
	{ OP_LOOKUP, SAMPLE_DIR, 0, put_name },
	{ OP_LOOKUPP, SAMPLE_DIR, 0, NULL },
	{ OP_NVERIFY, SAMPLE_DIR, 0, put_nverify },
	{ OP_OPEN, SAMPLE_DIR, 0, put_open },
	{ OP_OPENATTR, SAMPLE_DIR, 0, put_u32 },
	{ OP_OPEN_CONFIRM, SAMPLE_FILE, 0, put_confirm },
	{ OP_OPEN_DOWNGRADE, SAMPLE_FILE, 0, put_downgrade },
	{ OP_PUTFH, 0, 0, put_putfh },
	{ OP_PUTPUBFH, 0, 0, NULL },
	{ OP_PUTROOTFH, 0, 0, NULL },
	{ OP_READ, SAMPLE_FILE, 0, put_read },
	{ OP_READDIR, SAMPLE_DIR, 0, put_readdir },
	{ OP_READLINK, SAMPLE_LINK, 0, NULL },
	{ OP_REMOVE, SAMPLE_DIR, 0, put_name },
	{ OP_RENAME, SAMPLE_DIR, SAMPLE_DIR, put_rename },
	{ OP_RENEW, 0, 0, put_u64 },
	{ OP_RESTOREFH, SAMPLE_DIR, SAMPLE_DIR, NULL },
	{ OP_SAVEFH, SAMPLE_DIR, 0, NULL },
	{ OP_SECINFO, SAMPLE_DIR, 0, put_name },
	{ OP_SETATTR, SAMPLE_FILE, 0, put_setattr },
	{ OP_SETCLIENTID, 0, 0, put_setclientid },
	{ OP_SETCLIENTID_CONFIRM, 0, 0, put_setclientid_confirm },
	{ OP_VERIFY, SAMPLE_DIR, 0, put_verify },
	{ OP_WRITE, SAMPLE_FILE, 0, put_write },
	{ OP_RELEASE_LOCKOWNER, 0, 0, sample_put_owner },
	{ OP_BACKCHANNEL_CTL, 0, 0, put_backchannel },
	{ OP_BIND_CONN_TO_SESSION, 0, 0, put_bind_conn },
	{ OP_EXCHANGE_ID, 0, 0, put_exchange_id },
	{ OP_CREATE_SESSION, 0, 0, put_create_session },
	{ OP_DESTROY_SESSION, 0, 0, put_session },
	{ OP_FREE_STATEID, 0, 0, put_sid },
	{ OP_GET_DIR_DELEGATION, SAMPLE_DIR, 0, put_get_dir },
	{ OP_GETDEVICEINFO, 0, 0, put_device },
	{ OP_GETDEVICELIST, SAMPLE_DIR, 0, NULL },
	{ OP_LAYOUTCOMMIT, SAMPLE_FILE, 0, put_layoutcommit },
	{ OP_LAYOUTGET, SAMPLE_FILE, 0, put_layoutget },
	{ OP_LAYOUTRETURN, SAMPLE_FILE, 0, put_layoutreturn },
	{ OP_SECINFO_NO_NAME, SAMPLE_DIR, 0, put_u32 },
	{ OP_SEQUENCE, 0, 0, put_sequence },
	{ OP_SET_SSV, 0, 0, put_ssv },
	{ OP_TEST_STATEID, 0, 0, put_test_stateid },
	{ OP_WANT_DELEGATION, SAMPLE_FILE, 0, put_want },
	{ OP_DESTROY_CLIENTID, 0, 0, put_u64 },
	{ OP_RECLAIM_COMPLETE, 0, 0, put_u32 },
	{ OP_ALLOCATE, SAMPLE_FILE, 0, put_sid_range },
	{ OP_COPY, SAMPLE_FILE, SAMPLE_FILE, put_copy },
	{ OP_COPY_NOTIFY, SAMPLE_FILE, 0, put_copy_notify },
	{ OP_DEALLOCATE, SAMPLE_FILE, 0, put_sid_range },
	{ OP_IO_ADVISE, SAMPLE_FILE, 0, put_advise },
	{ OP_LAYOUTERROR, SAMPLE_FILE, 0, put_layouterror },
	{ OP_LAYOUTSTATS, SAMPLE_FILE, 0, put_layoutstats },
	{ OP_OFFLOAD_CANCEL, SAMPLE_FILE, 0, put_sid },
	{ OP_OFFLOAD_STATUS, SAMPLE_FILE, 0, put_sid },
	{ OP_READ_PLUS, SAMPLE_FILE, 0, put_read_plus },
	{ OP_SEEK, SAMPLE_FILE, 0, put_seek },
	{ OP_WRITE_SAME, SAMPLE_FILE, 0, put_write_same },
	{ OP_CLONE, SAMPLE_FILE, SAMPLE_FILE, put_clone },
	{ OP_GETXATTR, SAMPLE_FILE, 0, put_xattr },
	{ OP_SETXATTR, SAMPLE_FILE, 0, put_setxattr },
	{ OP_LISTXATTRS, SAMPLE_FILE, 0, put_listxattrs },
	{ OP_REMOVEXATTR, SAMPLE_FILE, 0, put_xattr },
};
/* clang-format on */
const unsigned nsamples = rn_array_size(samples);

const struct nfs4_op *sample_row(const struct sample *s, uint32_t minor)
{
	return nfs4_op_find(s->num, minor);
}

bool sample_runs(const struct sample *s, uint32_t minor)
{
	const struct nfs4_op *op = sample_row(s, minor);

	return op && nfs4_op_is_done(op, minor);
}

void sample_make(struct fixture *f)
{
	int fd = open(fix_path(f, "file"), O_CREAT | O_WRONLY, 0644);

	if (fd < 0 || write(fd, "0123456789", 10) != 10 || symlink("to", fix_path(f, "link")) != 0)
		perror("samples");
	close(fd);
	fix_lookup(f, &f->root, "file", &file_fh);
	fix_lookup(f, &f->root, "link", &link_fh);
}

static void put_place(struct fixture *f, enum sample_what what)
{
	fix4_putfh(f, what == SAMPLE_LINK ? &link_fh : what == SAMPLE_FILE ? &file_fh : &f->root);
}

void sample_put_places(struct fixture *f, const struct sample *s)
{
	if (s->saved != SAMPLE_NO_FH) {
		put_place(f, s->saved);
		fix4_op(f, OP_SAVEFH);
	}
	if (s->current != SAMPLE_NO_FH)
		put_place(f, s->current);
}

void sample_put(struct fixture *f, const struct sample *s)
{
	fix4_op(f, s->num);
	if (s->put)
		s->put(f);
}
