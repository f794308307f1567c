/* SPDX-License-Identifier: BSD-2-Clause */
/* Filehandles put and saved, names looked up, and directories that change: CREATE, REMOVE, RENAME,
 * LINK. */
#include <netinet/in.h>
#include <sys/sysmacros.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"
#include "tests/unit/nfs4_text.h"

/* Each test runs in each minor version. */
static struct fix4_session session;
static uint32_t test_minor;

static void start(uint32_t minor)
{
	test_minor = minor;
	suite_start();
	if (f && minor > 0 && fix4_session_new(f, &session, minor, "test", true) != NFS4_OK)
		why_not = "no session";
}

static void start_0(void)
{
	start(0);
}

static void start_1(void)
{
	start(1);
}

static void start_2(void)
{
	start(2);
}

TestSuite(nfs4_names_0, .init = start_0, .fini = suite_stop, .timeout = 60);
TestSuite(nfs4_names_1, .init = start_1, .fini = suite_stop, .timeout = 60);
TestSuite(nfs4_names_2, .init = start_2, .fini = suite_stop, .timeout = 60);

#define TEST_EACH_MINOR(name)                                                                      \
	static void in_each_minor_##name(void);                                                    \
	Test(nfs4_names_0, name)                                                                   \
	{                                                                                          \
		in_each_minor_##name();                                                            \
	}                                                                                          \
	Test(nfs4_names_1, name)                                                                   \
	{                                                                                          \
		in_each_minor_##name();                                                            \
	}                                                                                          \
	Test(nfs4_names_2, name)                                                                   \
	{                                                                                          \
		in_each_minor_##name();                                                            \
	}                                                                                          \
	static void in_each_minor_##name(void)

static struct fix4_session *by(void)
{
	return test_minor > 0 ? &session : NULL;
}

static void begin(void)
{
	fix4_begin(f, by());
}

static void put_bytes(const char *bytes, size_t len)
{
	xdr_put_opaque(&f->out, bytes, (uint32_t)len);
}

static void put_no_attrs(void)
{
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
}

static void put_mode(uint32_t mode)
{
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 1u << (FATTR4_MODE - 32));
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, mode);
}

/* Puts an operation with the given bytes as its (last) name, ready to be sent. The directory is the
 * root, and its other arguments are valid. */
static void begin_with_name(uint32_t op, const char *name, size_t len)
{
	struct vfs_fh file;

	make_file("beside", "x", 0644);
	file = handle("beside");
	begin();
	fix4_putfh(f, op == OP_LINK ? &file : &f->root);
	fix4_op(f, OP_SAVEFH);
	fix4_putfh(f, &f->root);
	fix4_op(f, op);
	if (op == OP_CREATE)
		xdr_put_u32(&f->out, NF4DIR);
	if (op == OP_RENAME)
		fix4_name(f, "beside");
	put_bytes(name, len);
	if (op == OP_CREATE)
		put_no_attrs();
}

static const uint32_t name_ops[] = {
	OP_LOOKUP, OP_CREATE, OP_REMOVE, OP_RENAME, OP_LINK, OP_SECINFO
};
#define NAME_OPS (sizeof(name_ops) / sizeof(name_ops[0]))

TEST_EACH_MINOR(names_that_cannot_be)
{
	static char longest[300];
	const struct {
		const char *name;
		size_t len;
		uint32_t status;
	} rows[] = {
		{ "", 0, NFS4ERR_INVAL },
		{ ".", 1, NFS4ERR_BADNAME },
		{ "..", 2, NFS4ERR_BADNAME },
		{ "a/b", 3, NFS4ERR_BADCHAR },
		{ "/", 1, NFS4ERR_BADCHAR },
		{ "a\0b", 3, NFS4ERR_BADCHAR },
		{ "\0", 1, NFS4ERR_BADCHAR },
		{ longest, 256, NFS4ERR_NAMETOOLONG },
		{ longest, 300, NFS4ERR_NAMETOOLONG },
	};

	NEED_FIXTURE();
	memset(longest, 'n', sizeof(longest));
	for (size_t o = 0; o < NAME_OPS; o++) {
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			begin_with_name(name_ops[o], rows[i].name, rows[i].len);
			cr_expect_eq(fix4_send(f), rows[i].status, "%s, name %zu",
				     nfs4_op_text(name_ops[o]), i);
		}
	}
	/* The first name of RENAME is the invalid one. */
	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_SAVEFH);
	fix4_op(f, OP_RENAME);
	fix4_name(f, "..");
	fix4_name(f, "x");
	cr_expect_eq(fix4_send(f), NFS4ERR_BADNAME);
}

/* Names may be any bytes, as Linux clients store them. */
TEST_EACH_MINOR(names_that_are_no_utf8)
{
	static const char *const names[] = { "caf\xe9", "\xff\xfe", "\xc3\x28", "...",
					     ".x",	" ",	    "a\nb",	"\\" };

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		begin_with_name(OP_CREATE, names[i], strlen(names[i]));
		cr_expect_eq(fix4_send(f), NFS4_OK, "name %zu", i);
		cr_expect(exists(names[i]), "name %zu", i);
		begin_with_name(OP_LOOKUP, names[i], strlen(names[i]));
		cr_expect_eq(fix4_send(f), NFS4_OK, "name %zu", i);
	}
}

TEST_EACH_MINOR(the_longest_name)
{
	char name[256];

	NEED_FIXTURE();
	memset(name, 'n', 255);
	name[255] = '\0';
	begin_with_name(OP_LOOKUP, name, 255);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOENT);
	begin_with_name(OP_CREATE, name, 255);
	cr_expect_eq(fix4_send(f), NFS4_OK);
	cr_expect(exists(name));
}

TEST_EACH_MINOR(in_what_is_no_directory)
{
	struct vfs_fh fh[3];

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	cr_assert_eq(symlink("file", fix_path(f, "link")), 0);
	cr_assert_eq(mkfifo(fix_path(f, "fifo"), 0666), 0);
	fh[0] = handle("file");
	fh[1] = handle("link");
	fh[2] = handle("fifo");
	for (size_t o = 0; o < NAME_OPS; o++) {
		for (unsigned i = 0; i < 3; i++) {
			const uint32_t op = name_ops[o],
				       want = i == 1 ? NFS4ERR_SYMLINK : NFS4ERR_NOTDIR;

			begin();
			fix4_putfh(f, op == OP_LINK ? &fh[0] : &f->root);
			fix4_op(f, OP_SAVEFH);
			fix4_putfh(f, &fh[i]);
			fix4_op(f, op);
			if (op == OP_CREATE)
				xdr_put_u32(&f->out, NF4DIR);
			if (op == OP_RENAME)
				fix4_name(f, "file");
			fix4_name(f, "x");
			if (op == OP_CREATE)
				put_no_attrs();
			cr_expect_eq(fix4_send(f), want, "%s, object %u", nfs4_op_text(op), i);
		}
	}
}

TEST_EACH_MINOR(the_parent_of_what_is_no_directory)
{
	struct vfs_fh link, file;

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	cr_assert_eq(symlink("file", fix_path(f, "link")), 0);
	link = handle("link");
	file = handle("file");
	begin();
	fix4_putfh(f, &link);
	fix4_op(f, OP_LOOKUPP);
	cr_expect_eq(fix4_send(f), NFS4ERR_SYMLINK);
	begin();
	fix4_putfh(f, &file);
	fix4_op(f, OP_LOOKUPP);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOTDIR);
}

TEST_EACH_MINOR(without_a_filehandle)
{
	static const uint32_t ops[] = { OP_GETFH, OP_SAVEFH, OP_LOOKUPP };
	uint32_t op;

	NEED_FIXTURE();
	for (unsigned i = 0; i < 3; i++) {
		begin();
		fix4_op(f, ops[i]);
		cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
	}
	for (size_t o = 0; o < NAME_OPS; o++) {
		op = name_ops[o];
		begin();
		fix4_op(f, op);
		if (op == OP_CREATE)
			xdr_put_u32(&f->out, NF4DIR);
		if (op == OP_RENAME)
			fix4_name(f, "file");
		fix4_name(f, "x");
		if (op == OP_CREATE)
			put_no_attrs();
		cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE, "%s", nfs4_op_text(op));
	}
	begin();
	fix4_op(f, OP_RESTOREFH);
	cr_expect_eq(fix4_send(f), test_minor > 0 ? NFS4ERR_NOFILEHANDLE : NFS4ERR_RESTOREFH);
	/* With a current filehandle, but no saved one. */
	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_RENAME);
	fix4_name(f, "a");
	fix4_name(f, "b");
	cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_LINK);
	fix4_name(f, "b");
	cr_expect_eq(fix4_send(f), NFS4ERR_NOFILEHANDLE);
}

TEST_EACH_MINOR(arguments_cut_short)
{
	NEED_FIXTURE();
	for (size_t o = 0; o < NAME_OPS; o++) {
		begin_with_name(name_ops[o], "whatever", 8);
		f->out.used -= 4;
		cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR, "%s", nfs4_op_text(name_ops[o]));
		cr_expect_not(exists("whatever"));
	}
	begin();
	fix4_op(f, OP_PUTFH);
	xdr_put_u32(&f->out, NFS4_FHSIZE + 1);
	xdr_reserve(&f->out, NFS4_FHSIZE + 1);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
}

TEST_EACH_MINOR(handles_that_are_not_ours)
{
	static const uint8_t zeros[NFS4_FHSIZE];
	static const uint32_t lens[] = { 0, 1, 16, 63, 64, 65, 128 };

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		begin();
		fix4_op(f, OP_PUTFH);
		xdr_put_opaque(&f->out, zeros, lens[i]);
		cr_expect_eq(fix4_send(f), NFS4ERR_BADHANDLE, "%u bytes", lens[i]);
	}
}

TEST_EACH_MINOR(a_handle_whose_file_has_gone)
{
	struct vfs_fh fh;

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	fh = handle("file");
	cr_assert_eq(unlink(fix_path(f, "file")), 0);
	vfs_forget_export(f->vfs, 1);
	begin();
	fix4_putfh(f, &fh);
	cr_expect_eq(fix4_send(f), NFS4ERR_STALE);
}

TEST_EACH_MINOR(exports_that_are_not_for_the_client)
{
	NEED_FIXTURE();
	f->deny = true;
	begin();
	fix4_putfh(f, &f->root);
	cr_expect_eq(fix4_send(f), NFS4ERR_STALE);
}

TEST_EACH_MINOR(a_port_that_is_not_reserved)
{
	struct sockaddr_in *peer;
	struct vfs_fh fh;

	NEED_FIXTURE();
	peer = (struct sockaddr_in *)&f->conn.peer;
	f->access.flags |= VFS_SECURE;
	make_file("file", "x", 0644);
	cr_expect_eq(fix4_handle(f, by(), &f->root, "file", &fh), NFS4_OK);
	peer->sin_port = htons(40000);
	cr_expect_eq(fix4_handle(f, by(), &f->root, "file", &fh), NFS4ERR_ACCESS);
	begin();
	fix4_op(f, OP_PUTROOTFH);
	fix4_lookup(f, "tmp");
	fix4_lookup(f, strrchr(f->dir[0], '/') + 1);
	cr_expect_eq(fix4_send(f), NFS4ERR_ACCESS);
	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_GETATTR);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_TYPE);
	cr_expect_eq(fix4_send(f), NFS4ERR_ACCESS);
	cr_expect_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_expect_eq(fix4_result(f, OP_GETATTR), NFS4ERR_ACCESS);
}

TEST_EACH_MINOR(saved_and_restored)
{
	struct vfs_fh fh, file;

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	file = handle("file");
	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_SAVEFH);
	fix4_lookup(f, "file");
	fix4_op(f, OP_GETFH);
	fix4_op(f, OP_RESTOREFH);
	fix4_op(f, OP_GETFH);
	fix4_op(f, OP_RESTOREFH);
	fix4_lookup(f, "file");
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SAVEFH);
	fix4_result(f, OP_LOOKUP);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &fh);
	cr_expect_arr_eq(fh.data, file.data, file.len);
	fix4_result(f, OP_RESTOREFH);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &fh);
	cr_expect_arr_eq(fh.data, f->root.data, f->root.len);
}

/* Sends CREATE in the root; returns its status. Checks the result if it is NFS4_OK. */
static uint32_t create(uint32_t type, const char *name, const char *text, size_t text_len,
		       uint32_t mode)
{
	bool atomic;
	uint64_t before, after;
	uint32_t status, words;
	struct vfs_fh fh, found;

	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, type);
	if (type == NF4LNK)
		put_bytes(text, text_len);
	if (type == NF4BLK || type == NF4CHR) {
		xdr_put_u32(&f->out, 1);
		xdr_put_u32(&f->out, 3);
	}
	fix4_name(f, name);
	put_mode(mode);
	fix4_op(f, OP_GETFH);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_CREATE);
	fix4_get_cinfo(f, &atomic, &before, &after);
	cr_expect_neq(before, after);
	words = xdr_get_u32(&f->in);
	cr_assert_eq(words, 2);
	cr_expect_eq(xdr_get_u32(&f->in), 0);
	cr_expect_eq(xdr_get_u32(&f->in), 1u << (FATTR4_MODE - 32));
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &fh);
	whole();
	cr_assert_eq(fix4_handle(f, by(), &f->root, name, &found), NFS4_OK);
	cr_expect_eq(fh.len, found.len);
	cr_expect_arr_eq(fh.data, found.data, fh.len);
	return status;
}

TEST_EACH_MINOR(create_each_type)
{
	static const struct {
		uint32_t type, mode;
	} rows[] = {
		{ NF4DIR, S_IFDIR },   { NF4BLK, S_IFBLK },  { NF4CHR, S_IFCHR },
		{ NF4SOCK, S_IFSOCK }, { NF4FIFO, S_IFIFO },
	};
	struct stat st;
	char text[16] = { 0 };

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char name[] = { 'a' + (char)i, '\0' };

		cr_assert_eq(create(rows[i].type, name, NULL, 0, 0751), NFS4_OK);
		cr_assert_eq(lstat(fix_path(f, name), &st), 0);
		cr_expect_eq(st.st_mode, rows[i].mode | 0751, "%o", st.st_mode);
		if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
			cr_expect_eq(major(st.st_rdev), 1);
			cr_expect_eq(minor(st.st_rdev), 3);
		}
		cr_expect_eq(create(rows[i].type, name, NULL, 0, 0751), NFS4ERR_EXIST);
	}
	cr_assert_eq(create(NF4LNK, "link", "some/where", 10, 0777), NFS4_OK);
	cr_expect_eq(readlink(fix_path(f, "link"), text, sizeof(text)), 10);
	cr_expect_str_eq(text, "some/where");
	cr_expect_eq(create(NF4LNK, "link", "x", 1, 0777), NFS4ERR_EXIST);
}

TEST_EACH_MINOR(create_what_cannot_be)
{
	static const uint32_t types[] = { 0, NF4REG, NF4ATTRDIR, NF4NAMEDATTR, 10, UINT32_MAX };
	static char text[5000];

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		cr_expect_eq(create(types[i], "x", NULL, 0, 0700), NFS4ERR_BADTYPE);
	memset(text, 't', sizeof(text));
	cr_expect_eq(create(NF4LNK, "x", "", 0, 0777), NFS4ERR_INVAL);
	cr_expect_eq(create(NF4LNK, "x", "a\0b", 3, 0777), NFS4ERR_INVAL);
	cr_expect_eq(create(NF4LNK, "x", text, sizeof(text), 0777), NFS4ERR_NAMETOOLONG);
	cr_expect_eq(create(NF4DIR, "x", NULL, 0, 010000), NFS4ERR_INVAL);
	cr_expect_not(exists("x"));
	cr_expect_eq(create(NF4LNK, "x", text, 4095, 0777), NFS4_OK);
	cr_expect(exists("x"));
}

TEST_EACH_MINOR(create_in_pieces)
{
	NEED_FIXTURE();
	for (unsigned n = 1; n <= 8; n++) {
		char name[] = { 'a' + (char)n, '\0' };

		f->split = n;
		cr_expect_eq(create(NF4LNK, name, "some/where/far/away", 19, 0777), NFS4_OK);
		cr_expect(exists(name));
	}
}

TEST_EACH_MINOR(create_by_users)
{
	NEED_FIXTURE();
	f->uid = f->gid = 1000;
	cr_expect_eq(create(NF4DIR, "x", NULL, 0, 0700), NFS4ERR_ACCESS);
}

TEST_EACH_MINOR(create_by_users_in_their_directory)
{
	struct stat st;

	NEED_FIXTURE();
	cr_assert_eq(chmod(f->dir[0], 0777), 0);
	f->uid = f->gid = 1000;
	cr_expect_eq(create(NF4CHR, "x", NULL, 0, 0700), NFS4ERR_PERM);
	cr_expect_eq(create(NF4DIR, "x", NULL, 0, 02700), NFS4_OK);
	cr_assert_eq(stat(fix_path(f, "x"), &st), 0);
	cr_expect_eq(st.st_uid, 1000);
	cr_expect_eq(st.st_mode & 0777, 0700);
}

/* Sends REMOVE in the root; returns its status. */
static uint32_t remove_name(const char *name)
{
	bool atomic;
	uint64_t before, after;
	uint32_t status;

	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_REMOVE);
	fix4_name(f, name);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_REMOVE), status);
	if (status == NFS4_OK) {
		fix4_get_cinfo(f, &atomic, &before, &after);
		cr_expect_neq(before, after);
	}
	whole();
	return status;
}

TEST_EACH_MINOR(remove)
{
	NEED_FIXTURE();
	make_file("file", "x", 0644);
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0777), 0);
	cr_assert_eq(mkdir(fix_path(f, "dir/sub"), 0777), 0);
	cr_assert_eq(symlink("dir", fix_path(f, "link")), 0);
	cr_expect_eq(remove_name("nothing"), NFS4ERR_NOENT);
	cr_expect_eq(remove_name("dir"), NFS4ERR_NOTEMPTY);
	cr_expect_eq(remove_name("link"), NFS4_OK);
	cr_expect(exists("dir"));
	cr_expect_eq(remove_name("file"), NFS4_OK);
	cr_expect_not(exists("file"));
	cr_assert_eq(rmdir(fix_path(f, "dir/sub")), 0);
	cr_expect_eq(remove_name("dir"), NFS4_OK);
	cr_expect_not(exists("dir"));
}

TEST_EACH_MINOR(remove_by_users)
{
	NEED_FIXTURE();
	make_file("file", "x", 0644);
	f->uid = f->gid = 1000;
	cr_expect_eq(remove_name("file"), NFS4ERR_ACCESS);
}

TEST_EACH_MINOR(remove_by_users_in_a_sticky_directory)
{
	NEED_FIXTURE();
	make_file("file", "x", 0644);
	cr_assert_eq(chmod(f->dir[0], 01777), 0);
	f->uid = f->gid = 1000;
	cr_expect_eq(remove_name("file"), NFS4ERR_ACCESS);
	cr_expect(exists("file"));
}

/* Sends RENAME between two directories; returns its status. */
static uint32_t rename_name(const struct vfs_fh *from_dir, const char *from,
			    const struct vfs_fh *to_dir, const char *to)
{
	bool atomic;
	uint64_t before, after;
	uint32_t status;

	begin();
	fix4_putfh(f, from_dir);
	fix4_op(f, OP_SAVEFH);
	fix4_putfh(f, to_dir);
	fix4_op(f, OP_RENAME);
	fix4_name(f, from);
	fix4_name(f, to);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SAVEFH);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_RENAME), status);
	if (status == NFS4_OK) {
		fix4_get_cinfo(f, &atomic, &before, &after);
		fix4_get_cinfo(f, &atomic, &before, &after);
	}
	whole();
	return status;
}

TEST_EACH_MINOR(rename)
{
	const struct vfs_fh *root;
	struct vfs_fh dir, full;

	NEED_FIXTURE();
	root = &f->root;
	make_file("file", "x", 0644);
	make_file("other", "y", 0644);
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0777), 0);
	cr_assert_eq(mkdir(fix_path(f, "full"), 0777), 0);
	cr_assert_eq(mkdir(fix_path(f, "full/sub"), 0777), 0);
	dir = handle("dir");
	full = handle("full");
	cr_expect_eq(rename_name(root, "nothing", root, "x"), NFS4ERR_NOENT);
	cr_expect_eq(rename_name(root, "file", root, "dir"), NFS4ERR_EXIST);
	cr_expect_eq(rename_name(root, "dir", root, "file"), NFS4ERR_EXIST);
	cr_expect_eq(rename_name(root, "dir", root, "full"), NFS4ERR_EXIST);
	cr_expect_eq(rename_name(root, "full", &full, "x"), NFS4ERR_INVAL);
	cr_expect_eq(rename_name(root, "file", root, "file"), NFS4_OK);
	cr_expect_eq(rename_name(root, "file", &dir, "moved"), NFS4_OK);
	cr_expect(exists("dir/moved"));
	cr_expect_eq(rename_name(&dir, "moved", root, "other"), NFS4_OK);
	cr_expect_not(exists("dir/moved"));
	cr_expect_eq(rename_name(root, "full", root, "dir"), NFS4_OK);
	cr_expect(exists("dir/sub"));
}

/* Sends LINK; returns its status. */
static uint32_t link_name(const struct vfs_fh *file, const struct vfs_fh *dir, const char *name)
{
	bool atomic;
	uint64_t before, after;
	uint32_t status;

	begin();
	fix4_putfh(f, file);
	fix4_op(f, OP_SAVEFH);
	fix4_putfh(f, dir);
	fix4_op(f, OP_LINK);
	fix4_name(f, name);
	status = fix4_send(f);
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_SAVEFH);
	fix4_result(f, OP_PUTFH);
	cr_expect_eq(fix4_result(f, OP_LINK), status);
	if (status == NFS4_OK) {
		fix4_get_cinfo(f, &atomic, &before, &after);
		cr_expect_neq(before, after);
	}
	whole();
	return status;
}

TEST_EACH_MINOR(link)
{
	struct vfs_fh file, dir, sym;
	struct stat st;

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0777), 0);
	cr_assert_eq(symlink("file", fix_path(f, "sym")), 0);
	file = handle("file");
	dir = handle("dir");
	sym = handle("sym");
	cr_expect_eq(link_name(&file, &dir, "again"), NFS4_OK);
	cr_assert_eq(stat(fix_path(f, "dir/again"), &st), 0);
	cr_expect_eq(st.st_nlink, 2);
	cr_expect_eq(link_name(&file, &dir, "again"), NFS4ERR_EXIST);
	cr_expect_eq(link_name(&dir, &f->root, "x"), NFS4ERR_ISDIR);
	cr_expect_eq(link_name(&sym, &f->root, "sym2"), NFS4_OK);
	cr_assert_eq(lstat(fix_path(f, "sym2"), &st), 0);
	cr_expect(S_ISLNK(st.st_mode));
	/* RENAME between two names of one file changes nothing. */
	cr_expect_eq(rename_name(&f->root, "file", &dir, "again"), NFS4_OK);
	cr_expect(exists("file"));
	cr_expect(exists("dir/again"));
}

/* The root of the second export. */
static struct vfs_fh second_root(void)
{
	struct vfs_fh fh = { 0 }, at;
	char *name = strrchr(f->dir[1], '/') + 1;

	begin();
	fix4_op(f, OP_PUTROOTFH);
	fix4_lookup(f, "tmp");
	fix4_op(f, OP_GETFH);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTROOTFH);
	fix4_result(f, OP_LOOKUP);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &at);
	cr_assert_eq(fix4_handle(f, by(), &at, name, &fh), NFS4_OK);
	return fh;
}

TEST_EACH_MINOR(from_export_to_export)
{
	struct vfs_fh file, second, pseudo;

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	file = handle("file");
	second = second_root();
	begin();
	fix4_op(f, OP_PUTROOTFH);
	fix4_op(f, OP_GETFH);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	fix4_result(f, OP_PUTROOTFH);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, &pseudo);
	cr_expect_eq(rename_name(&f->root, "file", &second, "x"), NFS4ERR_XDEV);
	cr_expect_eq(rename_name(&f->root, "file", &pseudo, "x"), NFS4ERR_XDEV);
	cr_expect_eq(rename_name(&pseudo, "tmp", &pseudo, "x"), NFS4ERR_ROFS);
	cr_expect_eq(link_name(&file, &second, "x"), NFS4ERR_XDEV);
	cr_expect_eq(link_name(&file, &pseudo, "x"), NFS4ERR_XDEV);
	cr_expect(exists("file"));
	begin();
	fix4_putfh(f, &pseudo);
	fix4_op(f, OP_REMOVE);
	fix4_name(f, "tmp");
	cr_expect_eq(fix4_send(f), NFS4ERR_ROFS);
	begin();
	fix4_putfh(f, &pseudo);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, NF4DIR);
	fix4_name(f, "x");
	put_no_attrs();
	cr_expect_eq(fix4_send(f), NFS4ERR_ROFS);
}

TEST_EACH_MINOR(a_read_only_export)
{
	struct vfs_fh file;

	NEED_FIXTURE();
	make_file("file", "x", 0644);
	file = handle("file");
	f->access.flags |= VFS_RO;
	cr_expect_eq(create(NF4DIR, "x", NULL, 0, 0700), NFS4ERR_ROFS);
	cr_expect_eq(remove_name("file"), NFS4ERR_ROFS);
	cr_expect_eq(rename_name(&f->root, "file", &f->root, "x"), NFS4ERR_ROFS);
	cr_expect_eq(link_name(&file, &f->root, "x"), NFS4ERR_ROFS);
	cr_expect(exists("file"));
}

TEST_EACH_MINOR(asynchronous_exports)
{
	NEED_FIXTURE();
	f->access.flags |= VFS_ASYNC;
	cr_expect_eq(create(NF4DIR, "dir", NULL, 0, 0700), NFS4_OK);
	cr_expect_eq(rename_name(&f->root, "dir", &f->root, "other"), NFS4_OK);
	cr_expect_eq(remove_name("other"), NFS4_OK);
}

TEST_EACH_MINOR(a_directory_that_others_may_not_search)
{
	struct vfs_fh dir, fh;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0700), 0);
	make_file("dir/file", "x", 0644);
	dir = handle("dir");
	f->uid = f->gid = 1000;
	cr_expect_eq(fix4_handle(f, by(), &dir, "file", &fh), NFS4ERR_ACCESS);
	begin();
	fix4_putfh(f, &dir);
	fix4_op(f, OP_LOOKUPP);
	cr_expect_eq(fix4_send(f), NFS4ERR_ACCESS);
}

TEST_EACH_MINOR(no_named_attributes)
{
	NEED_FIXTURE();
	begin();
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_OPENATTR);
	xdr_put_bool(&f->out, true);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOTSUPP);
}

/*
 * A text beyond the limit of links gets NAMETOOLONG at any length, because the call is well-formed.
 */
TEST_EACH_MINOR(texts_of_links_beyond_all_limits)
{
	static char text[200000];

	NEED_FIXTURE();
	memset(text, 't', sizeof(text));
	cr_expect_eq(create(NF4LNK, "x", text, 65536, 0777), NFS4ERR_NAMETOOLONG);
	cr_expect_eq(create(NF4LNK, "x", text, 65540, 0777), NFS4ERR_NAMETOOLONG);
	cr_expect_eq(create(NF4LNK, "x", text, sizeof(text), 0777), NFS4ERR_NAMETOOLONG);
}
