/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The load generator for NFS over TCP: what its files share.
 *   nfsload.c      options, and the run from connecting to the report
 *   load_run.c     the loop: calls in flight, replies, times
 *   load_conn.c    connections: sockets, records in both directions
 *   load_rpc.c     headers of calls and replies, calls made one by one
 *   load_gss.c     the same under Kerberos;  load_prepare.c: encrypted before the measurement
 *   load_rdma.c    the same over RDMA
 *   load_nfs3.c    jobs and setting up with NFSv3;  load_nfs4.c, load_nfs4_jobs.c: with NFSv4.1, 4.2
 *   load_data.c    contents of files
 *   load_usage.c   processor time from /proc;  load_report.c: latencies, and the line of results
 * Ownership: struct load owns all; a call belongs to one connection for good and has at most one
 * request under way, whose bytes stay in the call until the reply has come.
 */
#ifndef BENCH_LOAD_H
#define BENCH_LOAD_H

#include <netinet/in.h>
#include "xdr.h"

#define FH_MAX 128u
#define HEAD_MAX 1536u
#define SIZE_MAX_IO (1u << 20)
#define IDLE_MAX 64u

struct load;
struct gss;
struct conn;
struct call;

struct fh {
	uint32_t len;
	uint8_t data[FH_MAX];
};

struct file {
	char name[32];
	struct fh fh;
};

/* A job fills in a request, and reads the reply to it: NULL if that is right, else what is wrong. */
struct job {
	const char *name;
	void (*encode)(struct load *l, struct call *c, struct xdr *x);
	const char *(*check)(struct load *l, struct call *c, struct xdr *x);
	bool files; /* needs the files, with their contents if data */
	bool data;
};

struct protocol {
	uint32_t version;
	const struct job *jobs;
	/* Finds the folder and makes the files that the job needs, by the first call of the first connection. */
	void (*prepare)(struct load *l, struct call *c);
	/* For each connection, or NULL: before prepare, after it, and at the end. */
	void (*connect)(struct load *l, struct conn *k);
	void (*open)(struct load *l, struct conn *k);
	void (*leave)(struct load *l, struct conn *k);
};

extern const struct protocol protocol_nfs3, protocol_nfs4;

struct options {
	const char *host, *path, *job;
	uint16_t port, mount_port, rdma_port; /* rdma_port: 0 if calls go by TCP */
	unsigned minor;			      /* of NFSv4; 0: NFSv3 */
	unsigned conns, calls, in_flight, files;
	uint32_t size;
	uint64_t file_size, count, entries;
	uint32_t
		prepare; /* calls encrypted before the measurement; 0: each when its turn has come */
	double seconds, warmup;
	uint32_t uid, gid;
	uint32_t stable;  /* stable_how of WRITE */
	uint32_t service; /* of RPCSEC_GSS: LOAD_KRB5, LOAD_KRB5P; 0: AUTH_SYS */
	int server_pid, cpu;
	int idle[IDLE_MAX]; /* processes that keep processors awake, and count as idle */
	unsigned nidle;
};

/* NFSv4.1's session, of which a connection has as many as its calls need slots. */
struct session {
	uint8_t id[16];
	uint32_t slots;
};
#define SESSIONS_MAX 64u

struct call {
	struct conn *conn;
	unsigned index; /* among the connection's calls */
	uint32_t xid;
	bool under_way;
	uint64_t start; /* ns */
	uint8_t head[HEAD_MAX];
	size_t head_len;
	const uint8_t *data; /* follows the head, or NULL */
	size_t data_len;
	uint8_t *placed;   /* memory for what a READ returns; NULL: in the reply */
	struct call *next; /* of those that wait for their turn */
	/* RPCSEC_GSS */
	struct gss *gss; /* NULL: AUTH_SYS */
	uint32_t gss_seq;
	size_t args_at;	 /* in the head */
	uint8_t *cipher; /* encrypted arguments */
	/* NFSv4 */
	struct session *session;
	uint32_t slot, seqid;
	/* The job's own */
	uint64_t serial, offset, cookie, entries;
	uint8_t verifier[8], stateid[16];
	struct fh fh;	     /* of the file it has made */
	unsigned step, file; /* step: 0 if a round is complete */
};

struct conn {
	int fd;
	unsigned index;
	struct call *calls; /* options.calls of them */
	unsigned ncalls;
	/* Requests that are not yet sent, a ring of options.calls + 1, and how much of the first is out */
	struct call **out;
	unsigned out_head, out_tail;
	size_t out_done;
	bool to_flush, wants_write;
	struct rdma *rdma;   /* NULL: calls go by TCP */
	unsigned last_reply; /* index of the call answered last */
	/* Bytes received. The record at `start` has `joined` bytes of finished fragments behind its first mark. */
	uint8_t *in;
	size_t in_len, in_max, start, joined;
	/* NFSv4 */
	uint64_t clientid;
	uint32_t create_seq; /* of the next CREATE_SESSION */
	struct session sessions[SESSIONS_MAX];
	unsigned nsessions;
	uint8_t stateid[16]; /* of the file that the connection reads and writes */
};

/* Latencies in ns: 32 buckets for each power of two, so a percentile is known to 3 %. */
#define BUCKETS (64u * 32u)

struct usage {
	uint64_t ns;
	double own, server;		    /* seconds of processor time */
	double others, softirq, steal, all; /* ticks; all: of the whole machine */
};

struct load {
	struct options o;
	const struct protocol *protocol;
	const struct job *job;
	struct sockaddr_in address;
	struct conn *conns;
	struct file *files;
	struct fh dir;
	struct gss *gss;       /* NULL: AUTH_SYS */
	struct call *prepared; /* options.prepare of them, in their order */
	uint32_t nprepared, taken;
	int epoll;
	unsigned in_flight;
	uint32_t next_xid;
	struct call *idle_head, **idle_tail;
	struct conn **flush;
	unsigned nflush;
	bool measuring, finishing;
	bool warming;		/* every byte of data is compared */
	uint32_t placed_len;	/* bytes that have come with the reply into its call's memory */
	uint64_t done, entries; /* while measuring */
	uint32_t histogram[BUCKETS];
};

/* nfsload.c */
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* load_run.c */
uint64_t now_ns(void);
void load_run(struct load *l);
void load_reply(struct load *l, struct conn *k, struct xdr *x);

/* load_prepare.c */
void load_prepare(struct load *l); /* no call is under way */
bool load_prepared_left(
	const struct load *l); /* also true if all calls are made when their turn has come */
bool load_take_prepared(struct load *l, struct call *c); /* false: there are none */
void load_prepared_free(struct load *l);

/* load_conn.c */
int conn_socket(const struct load *l, uint16_t port);
void conn_init(struct load *l, struct conn *k, unsigned index);
void conn_release(struct conn *k);
void conn_queue(struct load *l, struct call *c);
void conn_flush(struct load *l, struct conn *k);
bool conn_receive(struct conn *k); /* waits if the socket blocks; false: nothing came */
bool conn_record(struct conn *k, struct xdr *x);   /* the next whole record, if there is one */
void conn_pop(struct conn *k, struct xdr *record); /* is done with it */

/* load_rdma.c */
int load_rdma_connect(struct load *l, struct conn *k); /* returns a descriptor to be waited for */
void load_rdma_flush(struct load *l, struct conn *k);
void load_rdma_event(struct load *l, struct conn *k);
void load_rdma_leave(struct conn *k);

/* load_rpc.c */
#define PROG_NFS 100003u
#define PROG_MOUNT 100005u
void rpc_begin(struct load *l, struct call *c, struct xdr *x, uint32_t prog, uint32_t proc);
void rpc_end(struct call *c, struct xdr *x);
const char *rpc_reply(struct xdr *x, uint32_t *xid);
/* Sends the call that was encoded and waits for the reply; dies of anything but a success. */
void rpc_wait(struct load *l, struct call *c, struct xdr *x, struct xdr *reply);

/* The same up to the message's credential. */
void rpc_call(struct load *l, struct call *c, struct xdr *x, uint32_t prog, uint32_t proc);

/* load_gss.c */
#define LOAD_KRB5 1u
#define LOAD_KRB5P 3u
void load_gss_start(struct load *l,
		    struct call *c); /* makes the context: calls are under it from now on */
void load_gss_end(struct load *l);
void load_gss_begin(struct gss *g, struct call *c, struct xdr *x);
void load_gss_wrap(struct call *c, struct xdr *x);
/* Puts x at the plain results, or says that they were left encrypted; whole: the reply. NULL, or what is wrong. */
const char *load_gss_results(struct load *l, struct call *c, struct xdr whole, struct xdr *x,
			     bool *opaque);

/* load_data.c */
void data_init(void);
const uint8_t *data_at(unsigned file, uint64_t offset);
bool data_good(const uint8_t *p, size_t n, unsigned file, uint64_t offset, bool all);
uint64_t data_offset(const struct load *l, const struct call *c);

/* load_nfs4.c, load_nfs4_jobs.c */
extern const struct job nfs4_jobs[];
void nfs4_begin(struct load *l, struct call *c, struct xdr *x, unsigned nops);
const char *nfs4_reply(struct xdr *x);	  /* up to the result behind SEQUENCE's */
bool nfs4_op(struct xdr *x, uint32_t op); /* true if the next result is of op and a success */
void nfs4_putfh(struct xdr *x, const struct fh *fh);
void nfs4_get_fh(struct xdr *x, struct fh *fh);
void nfs4_put_open(struct xdr *x, const struct conn *k, const char *name, bool exclusive);
void nfs4_get_open(struct xdr *x, uint8_t *stateid);
void nfs4_put_close(struct xdr *x, const uint8_t *stateid);

/* load_usage.c */
void load_usage(const struct load *l, struct usage *u);

/* load_report.c */
void report_latency(struct load *l, uint64_t ns);
void report(const struct load *l, const struct usage *from, const struct usage *to);

#endif
