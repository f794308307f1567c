/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/counts.h"

#include <stdatomic.h>
#include <stdio.h>

static const char *const names[SS_COUNTS] = {
	[SS_N_OTHER_USER] = "other_user",
	[SS_N_FOREIGN_REFUSED] = "foreign_refused",
	[SS_N_SECRET_READ] = "secret_read",
	[SS_N_STRANGER] = "stranger",
	[SS_N_READ_ONLY] = "read_only",
	[SS_N_FORMER] = "former",
	[SS_N_EXCLUSIVE] = "exclusive",
	[SS_N_LEASE_TAKEN] = "lease_taken",
	[SS_N_LEASE_BROKEN] = "lease_broken",
	[SS_N_TIME_SKIPPED] = "time_skipped",
	[SS_N_COURTESY] = "courtesy",
	[SS_N_MOUNTED] = "mounted",
	[SS_N_UNMOUNTED] = "unmounted",
	[SS_N_DISK_LOST] = "disk_lost",
	[SS_N_DISK_STABLE] = "disk_stable",
	[SS_N_DISK_FULL] = "disk_full",
	[SS_N_CALL_FAILED] = "call_failed",
	[SS_N_CALLED] = "called",
	[SS_N_CB_ANSWERED] = "cb_answered",
	[SS_N_CALLED_40] = "called_40",
	[SS_N_DELEGATED] = "delegated",
	[SS_N_DIR_DELEGATED] = "dir_delegated",
	[SS_N_RECALLED] = "recalled",
	[SS_N_RETURNED] = "returned",
	[SS_N_REVOKED] = "revoked",
	[SS_N_COPYING] = "copying",
	[SS_N_OFFLOADED] = "offloaded",
	[SS_N_ASKED] = "asked",
	[SS_N_TOLD] = "told",
	[SS_N_GSS_MADE] = "gss_made",
	[SS_N_GSS_RAN] = "gss_ran",
	[SS_N_GSS_GARBAGE] = "gss_garbage",
	[SS_N_GSS_DENIED] = "gss_denied",
	[SS_N_GSS_ENDED] = "gss_ended",
	[SS_N_GSS_DROPPED] = "gss_dropped",
	[SS_N_GSS_DESTROYED] = "gss_destroyed",
	[SS_N_TLS_UP] = "tls_up",
	[SS_N_TLS_CALLS] = "tls_calls",
	[SS_N_TLS_REKEYED] = "tls_rekeyed",
	[SS_N_TLS_ENDED] = "tls_ended",
	[SS_N_KRB_READ] = "krb_read",
	[SS_N_TLS_READ] = "tls_read",
	[SS_N_NFS2_RAN] = "nfs2_ran",
	[SS_N_NFS2_REFUSED] = "nfs2_refused",
	[SS_N_DATAGRAMS] = "datagrams",
	[SS_N_DATAGRAM_ANSWERS] = "datagram_answers",
};

/* atomic because the server's threads count SS_N_CALL_FAILED */
static atomic_ulong counts[SS_COUNTS];

void ss_count(enum ss_count which)
{
	atomic_fetch_add_explicit(&counts[which], 1, memory_order_relaxed);
}

unsigned long ss_counted(enum ss_count which)
{
	return atomic_load_explicit(&counts[which], memory_order_relaxed);
}

void ss_counts_print(void)
{
	fputs("counts:", stderr);
	for (unsigned i = 0; i < SS_COUNTS; i++)
		fprintf(stderr, " %s=%lu", names[i], atomic_load(&counts[i]));
}
