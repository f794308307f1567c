/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Failures that the kernel has no errno for. Functions return them as they return -errno, in all layers; a protocol's table of
 * statuses maps them once. EAGAIN and EINTR are the kernel's words only: what a system call or an operation of the ring has answered
 * (tests/layering). NFS3_E* (nfs3/nfs3_procs.h) are behind these.
 */
#ifndef RN_LIB_ERROR_H
#define RN_LIB_ERROR_H

enum rn_error {
	/*
	 * Nothing was done, and somebody tells when it can be. A call waits and asks again (rpc/wait.h); what has waited
	 * long enough tells its client to come again.
	 */
	/* conf/, daemon/: a name service is being asked; RN_WAIT_NAME, RN_WAIT_USER */
	RN_EUNNAMED = 20001,
	/* vfs/: other clients have delegations of the file (vfs/deleg.h), and were asked to return them; RN_WAIT_STATE */
	RN_EDELEG,
	/* nfs/conflict.h, vfs/lock.h: others' shares or locks are in the way, and all of their holders will have given way in a moment; RN_WAIT_STATE */
	RN_EYIELDS,
	/* nfs/conflict.h: a holder has given way, or begun to, and others may be in the way; the caller asks again at once */
	RN_EYIELDED,
	/* nsm/, nfs4/, vfs/hold/: a record is being written, or another change of the file is under way; RN_WAIT_RECORD, or the
	 * caller asks again in some milliseconds, or the client later */
	RN_ESOON,

	/* Nothing was done, and nobody tells when it can be: the client is told to come again. */
	RN_ESILENT, /* daemon/: an export's file system does not answer, or is not mounted yet */
	RN_ELEASE,  /* vfs/: a local process has a lease of the file, and was asked to give it up */
	RN_EGRACE,  /* clients may be reclaiming what is in the way, or wanted */
	RN_EFULL,   /* a table, a queue or a quota of them is full, or there are no descriptors */
	RN_ELATER, /* nfs4/, daemon/: a client, a server or a name service was asked, and says "later" */
	RN_ENOTNOW, /* vfs/deleg.h: the client may have a delegation another time; it does without */
	RN_EGONE, /* rpc/wait.h: the client has closed the call's connection; what the call has begun goes on */
	RN_ECHANGED, /* what was looked at was replaced meanwhile; the caller looks anew, and gives up after some tries */

	/* Refusals. */
	RN_ESHARE, /* another holder's share denies it, or the new share would deny access in use */
	RN_EDENIED, /* another holder's byte-range lock conflicts */
	RN_ELABEL,  /* the kernel does not take a security label (vfs/xattr.h) */

	RN_ERRORS_END,
};

/* For people; rc is 0 or negative. */
const char *rn_error_text(int rc);

#endif
