/* SPDX-License-Identifier: BSD-2-Clause */
/* Work before, during and after the cases: mount and scratch directory, one case, removal. */
#include "tools/conform/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/conform/back.h"
#include "tools/conform/conform_gss.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/nfs4.h"

void cf_run_case(struct cf_run *run, const struct cf_case *c, unsigned number, struct cf_test *t)
{
	cf_test_begin(t, run, c, number);
	if (c->flags & CF_LONG)
		t->deadline += 9ll * run->timeout_ms;
	if ((c->flags & CF_NFS4) && !run->has_nfs4)
		cf_skip(t, "NFSv4 is not served: %s", run->why_no_nfs4);
	else if ((c->flags & CF_GSS) && !run->gss_flavors)
		cf_skip(t, "Kerberos is not asked for: --gss");
	else if ((c->flags & CF_OWN_CONN) || cf_open(t, NULL))
		c->run(t);
	t->took_ms = cf_now_ms() - t->started;
	if (t->verdict == CF_FAIL && c->flags & CF_SHOULD)
		t->verdict = CF_WARN;
	if (t->back)
		cf_back_end(t);
	cf4_end(t);
	cf_gss_end(t);
	cf_test_end(t);
}

/* Stores the text of a failed test as the reason, and returns -1. */
static int cf_run_reason(struct cf_test *t, const char *what, char *why, size_t size)
{
	snprintf(why, size, "%s: %.400s", what, t->seen);
	cf_test_end(t);
	return -1;
}

static bool mount_by_rdma(struct cf_test *t)
{
	struct cf_reply *r = cf_ask_any(t, cf_mount_mnt(t, t->run->export_path));

	if (!r || r->h.proc == CF_ERROR || !r->accepted || r->accept != CF_SUCCESS)
		return false;
	uint32_t status = xdr_get_u32(&r->x);
	if (status)
		return cf_fail(t, "the export can be mounted", "MOUNT status %u", status);
	cf_get_fh(&r->x, &t->run->root);
	return !r->x.err;
}

static int mount_export(struct cf_test *t, char *why, size_t size)
{
	if (t->run->root.len)
		return 0; /* --handle */
	if (!t->run->mount_port && mount_by_rdma(t))
		return 0;
	if (t->verdict != CF_PASS)
		return cf_run_reason(t, "MNT", why, size);
	if (cf_mount_by_tcp(t->run, &t->run->root, why, size) == 0)
		return 0;
	cf_test_end(t);
	return -1;
}

static void ask_for_nfs4(struct cf_test *t)
{
	struct cf_run *run = t->run;
	struct cf_reply *r = cf_ask_any(t, cf_call_new_none(t, CF_PROG_NFS, 4, 0));

	run->has_nfs4 = r && r->accepted && r->accept == CF_SUCCESS;
	if (r && r->accepted)
		snprintf(run->why_no_nfs4, sizeof(run->why_no_nfs4), "%s",
			 cf_accept_name(r->accept));
	else
		snprintf(run->why_no_nfs4, sizeof(run->why_no_nfs4), "%.100s", t->seen);
}

int cf_run_set_up(struct cf_run *run, char *why, size_t size)
{
	struct cf_test t;

	cf_test_begin(&t, run, NULL, 0);
	if (!cf_open(&t, NULL))
		return cf_run_reason(&t, "connecting", why, size);
	if (!cf_alive(&t))
		return cf_run_reason(&t, "NFSv3 NULL", why, size);
	if (mount_export(&t, why, size) < 0)
		return -1;
	snprintf(run->scratch_name, sizeof(run->scratch_name), ".rpcrdma-conform.%d", getpid());
	struct cf_reply *r = cf_ask(&t, cf3_mkdir(&t, &run->root, run->scratch_name));
	if (!r || !cf3_status(&t, r, CF3_OK))
		return cf_run_reason(&t, "making the scratch directory", why, size);
	r = cf_ask(&t, cf3_lookup(&t, &run->root, run->scratch_name));
	if (!r || !cf3_status(&t, r, CF3_OK))
		return cf_run_reason(&t, "looking up the scratch directory", why, size);
	cf_get_fh(&r->x, &run->scratch);
	ask_for_nfs4(&t);
	cf_test_end(&t);
	return 0;
}

/* Removes what the first bytes of the scratch directory's listing name; -1: nothing was removed. */
static int remove_some(struct cf_test *t, const struct cf_fh *dir)
{
	struct cf_reply *list = cf_ask(t, cf3_readdir(t, dir, 800));
	char name[256];
	int removed = -1;

	if (!list || !cf3_status(t, list, CF3_OK))
		return -1;
	cf3_skip_post_attr(&list->x);
	xdr_get_u64(&list->x); /* verifier */
	while (xdr_get_bool(&list->x)) {
		uint32_t len;
		xdr_get_u64(&list->x);
		const uint8_t *p = xdr_get_opaque(&list->x, 255, &len);
		xdr_get_u64(&list->x);
		if (!p || (len == 1 && *p == '.') || (len == 2 && !memcmp(p, "..", 2)))
			continue;
		memcpy(name, p, len);
		name[len] = '\0';
		struct cf_reply *r = cf_ask(t, cf3_remove(t, dir, name));
		if (r && xdr_get_u32(&r->x) == CF3_OK) {
			removed = 0;
			continue;
		}
		r = cf_ask(t, cf3_rmdir(t, dir, name));
		if (r && xdr_get_u32(&r->x) == CF3_OK)
			removed = 0;
	}
	return removed;
}

int cf_run_tear_down(struct cf_run *run, char *why, size_t size)
{
	struct cf_test t;

	for (;;) {
		cf_test_begin(&t, run, NULL, 0);
		if (!cf_open(&t, NULL))
			return cf_run_reason(&t, "connecting to clean up", why, size);
		int some = remove_some(&t, &run->scratch);
		if (some < 0)
			break;
		cf_test_end(&t);
	}
	struct cf_reply *r = cf_ask(&t, cf3_rmdir(&t, &run->root, run->scratch_name));
	if (!r || !cf3_status(&t, r, CF3_OK))
		return cf_run_reason(&t, "removing the scratch directory", why, size);
	cf_test_end(&t);
	return 0;
}
