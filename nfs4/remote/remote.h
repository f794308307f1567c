/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file of another NFS server, which this server reads for a copy (RFC 7862 section 4.6.2). It is a
 * client of version 4.2 there, with a client id, a session of one slot and a connection for this file
 * alone, so that no other copy can be answered by them. The right to read is the stateid that the
 * other server has given by COPY_NOTIFY; the credential is AUTH_SYS as nobody.
 *
 * One read at a time. No thread waits: done() is called on any thread. What the other server sends
 * is not trusted: whatever it is, the read ends, by the timeout at last.
 *
 * Locks: nfs4_remote.lock is a leaf. nfs4_remote_abort() takes locks of rpc/ and transport/, and calls
 * nothing back.
 */
#ifndef RN_NFS4_REMOTE_REMOTE_H
#define RN_NFS4_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/stateid.h"
#include "rpc/backchannel.h"
#include "vfs/vfs.h"

struct nfs4_remote;

struct nfs4_remote_file {
	struct rpc_route route; /* to the server, from the address that its clients know */
	struct vfs_fh fh;	/* the server's */
	struct nfs4_stateid sid;
	bool served; /* a read has succeeded, be it by the program before this one */
};

struct nfs4_remote_read {
	uint64_t offset; /* bytes */
	uint32_t count;	 /* room at to; less is read if the server says so */
	uint8_t *to;
	/*
	 * The end, once. rc 0: got bytes are at to, and eof is true if the file ends behind them.
	 * Else got is 0: -RN_ELATER (the server asks to try later), -ENOTCONN (the connection is lost,
	 * or cannot be made: the next read makes another one), -ETIMEDOUT, -EACCES (the server
	 * refuses), -EPROTO (its answer is wrong), -ECANCELED.
	 */
	void (*done)(struct nfs4_remote_read *rd, int rc);
	uint32_t got;
	bool eof;
};

/* timeout: for an answer, seconds. NULL: no memory. */
struct nfs4_remote *nfs4_remote_new(const struct rpc_dialer *dialer,
				    const struct nfs4_remote_file *file, unsigned timeout);
/* No read is under way. Tells the server good-bye, without waiting. NULL is allowed. */
void nfs4_remote_free(struct nfs4_remote *r);
/* Bytes of memory that one takes. */
size_t nfs4_remote_size(void);

/* Starts a read. done() may be called before this returns. */
void nfs4_remote_read(struct nfs4_remote *r, struct nfs4_remote_read *rd);
/* Has the read under way, and each later one, end soon. Any thread. */
void nfs4_remote_abort(struct nfs4_remote *r);
/* The file's handle, stateid and route, for the image of the state. No read is under way. */
const struct nfs4_remote_file *nfs4_remote_file(const struct nfs4_remote *r);

#endif
