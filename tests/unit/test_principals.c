/* SPDX-License-Identifier: BSD-2-Clause */
/* From a principal or a certificate to its user (daemon/names/names.h), while the name service is silent and when it has answered. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "daemon/names/names.h"
#include "daemon/tls_setup.h"
#include "lib/error.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_server.h"
#include "rpc/principal.h"
#include "rpc/program.h"
#include "rpc/security.h"

#define MOUNT_PROGRAM_NUMBER 100005u

static int answer; /* of the name service */

int idmap_principal(struct idmap *m, const struct sockaddr *peer, const char *name, size_t len,
		    uint32_t *uid, uint32_t *gid)
{
	(void)m;
	(void)peer;
	(void)name;
	(void)len;
	*uid = 7;
	*gid = 8;
	return answer;
}

int tls_users_identify(struct tls_users *u, struct rpc_request *req)
{
	(void)u;
	req->call.cred.uid = 9;
	return answer == -RN_EUNNAMED ? answer : 0;
}

static char never; /* for pointers that are not followed */
static const struct principals all = { .idmap = (void *)&never, .users = (void *)&never };
static struct rpc_conn conn;
static struct rpc_server server; /* no call waits */
static struct rpc_secured secured;
static struct rpc_request req;
static struct rpc_principal *alice;

static void start(void)
{
	alice = rpc_principal_new("alice@R", 7);
	cr_assert_not_null(alice);
}

static void stop(void)
{
	rpc_principal_put(alice);
}

TestSuite(principals, .init = start, .fini = stop);

/* A call to that program. kerberos: else by a certificate's user. */
static enum rpc_run call(uint32_t prog, uint32_t vers, bool kerberos)
{
	memset(&req, 0, sizeof(req));
	req.conn = &conn;
	req.server = &server;
	req.secured = kerberos ? &secured : NULL;
	req.call.prog = prog;
	req.call.vers = vers;
	req.call.cred.principal = kerberos ? alice : NULL;
	req.call.cred.uid = 1000;
	return principals_identify((void *)(uintptr_t)&all, &req);
}

static void expect_unknown(void)
{
	const struct nfs_groups groups = { .gss_only = true };
	const struct vfs_access access = { .flags = 0 };
	struct vfs_cred out;

	cr_expect(req.call.cred.unknown);
	cr_expect_eq(req.call.cred.uid, UINT32_MAX);
	cr_expect_eq(req.call.cred.gid, UINT32_MAX);
	cr_expect_eq(nfs_caller(&groups, &req.call.cred, &access, &out), -RN_EUNNAMED);
}

Test(principals, a_user_who_is_not_known_yet_comes_again)
{
	answer = -RN_EUNNAMED;
	for (uint32_t vers = 3; vers <= 4; vers++) {
		cr_expect_eq(call(NFS_PROGRAM, vers, true), RPC_RUN_DONE);
		expect_unknown();
	}
	cr_expect_eq(call(NFS_PROGRAM, 3, false), RPC_RUN_DONE);
	expect_unknown();
	cr_expect_eq(call(NFS_PROGRAM, 4, false), RPC_RUN_SYSTEM_ERR, "state would be nobody's");
	cr_expect_eq(call(NFS_PROGRAM, 2, true), RPC_RUN_SYSTEM_ERR);
	cr_expect_eq(call(MOUNT_PROGRAM_NUMBER, 3, true), RPC_RUN_SYSTEM_ERR);
}

Test(principals, a_user_who_is_known)
{
	answer = -RN_EUNNAMED;
	call(NFS_PROGRAM, 3, true);
	answer = 0;
	cr_expect_eq(principals_identify((void *)(uintptr_t)&all, &req), RPC_RUN_DONE);
	cr_expect_not(req.call.cred.unknown, "the call runs again");
	cr_expect_eq(req.call.cred.uid, 7);
	cr_expect_eq(call(NFS_PROGRAM, 4, false), RPC_RUN_DONE);
	cr_expect_eq(req.call.cred.uid, 9);
	answer = -ENOENT;
	cr_expect_eq(call(NFS_PROGRAM, 4, true), RPC_RUN_DONE);
	cr_expect_eq(req.call.cred.uid, UINT32_MAX, "nobody's");
	cr_expect_not(req.call.cred.unknown);
}
