/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of the server's numbers, and what is made from it. */
#include "daemon/counters/numbers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/process.h"
#include "gss/gss.h"
#include "lib/util.h"
#include "nfs4/nfs4_server.h"
#include "rpc/request.h"
#include "transport/tls/tls.h"
#include "vfs/file_state.h"

/* Numbers of the parts at one moment, and some that are made from them. Zero of parts that are not served. */
struct numbers {
	struct tcp_stats tcp;
	struct udp_stats udp;
	struct rr_stats rdma;
	struct tls_stats tls;
	struct gss_stats gss;
	struct rn_payload_stats payload;
	struct vfs_stats nodes;
	struct vfs_file_stats files;
	struct drc_stats drc;
	struct nfs4_held nfs4;
	struct nsm_stats nsm;
	uint64_t requests, requests_made;
	uint64_t tls_plain, tls_expires;
	uint64_t rdma_read_chunks;
	uint64_t workers, worker_fds, busy, idle, stuck, stuck_threads, queued;
	uint64_t memory, memory_max, memory_other, payload_unused, nfs4_memory, nfs4_reserved;
	uint64_t payload_buffers, payload_bytes, pipes_in_use, pipes;
	uint64_t nfs4_active, nfs4_courtesy, nfs4_failing, nsm_failing;
	uint64_t grace_active, grace_left, grace_waiting, lease;
	const struct numbers_former *former;
};

/* Parts of the server; each has a line in the log. */
enum part {
	ALWAYS,
	MEMORY,
	NODES,
	LISTINGS,
	REPLIES,
	FILES,
	TCP,
	UDP,
	TLS,
	RDMA,
	GSS,
	NFS4,
	NSM,
	PARTS
};

static const char *const part_names[PARTS] = {
	[MEMORY] = "memory",
	[NODES] = "node cache",
	[LISTINGS] = "listings",
	[REPLIES] = "reply cache",
	[FILES] = "opened and locked files",
	[TCP] = "tcp",
	[UDP] = "udp",
	[TLS] = "tls handshakes",
	[RDMA] = "rdma",
	[GSS] = "kerberos",
	[NFS4] = "asynchronous copies",
	[NSM] = "records of NFSv3 clients",
};

struct row {
	struct metrics_family family; /* begins one; the row has no number then */
	enum part part;
	size_t at;   /* of a uint64_t in struct numbers */
	bool metric; /* a value of the family before it */
	const char *label, *value, *label2, *value2;
	const char *held; /* name of a resource */
	const char *log;  /* words behind the number in the line of its part */
};

#define FAMILY(name, type, unit, help)                                                             \
	{                                                                                          \
		.family = { name, METRICS_##type, unit, help }                                     \
	}
#define VALUE(of, member, ...)                                                                     \
	{                                                                                          \
		.part = of, .at = offsetof(struct numbers, member), .metric = true, __VA_ARGS__    \
	}
#define OTHER(of, member, ...)                                                                     \
	{                                                                                          \
		.part = of, .at = offsetof(struct numbers, member), __VA_ARGS__                    \
	}

/* clang-format off */
/* Each number is one line; those of a metric stand behind its family. */
static const struct row rows[] = {
	/* Connections */
	FAMILY("ringnfs_connections", GAUGE, NULL, "Connections that exist."),
	VALUE(TCP, tcp.connections, .label = "transport", .value = "tcp", .held = "tcp_connections", .log = "connections"),
	VALUE(RDMA, rdma.connections, .label = "transport", .value = "rdma", .held = "rdma_connections", .log = "connections"),
	FAMILY("ringnfs_connections_accepted", COUNTER, NULL, "Connections accepted."),
	VALUE(TCP, tcp.accepted, .label = "transport", .value = "tcp", .log = "accepted"),
	VALUE(RDMA, rdma.accepted, .label = "transport", .value = "rdma", .log = "accepted"),
	FAMILY("ringnfs_connections_refused", COUNTER, NULL, "Connections refused."),
	VALUE(TCP, tcp.refused, .label = "transport", .value = "tcp", .log = "refused"),
	VALUE(RDMA, rdma.refused, .label = "transport", .value = "rdma", .log = "refused"),
	FAMILY("ringnfs_connections_closed_for_room", COUNTER, NULL, "Connections closed to make room for others."),
	VALUE(TCP, tcp.closed_room, .label = "transport", .value = "tcp", .log = "closed for room"),
	VALUE(RDMA, rdma.closed_room, .label = "transport", .value = "rdma", .log = "closed for room"),
	OTHER(TCP, tcp.closed_idle, .log = "closed as idle"),
	OTHER(TCP, tcp.closed_error, .log = "closed for errors"),
	OTHER(RDMA, rdma.disconnects, .log = "ended"),
	FAMILY("ringnfs_requests", GAUGE, NULL, "Calls that are under way."),
	VALUE(TCP, tcp.requests_busy, .label = "transport", .value = "tcp"),
	VALUE(UDP, udp.requests_busy, .label = "transport", .value = "udp"),
	VALUE(RDMA, rdma.requests_busy, .label = "transport", .value = "rdma"),
	OTHER(ALWAYS, requests, .held = "requests"),
	OTHER(ALWAYS, requests_made, .held = "requests_made"),
	FAMILY("ringnfs_received_calls", COUNTER, NULL, "RPC calls received."),
	VALUE(TCP, tcp.calls, .label = "transport", .value = "tcp", .log = "calls"),
	VALUE(UDP, udp.calls, .label = "transport", .value = "udp", .log = "calls"),
	VALUE(RDMA, rdma.calls, .label = "transport", .value = "rdma", .log = "calls"),
	OTHER(TCP, tcp.replies, .log = "replies"),
	OTHER(UDP, udp.replies, .log = "replies"),
	OTHER(RDMA, rdma.replies, .log = "replies"),
	OTHER(TCP, tcp.sends, .log = "sends"),
	FAMILY("ringnfs_received_bytes", COUNTER, "bytes", "Bytes of RPC received over TCP and UDP."),
	VALUE(TCP, tcp.bytes_in, .label = "transport", .value = "tcp", .log = "bytes in"),
	VALUE(UDP, udp.bytes_in, .label = "transport", .value = "udp", .log = "bytes in"),
	FAMILY("ringnfs_sent_bytes", COUNTER, "bytes", "Bytes of RPC sent over TCP and UDP."),
	VALUE(TCP, tcp.bytes_out, .label = "transport", .value = "tcp", .log = "bytes out"),
	VALUE(UDP, udp.bytes_out, .label = "transport", .value = "udp", .log = "bytes out"),
	OTHER(TCP, tcp.bytes_spliced, .log = "without a copy"),
	OTHER(TCP, tcp.callbacks, .log = "callbacks"),
	OTHER(TCP, tcp.stray_replies, .log = "replies to none"),
	OTHER(TCP, tcp.moved, .log = "moved to another event thread"),
	OTHER(TCP, tcp.dialed, .log = "made to clients"),
	OTHER(TCP, tcp.waits_memory, .log = "waits for memory"),
	FAMILY("ringnfs_udp_dropped", COUNTER, NULL, "Datagrams that got no answer, by reason."),
	VALUE(UDP, udp.dropped[UDP_NO_CALL], .label = "reason", .value = "no_call", .log = "no calls"),
	VALUE(UDP, udp.dropped[UDP_TOO_LONG], .label = "reason", .value = "too_long", .log = "too long"),
	VALUE(UDP, udp.dropped[UDP_BUSY], .label = "reason", .value = "busy", .log = "for too many under way"),
	VALUE(UDP, udp.dropped[UDP_NO_MEMORY], .label = "reason", .value = "memory", .log = "for memory"),
	VALUE(UDP, udp.dropped[UDP_RATIONED], .label = "reason", .value = "rationed", .log = "replies rationed"),
	VALUE(UDP, udp.dropped[UDP_NOT_SENT], .label = "reason", .value = "not_sent", .log = "not sent"),
	VALUE(UDP, udp.dropped[UDP_DUPLICATE], .label = "reason", .value = "duplicate", .log = "duplicates"),
	/* TLS */
	FAMILY("ringnfs_tls_handshakes", COUNTER, NULL, "TLS handshakes, by result."),
	VALUE(TLS, tls_plain, .label = "result", .value = "tls"),
	VALUE(TLS, tls.with_certificate, .label = "result", .value = "mtls", .log = "of clients with a certificate"),
	VALUE(TLS, tls.failed, .label = "result", .value = "failed", .log = "failed"),
	VALUE(TLS, tls.refused, .label = "result", .value = "refused", .log = "refused"),
	OTHER(TLS, tls.done, .log = "done"),
	OTHER(TLS, tls.under_way, .log = "under way"),
	OTHER(TLS, tls.aside, .log = "bytes of the part that is set aside"),
	FAMILY("ringnfs_tls_kernel_sessions", COUNTER, NULL, "TLS handshakes after which the kernel encrypts what is sent."),
	VALUE(TLS, tls.ktls, .log = "by the kernel"),
	FAMILY("ringnfs_tls_handshakes_failed", COUNTER, NULL, "TLS handshakes that failed, by reason."),
	VALUE(TLS, tls.reasons[TLS_UNFINISHED], .label = "reason", .value = "unfinished"),
	VALUE(TLS, tls.reasons[TLS_CLOSED], .label = "reason", .value = "closed"),
	VALUE(TLS, tls.reasons[TLS_BAD_VERSION], .label = "reason", .value = "version"),
	VALUE(TLS, tls.reasons[TLS_BAD_ALPN], .label = "reason", .value = "protocol"),
	VALUE(TLS, tls.reasons[TLS_BAD_CERTIFICATE], .label = "reason", .value = "certificate"),
	VALUE(TLS, tls.reasons[TLS_CLIENT_REFUSED], .label = "reason", .value = "refused_by_client"),
	VALUE(TLS, tls.reasons[TLS_BAD_MESSAGE], .label = "reason", .value = "message"),
	VALUE(TLS, tls.reasons[TLS_MADE_ROOM], .label = "reason", .value = "made_room"),
	FAMILY("ringnfs_tls_certificate_expiry_timestamp_seconds", GAUGE, "seconds", "Time when the server's TLS certificate expires, since 1970."),
	VALUE(TLS, tls_expires),
	/* RDMA */
	FAMILY("ringnfs_rdma_devices", GAUGE, NULL, "RDMA devices in use."),
	VALUE(RDMA, rdma.devices, .held = "rdma_devices", .log = "devices"),
	OTHER(RDMA, rdma.conn_bytes, .held = "rdma_connection_bytes"),
	OTHER(RDMA, rdma.qps, .held = "queue_pairs"),
	OTHER(RDMA, rdma.cqs, .held = "completion_queues"),
	OTHER(RDMA, rdma.mrs, .held = "memory_regions"),
	OTHER(RDMA, rdma.slab_mrs, .held = "slab_regions"),
	FAMILY("ringnfs_rdma_credits_granted", GAUGE, NULL, "Calls that all connections may have under way."),
	VALUE(RDMA, rdma.credits),
	FAMILY("ringnfs_rdma_chunks", COUNTER, NULL, "Chunks that were used; call is a Read chunk at position zero, with the call itself."),
	VALUE(RDMA, rdma_read_chunks, .label = "kind", .value = "read", .log = "Read chunks"),
	VALUE(RDMA, rdma.position_zero, .label = "kind", .value = "call", .log = "at position zero"),
	VALUE(RDMA, rdma.write_chunks, .label = "kind", .value = "write", .log = "Write chunks"),
	VALUE(RDMA, rdma.reply_chunks, .label = "kind", .value = "reply", .log = "Reply chunks"),
	FAMILY("ringnfs_rdma_segments", COUNTER, NULL, "Segments in the lists of calls."),
	VALUE(RDMA, rdma.listed_read, .label = "kind", .value = "read"),
	VALUE(RDMA, rdma.listed_write, .label = "kind", .value = "write"),
	VALUE(RDMA, rdma.listed_reply, .label = "kind", .value = "reply"),
	FAMILY("ringnfs_rdma_reads", COUNTER, NULL, "RDMA Reads posted."),
	VALUE(RDMA, rdma.read_segments, .log = "RDMA Reads"),
	FAMILY("ringnfs_rdma_writes", COUNTER, NULL, "RDMA Writes posted."),
	VALUE(RDMA, rdma.write_segments, .log = "RDMA Writes"),
	FAMILY("ringnfs_rdma_read_bytes", COUNTER, "bytes", "Bytes of Read chunks."),
	VALUE(RDMA, rdma.read_bytes, .log = "bytes read"),
	FAMILY("ringnfs_rdma_written_bytes", COUNTER, "bytes", "Bytes of Write and Reply chunks."),
	VALUE(RDMA, rdma.write_bytes, .log = "bytes written"),
	FAMILY("ringnfs_rdma_invalidations", COUNTER, NULL, "Replies that have invalidated the client's memory region."),
	VALUE(RDMA, rdma.invalidations, .log = "invalidations"),
	FAMILY("ringnfs_rdma_send_queue_waits", COUNTER, NULL, "Times that work had to wait for the send queue."),
	VALUE(RDMA, rdma.sq_waits, .log = "sq waits"),
	OTHER(RDMA, rdma.waits_memory, .log = "waits for memory"),
	OTHER(RDMA, rdma.err_chunk, .log = "ERR_CHUNK"),
	OTHER(RDMA, rdma.dropped, .log = "dropped"),
	OTHER(RDMA, rdma.callbacks, .log = "callbacks"),
	FAMILY("ringnfs_rdma_posts", COUNTER, NULL, "Times that a send queue was given work."),
	VALUE(RDMA, rdma.posts, .log = "posts"),
	FAMILY("ringnfs_rdma_errors", COUNTER, NULL, "Errors that clients were told: of the header, the chunks, the message, or for want of room for the reply."),
	VALUE(RDMA, rdma.refused_by[RR_REFUSED_HEADER], .label = "error", .value = "ERR_CHUNK", .label2 = "reason", .value2 = "header"),
	VALUE(RDMA, rdma.refused_by[RR_REFUSED_CHUNKS], .label = "error", .value = "ERR_CHUNK", .label2 = "reason", .value2 = "chunks"),
	VALUE(RDMA, rdma.refused_by[RR_REFUSED_BROKEN], .label = "error", .value = "ERR_CHUNK", .label2 = "reason", .value2 = "broken"),
	VALUE(RDMA, rdma.refused_by[RR_REFUSED_MESSAGE], .label = "error", .value = "ERR_CHUNK", .label2 = "reason", .value2 = "message"),
	VALUE(RDMA, rdma.refused_by[RR_REFUSED_REPLY], .label = "error", .value = "ERR_CHUNK", .label2 = "reason", .value2 = "reply_room"),
	VALUE(RDMA, rdma.err_vers, .label = "error", .value = "ERR_VERS", .label2 = "reason", .value2 = "version", .log = "ERR_VERS"),
	FAMILY("ringnfs_rdma_completion_errors", COUNTER, NULL, "Work that failed, for the first time on a connection."),
	VALUE(RDMA, rdma.cq_errors, .log = "failed"),
	OTHER(RDMA, rdma.completions, .log = "completions"),
	/* Kerberos */
	FAMILY("ringnfs_gss_contexts", GAUGE, NULL, "Kerberos contexts, by whether they are complete."),
	VALUE(GSS, gss.contexts, .label = "state", .value = "established", .log = "contexts"),
	VALUE(GSS, gss.half_made, .label = "state", .value = "half_made", .log = "half made"),
	FAMILY("ringnfs_gss_contexts_limit", GAUGE, NULL, "Complete Kerberos contexts that there is room for, by gss.max_contexts and server.memory_max."),
	VALUE(GSS, gss.places),
	FAMILY("ringnfs_gss_contexts_copied", GAUGE, NULL, "Kerberos contexts with copies, because several threads use them at a time."),
	VALUE(GSS, gss.grown, .log = "with copies"),
	FAMILY("ringnfs_gss_context_requests", COUNTER, NULL, "Kerberos contexts that clients asked for."),
	VALUE(GSS, gss.accepted, .label = "result", .value = "accepted", .log = "accepted"),
	VALUE(GSS, gss.refused, .label = "result", .value = "refused", .log = "refused"),
	FAMILY("ringnfs_gss_contexts_evicted", COUNTER, NULL, "Kerberos contexts removed to make room for others."),
	VALUE(GSS, gss.evicted, .log = "evicted"),
	FAMILY("ringnfs_gss_rejected_calls", COUNTER, NULL, "Calls under Kerberos that were not run: replays, those of a context that is not known, and those with a wrong verifier or body."),
	VALUE(GSS, gss.replays, .label = "reason", .value = "replay", .log = "replays"),
	VALUE(GSS, gss.unknown, .label = "reason", .value = "unknown_context", .log = "of unknown contexts"),
	VALUE(GSS, gss.bad, .label = "reason", .value = "bad", .log = "bad"),
	/* Workers */
	FAMILY("ringnfs_workers", GAUGE, NULL, "Worker threads by what they do."),
	VALUE(ALWAYS, busy, .label = "state", .value = "busy"),
	VALUE(ALWAYS, idle, .label = "state", .value = "idle"),
	VALUE(ALWAYS, stuck, .label = "state", .value = "stuck"),
	OTHER(ALWAYS, workers, .held = "workers"),
	OTHER(ALWAYS, worker_fds, .held = "worker_fds"),
	FAMILY("ringnfs_stuck_threads", GAUGE, NULL, "Workers and event threads that have waited for a file system for two seconds or longer."),
	VALUE(ALWAYS, stuck_threads),
	FAMILY("ringnfs_queued_calls", GAUGE, NULL, "Calls that wait for a worker."),
	VALUE(ALWAYS, queued),
	/* Memory */
	FAMILY("ringnfs_memory_used_bytes", GAUGE, "bytes", "Memory in use, out of server.memory_max."),
	VALUE(MEMORY, memory, .held = "memory", .log = "bytes in use"),
	FAMILY("ringnfs_memory_limit_bytes", GAUGE, "bytes", "Memory that may be used."),
	VALUE(MEMORY, memory_max, .log = "bytes at most"),
	FAMILY("ringnfs_memory_bytes", GAUGE, "bytes", "Memory in use by what it is for. All accounts but replies, which are not within memory_max, add up to ringnfs_memory_used_bytes."),
	VALUE(ALWAYS, payload.bytes_in_use, .label = "account", .value = "payload"),
	VALUE(ALWAYS, payload_unused, .label = "account", .value = "payload_unused"),
	VALUE(ALWAYS, nfs4_memory, .label = "account", .value = "nfs4_state", .held = "nfs4_memory"),
	VALUE(ALWAYS, nfs4_reserved, .label = "account", .value = "nfs4_state_reserved"),
	VALUE(ALWAYS, rdma.conn_bytes, .label = "account", .value = "rdma_connections"),
	VALUE(ALWAYS, memory_other, .label = "account", .value = "other"),
	VALUE(ALWAYS, drc.bytes, .label = "account", .value = "replies", .held = "drc_bytes"),
	OTHER(MEMORY, payload.slabs, .held = "slabs", .log = "slabs"),
	OTHER(MEMORY, payload.buffers_in_use, .log = "buffers in use"),
	FAMILY("ringnfs_memory_waits", COUNTER, NULL, "Times that a request had to wait for memory for file data."),
	VALUE(MEMORY, payload.waits, .log = "waits"),
	OTHER(ALWAYS, payload_buffers, .held = "payload_buffers"),
	OTHER(ALWAYS, payload_bytes, .held = "payload_bytes"),
	OTHER(ALWAYS, pipes_in_use, .held = "pipes_in_use"),
	OTHER(ALWAYS, pipes, .held = "pipes"),
	/* Caches */
	FAMILY("ringnfs_cache_entries", GAUGE, NULL, "Entries of the caches."),
	VALUE(NODES, nodes.nodes, .label = "cache", .value = "nodes", .held = "nodes", .log = "nodes"),
	VALUE(REPLIES, drc.entries, .label = "cache", .value = "replies", .held = "drc_entries", .log = "entries"),
	OTHER(REPLIES, drc.bytes, .log = "bytes"),
	OTHER(ALWAYS, nodes.nodes_in_use, .held = "nodes_in_use"),
	OTHER(ALWAYS, drc.running, .held = "drc_running"),
	FAMILY("ringnfs_cache_hits", COUNTER, NULL, "Times that a cache had what was asked for."),
	VALUE(NODES, nodes.hits, .label = "cache", .value = "nodes", .log = "hits"),
	VALUE(LISTINGS, nodes.handles_known, .label = "cache", .value = "listed_handles", .log = "handles known"),
	VALUE(REPLIES, drc.hits, .label = "cache", .value = "replies", .log = "hits"),
	FAMILY("ringnfs_cache_misses", COUNTER, NULL, "Times that a cache did not have what was asked for."),
	VALUE(NODES, nodes.misses, .label = "cache", .value = "nodes", .log = "misses"),
	VALUE(LISTINGS, nodes.handles_read, .label = "cache", .value = "listed_handles", .log = "read"),
	VALUE(REPLIES, drc.misses, .label = "cache", .value = "replies", .log = "misses"),
	OTHER(REPLIES, drc.in_progress, .log = "in progress"),
	OTHER(REPLIES, drc.expired, .log = "expired"),
	FAMILY("ringnfs_cache_evictions", COUNTER, NULL, "Entries that had to make room before their time."),
	VALUE(NODES, nodes.evictions, .label = "cache", .value = "nodes", .log = "evictions"),
	VALUE(REPLIES, drc.evicted, .label = "cache", .value = "replies", .log = "evicted"),
	FAMILY("ringnfs_reply_cache_reach_seconds", GAUGE, "seconds", "Least age of a kept reply that made room for another in the last two minutes, or 120."),
	VALUE(ALWAYS, drc.reach_seconds, .held = "drc_reach_seconds"),
	FAMILY("ringnfs_stale_handles", COUNTER, NULL, "Handles of files that are gone."),
	VALUE(NODES, nodes.stale, .log = "stale"),
	FAMILY("ringnfs_bad_handles", COUNTER, NULL, "Handles that are not this server's, such as forged ones."),
	VALUE(NODES, nodes.bad_handles, .log = "bad handles"),
	FAMILY("ringnfs_file_descriptors", GAUGE, NULL, "Descriptors of the cache, of opened and locked files, and of workers."),
	VALUE(NODES, nodes.fds, .label = "kind", .value = "cache", .held = "node_fds", .log = "descriptors"),
	VALUE(FILES, files.held, .label = "kind", .value = "files", .held = "file_fds", .log = "descriptors"),
	VALUE(ALWAYS, worker_fds, .label = "kind", .value = "workers"),
	OTHER(FILES, files.files, .log = "files"),
	OTHER(FILES, files.shares, .log = "shares"),
	OTHER(FILES, files.locks, .log = "locks"),
	OTHER(FILES, files.waiters, .log = "waiters"),
	OTHER(FILES, files.unheld, .held = "files_unmirrored", .log = "not mirrored"),
	OTHER(FILES, files.surplus, .held = "files_not_unlocked", .log = "not unlocked"),
	/* NFSv4 */
	FAMILY("ringnfs_nfs4_clients", GAUGE, NULL, "Clients of NFSv4; courtesy clients are silent, and keep their state until it is wanted."),
	VALUE(NFS4, nfs4_active, .label = "state", .value = "active"),
	VALUE(NFS4, nfs4_courtesy, .label = "state", .value = "courtesy"),
	OTHER(NFS4, nfs4.clients, .held = "nfs4_clients"),
	OTHER(NFS4, nfs4.courtesy_clients, .held = "nfs4_courtesy_clients"),
	FAMILY("ringnfs_nfs4_state", GAUGE, NULL, "What clients of NFSv4 hold."),
	VALUE(NFS4, nfs4.opens, .label = "kind", .value = "open", .held = "nfs4_opens"),
	VALUE(NFS4, nfs4.locks, .label = "kind", .value = "lock", .held = "nfs4_locks"),
	VALUE(NFS4, nfs4.delegations, .label = "kind", .value = "delegation", .held = "nfs4_delegations"),
	VALUE(NFS4, nfs4.layouts, .label = "kind", .value = "layout", .held = "nfs4_layouts"),
	VALUE(NFS4, nfs4.sessions, .label = "kind", .value = "session", .held = "nfs4_sessions"),
	VALUE(NFS4, nfs4.slots, .label = "kind", .value = "slot", .held = "nfs4_slots"),
	VALUE(NFS4, nfs4.owners, .label = "kind", .value = "owner", .held = "nfs4_owners"),
	VALUE(NFS4, nfs4.cached_replies, .label = "kind", .value = "kept_reply", .held = "nfs4_cached_replies"),
	VALUE(NFS4, nfs4.copies, .label = "kind", .value = "copy", .held = "nfs4_copies"),
	VALUE(NFS4, nfs4.copy_sources, .label = "kind", .value = "copy_source", .held = "nfs4_copy_sources"),
	FAMILY("ringnfs_grace_active", GAUGE, NULL, "1 while clients reclaim their state."),
	VALUE(NFS4, grace_active),
	FAMILY("ringnfs_grace_left_seconds", GAUGE, "seconds", "Time until the grace period ends at the latest."),
	VALUE(NFS4, grace_left),
	FAMILY("ringnfs_grace_clients_waiting", GAUGE, NULL, "Clients that have not said that they have reclaimed all."),
	VALUE(NFS4, grace_waiting),
	FAMILY("ringnfs_lease_seconds", GAUGE, "seconds", "Lease time."),
	VALUE(NFS4, lease),
	FAMILY("ringnfs_nfs4_copies", COUNTER, NULL, "Copies in the background that were begun."),
	VALUE(NFS4, nfs4.copies_begun, .log = "begun"),
	OTHER(NFS4, nfs4.copies_cancelled, .log = "cancelled"),
	FAMILY("ringnfs_nfs4_copied_bytes", COUNTER, "bytes", "Bytes copied in the background."),
	VALUE(NFS4, nfs4.copied_bytes, .log = "bytes"),
	FAMILY("ringnfs_nfs4_layouts", COUNTER, NULL, "Layouts that clients were given."),
	VALUE(NFS4, nfs4.layouts_given),
	FAMILY("ringnfs_nfs4_layouts_taken", COUNTER, NULL, "Layouts that were taken from clients, which did not return them in time."),
	VALUE(NFS4, nfs4.layouts_taken),
	FAMILY("ringnfs_nfs4_layout_errors", COUNTER, NULL, "Errors of data servers that clients reported."),
	VALUE(NFS4, nfs4.layout_errors),
	/* Records */
	FAMILY("ringnfs_client_records_failing", GAUGE, NULL, "1 while records of clients cannot be written: after a restart they would not get their locks back."),
	VALUE(NSM, nsm_failing, .label = "version", .value = "3"),
	VALUE(NFS4, nfs4_failing, .label = "version", .value = "4"),
	FAMILY("ringnfs_nfs3_client_records", GAUGE, NULL, "NFSv3 clients on record, by whether they may have locks."),
	VALUE(NSM, nsm.with_locks, .label = "locks", .value = "yes", .log = "with locks"),
	VALUE(NSM, nsm.without, .label = "locks", .value = "no", .log = "without"),
	FAMILY("ringnfs_nfs3_client_records_evicted", COUNTER, NULL, "Records of NFSv3 clients without locks that made room for others."),
	VALUE(NSM, nsm.made_room, .log = "made room"),
	FAMILY("ringnfs_nfs3_client_records_refused", COUNTER, NULL, "Locks that were refused to NFSv3 clients: no room for a record, or no answer of a host that asks by UDP."),
	VALUE(NSM, nsm.refused, .label = "reason", .value = "room", .log = "refused"),
	VALUE(NSM, nsm.silent, .label = "reason", .value = "silent", .log = "refused as silent"),
};
/* clang-format on */

static uint64_t numbers_minus(uint64_t from, uint64_t part)
{
	/* Not below 0: the numbers are read one after the other, while they change. */
	return from > part ? from - part : 0;
}

static void numbers_read_workers(struct numbers *n, struct workers *workers)
{
	struct workers_stats w;

	workers_stats(workers, &w);
	n->workers = w.workers;
	n->worker_fds = w.fds;
	n->busy = w.busy;
	n->idle = w.workers - w.busy - w.stuck;
	n->stuck = w.stuck;
	n->stuck_threads = w.stuck + w.stuck_loops;
	n->queued = w.queued;
}

static void numbers_read_transports(struct numbers *n, const struct server_parts *from)
{
	struct tls_own own;
	struct tls *tls = from->tcp ? tcp_server_tls(from->tcp) : NULL;

	if (from->tcp)
		tcp_server_stats(from->tcp, &n->tcp);
	if (from->udp)
		udp_server_stats(from->udp, &n->udp);
	if (from->rdma)
		rr_server_stats(from->rdma, &n->rdma);
	n->rdma_read_chunks = n->rdma.read_chunks - n->rdma.position_zero;
	n->requests = n->tcp.requests_busy + n->udp.requests_busy + n->rdma.requests_busy;
	n->requests_made = n->tcp.requests + n->udp.requests + n->rdma.requests;
	if (!tls)
		return;
	tls_stats(tls, &n->tls);
	tls_own(tls, &own);
	n->tls_plain = n->tls.done - n->tls.with_certificate;
	n->tls_expires = (uint64_t)own.expires;
}

/* Payload is held without the heads of requests' replies, which exist as long as the requests, idle or not: the
 * data of calls and replies remain. */
static void numbers_read_memory(struct numbers *n, const struct server_parts *from)
{
	rn_payload_stats(from->pool, &n->payload);
	const uint64_t slabs = n->payload.slabs * RN_SLAB_SIZE;
	const uint64_t known = slabs + from->nfs4_memory->max + n->rdma.conn_bytes;

	n->memory = from->budget->used;
	n->memory_max = from->budget->max;
	n->memory_other = numbers_minus(n->memory, known);
	n->payload_unused = numbers_minus(slabs, n->payload.bytes_in_use);
	n->nfs4_memory = from->nfs4_memory->used;
	n->nfs4_reserved = numbers_minus(from->nfs4_memory->max, n->nfs4_memory);
	n->payload_buffers = numbers_minus(n->payload.buffers_in_use, n->requests_made);
	n->payload_bytes = numbers_minus(n->payload.bytes_in_use, n->requests_made * RPC_HEAD_SIZE);
	n->pipes_in_use = from->pipes ? rn_pipe_pool_in_use(from->pipes) : 0;
	n->pipes = from->pipes ? rn_pipe_pool_count(from->pipes) : 0;
}

static void numbers_read_nfs4(struct numbers *n, struct nfs4_server *nfs4)
{
	struct nfs4_grace_status g = { 0 };

	nfs4_held(nfs4, &n->nfs4);
	nfs4_grace_status(nfs4, &g);
	n->nfs4_courtesy = rn_min(n->nfs4.courtesy_clients, n->nfs4.clients);
	n->nfs4_active = n->nfs4.clients - n->nfs4_courtesy;
	n->nfs4_failing = nfs4_records_failing(nfs4);
	n->grace_active = g.active;
	n->grace_left = g.active ? g.seconds_left : 0;
	n->grace_waiting = g.active ? g.waiting : 0;
}

static void numbers_read(struct numbers *n, const struct server_parts *from)
{
	*n = (struct numbers){ .former = from->former };
	numbers_read_workers(n, from->workers);
	numbers_read_transports(n, from);
	numbers_read_memory(n, from);
	vfs_stats(from->vfs, &n->nodes);
	vfs_file_stats(from->vfs, &n->files);
	drc_stats(from->drc, &n->drc);
	if (from->gss)
		gss_stats(from->gss, &n->gss);
	if (from->nfs4)
		numbers_read_nfs4(n, from->nfs4);
	if (from->nsm)
		nsm_stats(from->nsm, &n->nsm);
	n->nsm_failing = n->nsm.failing;
}

static bool part_is_served(const struct server_parts *from, enum part part)
{
	const bool served[PARTS] = {
		[TCP] = from->tcp,
		[UDP] = from->udp,
		[TLS] = from->tcp && tcp_server_tls(from->tcp),
		[RDMA] = from->rdma,
		[GSS] = from->gss,
		[NFS4] = from->nfs4,
		[NSM] = from->nsm,
	};

	return part < TCP || served[part];
}

struct numbers_former {
	uint64_t of[sizeof(rows) / sizeof(rows[0])]; /* 0 for those that are not handed over */
};

static uint64_t numbers_value(const struct numbers *n, const struct row *r)
{
	const uint64_t now = *(const uint64_t *)(const void *)((const char *)n + r->at);

	return n->former ? now + n->former->of[r - rows] : now;
}

#define NUMBERS_SECTION "numbers"

struct saved_number {
	struct image_bytes name;
	uint64_t value;
};
static const struct image_field saved_number_fields[] = {
	IMAGE_BYTES(1, struct saved_number, name),
	IMAGE_NUMBER(2, struct saved_number, value),
};
static const struct image_kind saved_number_kind = { 1, rn_array_size(saved_number_fields),
						     saved_number_fields };

/* A counter's name as a metric, with its labels. */
struct number_name {
	char text[160];
};

static const char *or_nothing(const char *text)
{
	return text ? text : "";
}

/* Calls each() for the counters that are metrics. */
static void
numbers_each_counter(void (*each)(void *arg, size_t row, const struct number_name *name), void *arg)
{
	const struct metrics_family *family = NULL;
	struct number_name name;

	for (size_t i = 0; i < rn_array_size(rows); i++) {
		const struct row *r = &rows[i];

		if (r->family.name)
			family = &r->family;
		if (!r->metric || !family || family->type != METRICS_COUNTER)
			continue;
		snprintf(name.text, sizeof(name.text), "%s %s=%s %s=%s", family->name,
			 or_nothing(r->label), or_nothing(r->value), or_nothing(r->label2),
			 or_nothing(r->value2));
		each(arg, i, &name);
	}
}

struct numbers_saving {
	struct numbers n;
	struct image_writer *w;
};

static void save_number(void *arg, size_t row, const struct number_name *name)
{
	const struct numbers_saving *s = arg;
	const struct saved_number out = {
		.name = { (const uint8_t *)name->text, (uint32_t)strlen(name->text) },
		.value = numbers_value(&s->n, &rows[row]),
	};

	if (out.value)
		image_put(s->w, &saved_number_kind, &out);
}

void numbers_save(const struct server_parts *from, struct image_writer *w)
{
	struct numbers_saving s = { .w = w };

	numbers_read(&s.n, from);
	image_begin(w, NUMBERS_SECTION);
	numbers_each_counter(save_number, &s);
}

static void note_name(void *names, size_t row, const struct number_name *name)
{
	((struct number_name *)names)[row] = *name;
}

static void load_number(struct numbers_former *to, const struct number_name *names,
			const struct saved_number *s)
{
	for (size_t i = 0; s->name.at && i < rn_array_size(rows); i++) {
		if (strlen(names[i].text) == s->name.len &&
		    memcmp(names[i].text, s->name.at, s->name.len) == 0)
			to->of[i] = s->value;
	}
}

int numbers_load(struct image_reader *image, struct numbers_former **out)
{
	struct number_name *names = calloc(rn_array_size(rows), sizeof(*names));
	struct image_at at;
	int rc = 0;

	*out = calloc(1, sizeof(**out));
	if (!names || !*out) {
		free(names);
		return -ENOMEM;
	}
	numbers_each_counter(note_name, names);
	const bool any = image_enter(image, NUMBERS_SECTION, &at);

	while (any && rc == 0 && image_next(&at)) {
		struct saved_number s = { .value = 0 };

		rc = image_get(&at, &saved_number_kind, &s);
		if (rc == 0)
			load_number(*out, names, &s);
	}
	free(names);
	return rc;
}

void numbers_metrics(struct metrics *m, const struct server_parts *from, unsigned lease)
{
	const struct metrics_family *family = NULL; /* begun with its first value */
	struct numbers n;

	numbers_read(&n, from);
	n.lease = lease;
	for (size_t i = 0; i < rn_array_size(rows); i++) {
		const struct row *r = &rows[i];

		if (r->family.name)
			family = &r->family;
		if (!r->metric || !part_is_served(from, r->part))
			continue;
		if (family)
			metrics_family(m, family);
		family = NULL;
		metrics_value(m, numbers_value(&n, r), r->label, r->value, r->label2, r->value2,
			      NULL);
	}
}

static void numbers_held(const struct numbers *n, const struct held_sink *to)
{
	for (size_t i = 0; i < rn_array_size(rows); i++)
		if (rows[i].held)
			to->add(to->ctx, rows[i].held, numbers_value(n, &rows[i]));
}

void held_each(const struct server_parts *from, const struct held_sink *to)
{
	struct numbers n;

	numbers_read(&n, from);
	numbers_held(&n, to);
}

#define LINE_SIZE 900 /* longest line of log_sink.c */

struct line {
	char text[LINE_SIZE];
	size_t len;
};

/* Leaves out what does not fit. */
__attribute__((format(printf, 2, 3))) static void line_add(struct line *l, const char *fmt, ...)
{
	const size_t room = sizeof(l->text) - l->len;
	va_list args;

	va_start(args, fmt);
	const int n = vsnprintf(l->text + l->len, room, fmt, args);

	va_end(args);
	if (n > 0 && (size_t)n < room)
		l->len += (size_t)n;
	else
		l->text[l->len] = 0;
}

static void line_add_held(void *line, const char *name, uint64_t value)
{
	line_add(line, " %s=%" PRIu64, name, value);
}

static void line_add_part(struct line *l, const struct numbers *n, enum part part)
{
	const char *before = ": ";

	line_add(l, "%s", part_names[part]);
	for (size_t i = 0; i < rn_array_size(rows); i++) {
		if (rows[i].part != part || !rows[i].log)
			continue;
		line_add(l, "%s%" PRIu64 " %s", before, numbers_value(n, &rows[i]), rows[i].log);
		before = ", ";
	}
}

void numbers_log(const struct server_parts *from, const struct rn_logger *log, enum rn_level level)
{
	struct line held = { .len = 0 };
	const struct held_sink to = { .add = line_add_held, .ctx = &held };
	struct numbers n;

	numbers_read(&n, from);
	for (enum part part = MEMORY; part < PARTS; part++) {
		struct line l = { .len = 0 };

		if (!part_is_served(from, part))
			continue;
		line_add_part(&l, &n, part);
		rn_log(log, level, "%s", l.text);
	}
	numbers_held(&n, &to);
	to.add(to.ctx, "fds", process_fds());
	to.add(to.ctx, "threads", process_threads());
	rn_log(log, level, "held:%s", held.text);
}
