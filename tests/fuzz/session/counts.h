/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the events that the oracles check. The last line of a run prints them, to show that
 * the events occurred. */
#ifndef RN_TESTS_FUZZ_SESSION_COUNTS_H
#define RN_TESTS_FUZZ_SESSION_COUNTS_H

enum ss_count {
	SS_N_OTHER_USER,      /* calls sent by another user than the template's root */
	SS_N_FOREIGN_REFUSED, /* operations on another user's state that failed */
	SS_N_SECRET_READ,     /* replies with the secret to users who may read it */
	SS_N_STRANGER,	      /* replies to hosts without an export */
	SS_N_READ_ONLY,	      /* replies to hosts that may only read */
	SS_N_FORMER,	      /* reloads that take hosts' exports away */
	SS_N_EXCLUSIVE,	      /* EXCLUSIVE creates sent, by all versions */
	SS_N_LEASE_TAKEN,     /* leases taken by a local process */
	SS_N_LEASE_BROKEN,    /* such leases that the server had broken */
	SS_N_TIME_SKIPPED,    /* jumps of the clock of NFSv4 leases */
	SS_N_COURTESY,	      /* sessions after which clients had state without a lease */
	SS_N_MOUNTED,	      /* file systems mounted on an export's path or below one */
	SS_N_UNMOUNTED,
	SS_N_DISK_LOST,	  /* rounds in which the disk lost data and the client got an error */
	SS_N_DISK_STABLE, /* stable writes to a failing disk: answered with an error */
	SS_N_DISK_FULL,
	SS_N_CALL_FAILED, /* system calls of the server that the driver made fail */
	SS_N_CALLED,	  /* calls of the server to its clients */
	SS_N_CB_ANSWERED, /* answers to them, right or wrong */
	SS_N_CALLED_40,	  /* calls over connections that the server made */
	SS_N_DELEGATED,	  /* delegations of files in replies */
	SS_N_DIR_DELEGATED,
	SS_N_RECALLED,	    /* CB_RECALL */
	SS_N_RETURNED,	    /* DELEGRETURN that succeeded */
	SS_N_REVOKED,	    /* operations that were answered NFS4ERR_DELEG_REVOKED */
	SS_N_COPYING,	    /* asynchronous copies */
	SS_N_OFFLOADED,	    /* CB_OFFLOAD */
	SS_N_ASKED,	    /* CB_GETATTR */
	SS_N_TOLD,	    /* answers to it with attributes, true or not */
	SS_N_GSS_MADE,	    /* contexts */
	SS_N_GSS_RAN,	    /* sealed calls that were run */
	SS_N_GSS_GARBAGE,   /* that were GARBAGE_ARGS */
	SS_N_GSS_DENIED,    /* that were denied, by a living context */
	SS_N_GSS_ENDED,	    /* by one that was destroyed or has expired */
	SS_N_GSS_DROPPED,   /* that had to be dropped */
	SS_N_GSS_DESTROYED, /* DESTROY that was answered */
	SS_N_TLS_UP,	    /* handshakes that the client thinks are done */
	SS_N_TLS_CALLS,	    /* calls under TLS that were answered */
	SS_N_TLS_REKEYED,
	SS_N_TLS_ENDED,	   /* connections that the server closed for a fault of the session */
	SS_N_KRB_READ,	   /* replies with what only krb5p may see */
	SS_N_TLS_READ,	   /* and with what only TLS may */
	SS_N_NFS2_RAN,	   /* calls of NFSv2 and NFSACL version 2 that were run */
	SS_N_NFS2_REFUSED, /* changes by hosts that may only read, refused by them */
	SS_N_DATAGRAMS,	   /* sent by UDP */
	SS_N_DATAGRAM_ANSWERS,
	SS_COUNTS,
};

void ss_count(enum ss_count which);
unsigned long ss_counted(enum ss_count which);
/* One line, without a newline at its end. */
void ss_counts_print(void);

#endif
