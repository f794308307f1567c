/* SPDX-License-Identifier: BSD-2-Clause */
/* COPY_NOTIFY: whom it lets read which file, and each of its errors. The fixture names 127.0.0.1. */
#include "tests/unit/nfs3_suite.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/copy_source.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_copy_notify);

#define NL4_NAME 1u
#define NL4_URL 2u
#define NL4_NETADDR 3u
#define NAMED "127.0.0.1.8.1"

static struct op_client client;
static struct op_file file;

static void start(void)
{
	struct op_owner o = { &client, "owner", 1 };
	struct op_how how = { .fh = &f->root, .name = "file", .access = OPEN4_SHARE_ACCESS_READ };

	cr_assert_eq(op_client_new(f, &client, 2, "copies"), NFS4_OK);
	make_file("file", "0123456789", 0644);
	cr_assert_eq(op_open(f, &o, &how, &file), NFS4_OK);
}

static uint32_t notify_at(const struct vfs_fh *fh, const struct nfs4_stateid *sid, const char *addr)
{
	op_begin(f, &client);
	fix4_putfh(f, fh);
	fix4_op(f, OP_COPY_NOTIFY);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, NL4_NETADDR);
	xdr_put_opaque(&f->out, "tcp", 3);
	xdr_put_opaque(&f->out, addr, (uint32_t)strlen(addr));
	return fix4_send(f);
}

static uint32_t notify(const struct nfs4_stateid *sid)
{
	return notify_at(&file.fh, sid, NAMED);
}

static uint32_t notify_by_text(uint32_t type, const char *text)
{
	op_begin(f, &client);
	fix4_putfh(f, &file.fh);
	fix4_op(f, OP_COPY_NOTIFY);
	fix4_stateid(f, &file.sid);
	xdr_put_u32(&f->out, type);
	xdr_put_opaque(&f->out, text, (uint32_t)strlen(text));
	return fix4_send(f);
}

Test(nfs4_copy_notify, gives_a_stateid_and_an_address)
{
	struct nfs4_stateid sid;

	NEED_FIXTURE();
	start();
	cr_assert_eq(notify(&file.sid), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_COPY_NOTIFY), NFS4_OK);
	cr_expect_eq(xdr_get_u64(&f->in), 90, "a lease");
	cr_expect_eq(xdr_get_u32(&f->in), 0);
	nfs4_get_stateid(&f->in, &sid);
	cr_expect_neq(memcmp(&sid, &file.sid, sizeof(sid)), 0);
	cr_expect_eq(xdr_get_u32(&f->in), 1);
	cr_expect_eq(xdr_get_u32(&f->in), NL4_NETADDR);
}

Test(nfs4_copy_notify, only_servers_that_are_named)
{
	NEED_FIXTURE();
	start();
	cr_expect_eq(notify_at(&file.fh, &file.sid, "127.0.0.2.8.1"), NFS4ERR_ACCESS);
	cr_expect_eq(notify_at(&file.fh, &file.sid, "127.0.0.1.8"), NFS4ERR_ACCESS);
	cr_expect_eq(notify_at(&file.fh, &file.sid, ""), NFS4ERR_ACCESS);
	cr_expect_eq(notify_by_text(NL4_NAME, "localhost"), NFS4ERR_ACCESS);
	cr_expect_eq(notify_by_text(NL4_URL, "nfs://127.0.0.1/"), NFS4ERR_ACCESS);
	cr_expect_eq(notify_by_text(7, "127.0.0.1"), NFS4ERR_BADXDR);
}

Test(nfs4_copy_notify, stateids)
{
	static const struct nfs4_stateid anonymous;
	struct nfs4_stateid sid;
	struct op_owner o = { &client, "writer", 1 };
	struct op_how how = { .fh = &f->root, .name = "file", .access = OPEN4_SHARE_ACCESS_WRITE };
	struct op_file written;

	NEED_FIXTURE();
	start();
	cr_expect_eq(notify(&anonymous), NFS4ERR_BAD_STATEID);
	sid = file.sid;
	sid.seqid += 7;
	cr_expect_eq(notify(&sid), NFS4ERR_BAD_STATEID);
	sid = file.sid;
	memset(sid.other, 7, sizeof(sid.other));
	cr_expect_eq(notify(&sid), NFS4ERR_BAD_STATEID);
	how.fh = &f->root;
	cr_assert_eq(op_open(f, &o, &how, &written), NFS4_OK);
	cr_assert_eq(op_downgrade(f, &o, &written, OPEN4_SHARE_ACCESS_WRITE, 0), NFS4_OK);
	sid = written.sid;
	sid.seqid--;
	cr_expect_eq(notify(&sid), NFS4ERR_OLD_STATEID);
}

Test(nfs4_copy_notify, regular_files_only)
{
	struct vfs_fh link, fifo;

	NEED_FIXTURE();
	start();
	cr_assert_eq(symlink("to", fix_path(f, "link")), 0);
	link = handle("link");
	cr_expect_eq(notify_at(&f->root, &file.sid, NAMED), NFS4ERR_ISDIR);
	cr_expect_eq(notify_at(&link, &file.sid, NAMED), NFS4ERR_SYMLINK);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0644), 0);
	fifo = handle("fifo");
	cr_expect_eq(notify_at(&fifo, &file.sid, NAMED), NFS4ERR_WRONG_TYPE);
}

/* Opens the file from another host, and takes copy sources of it. Returns those that it got. */
static unsigned take_sources(unsigned host, unsigned n)
{
	struct op_owner o = { &client, "owner", 1 };
	struct op_how how = { .fh = &f->root, .name = "file", .access = OPEN4_SHARE_ACCESS_READ };
	struct sockaddr_in *peer = (struct sockaddr_in *)&f->conn.peer;
	char name[16];
	unsigned got = 0;

	*peer = (struct sockaddr_in){ .sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(0x7f000100u + host) };
	snprintf(name, sizeof(name), "host %u", host);
	cr_assert_eq(op_client_new(f, &client, 2, name), NFS4_OK);
	cr_assert_eq(op_open(f, &o, &how, &file), NFS4_OK);
	for (unsigned i = 0; i < n; i++)
		got += notify(&file.sid) == NFS4_OK;
	return got;
}

Test(nfs4_copy_notify, sixteen_hosts_do_not_fill_the_table)
{
	const unsigned hosts = NFS4_COPY_SOURCES_MAX / NFS4_COPY_SOURCES_OF_HOST;

	NEED_FIXTURE();
	make_file("file", "0123456789", 0644);
	for (unsigned i = 0; i < hosts; i++)
		cr_expect_eq(take_sources(i, NFS4_COPY_SOURCES_OF_HOST + 1),
			     NFS4_COPY_SOURCES_OF_HOST + 1, "the host's oldest makes room");
	cr_expect_eq(take_sources(hosts, 3), 3);
	cr_expect_eq(nfs4_copy_sources_count(f->server4->copy_sources), NFS4_COPY_SOURCES_MAX);
}
