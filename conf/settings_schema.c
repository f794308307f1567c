/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/settings_schema.h"

#include <sys/un.h>

#define CFG_SOCKET_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)
#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define TIB(n) ((uint64_t)(n) << 40)

#define ROW(section_, name_, type_)                                                                \
	.section = #section_, .name = #name_, .key = #section_ "." #name_, .type = type_,          \
	.offset = offsetof(struct cfg_settings, section_.name_)
#define RANGE(min_, max_) .min = min_, .max = max_

static const char *const log_levels[] = { "error", "warning", "notice", "info", "debug", NULL };
static const char *const tristate[] = { "no", "yes", "auto", NULL };
static const char *const idmaps[] = { "numbers", "auto", "names", NULL };
static const char *const statds[] = { "off", "auto", NULL };
static const char *const io_modes[] = { "buffered", "direct", NULL };
static const char *const backends[] = { "file", "rados", NULL };

/* clang-format off */
const struct cfg_section cfg_sections[] = {
	{ "server", "The daemon as a whole" },
	{ "tcp", "NFS and MOUNT over TCP" },
	{ "udp", "MOUNT and locks over UDP" },
	{ "rdma", "NFS over RDMA" },
	{ "nfs2", "NFS version 2" },
	{ "nfs3", "NFS version 3" },
	{ "nfs4", "NFS version 4" },
	{ "nlm", "Locks of NFS version 3" },
	{ "vfs", "Access to the exported file systems" },
	{ "gss", "Kerberos: sec=krb5, krb5i and krb5p" },
	{ "tls", "TLS for NFS over TCP: xprtsec=tls and mtls" },
	{ "metrics", "Figures for monitoring" },
	{ "cluster", "Several servers on one file system (experimental)" },
};
const unsigned cfg_n_sections = sizeof(cfg_sections) / sizeof(cfg_sections[0]);

const struct cfg_row cfg_rows[] = {
	{ ROW(server, threads, CFG_UINT), RANGE(0, 256), .def = "0",
	  .text = "Worker threads. 0 means one for each online core, but at least four." },
	{ ROW(server, memory_max, CFG_SIZE), RANGE(MIB(64), TIB(64)), .zero = true, .def = "0",
	  .text = "Memory for file data on its way and for connections. When it is used up, requests wait. A client "
		  "(an address, with all of its connections) may hold as much of it as is still left. "
		  "An eighth is reserved for the state of NFSv4 clients. What other settings need is added up at the start: if it "
		  "is more, the server does not start, and tells what would be enough. 0 means a quarter of the machine's memory, or as "
		  "much as is needed, up to a half." },
	{ ROW(server, max_fds, CFG_UINT), RANGE(128, 1000000000), .zero = true, .def = "0",
	  .text = "File descriptors that the cache of open files may hold. tcp.max_connections leaves about a quarter "
		  "of those of the process for it and for leases of delegated files, or more. 0 means 65536, or as many as "
		  "are left. Leases may have a quarter of the number that is set, or else of what is left." },
	{ ROW(server, state_dir, CFG_PATH), .def = "/var/lib/ringnfs",
	  .text = "Directory for what outlives a restart: the secret that file handles are signed with, and the "
		  "records of NFSv4 clients that hold open files." },
	{ ROW(server, exports_file, CFG_PATH), .def = "/etc/exports",
	  .text = "The table of exports, in the syntax of exports(5)." },
	{ ROW(server, exports_dir, CFG_PATH), .def = "/etc/exports.d",
	  .text = "Directory whose files ending in .exports are read as further tables. It need not exist." },
	{ ROW(server, control_socket, CFG_PATH), RANGE(0, CFG_SOCKET_MAX), .zero = true, .def = "/run/ringnfs/control",
	  .text = "Socket that ringnfsctl(8) talks to. Root may do everything there, and members of the group ringnfs may "
		  "ask for what the server does. Each server on a machine needs a path of its own. The directory is made if it "
		  "is missing. Empty means that there is no socket." },
	{ ROW(server, strict_exports, CFG_BOOL), .def = "no",
	  .text = "Refuse the whole table when anything in it is in error. Otherwise exports in error "
		  "are left out, and the others are served." },
	{ ROW(server, log_level, CFG_ENUM), .words = log_levels, .def = "info",
	  .text = "The least important messages that are logged. ringnfsctl(8) changes it while the server runs, for a part of the server too." },
	{ ROW(server, rpcbind, CFG_BOOL), .def = "yes",
	  .text = "Register with rpcbind(8). A missing rpcbind is a warning only: clients then need the "
		  "ports as mount options." },

	{ ROW(tcp, enabled, CFG_BOOL), .def = "yes",
	  .text = "Serve over TCP." },
	{ ROW(tcp, port, CFG_UINT), RANGE(1, 65535), .def = "2049",
	  .text = "Port for NFS. MOUNT is answered on it too." },
	{ ROW(tcp, listen, CFG_ADDRS), .def = "",
	  .text = "Addresses to listen on. None means all of IPv4 and IPv6." },
	{ ROW(tcp, mount_port, CFG_UINT), RANGE(0, 65535), .def = "20048",
	  .text = "Further port for MOUNT, of NFS version 3. 0, or the NFS port, means none: MOUNT is answered on the NFS "
		  "port alone." },
	{ ROW(tcp, rquota_port, CFG_UINT), RANGE(0, 65535), .def = "0",
	  .text = "Further port for RQUOTA (nfs3.rquota). 0, or the NFS port, means none: RQUOTA is answered on the NFS port "
		  "alone, which rpcbind(8) tells clients." },
	{ ROW(tcp, max_connections, CFG_UINT), RANGE(1, 1000000), .def = "16384",
	  .text = "Connections at a time, with those to clients of NFSv4.0 for callbacks, which are a quarter of them "
		  "at most. Above that, connections are closed to make room: first those of hosts that no "
		  "export admits, then idle ones of the clients with most connections, then any of a client with more "
		  "than its quota." },
	{ ROW(tcp, max_requests, CFG_UINT), RANGE(1, 4096), .def = "128",
	  .text = "Requests of one connection worked on at a time. Further ones stay in the socket." },
	{ ROW(tcp, idle_timeout, CFG_SECONDS), RANGE(0, 7 * 86400), .def = "6m",
	  .text = "A connection without a request for so long is closed. 0 means never." },
	{ ROW(tcp, stall_timeout, CFG_SECONDS), RANGE(1, 3600), .def = "1m",
	  .text = "A connection is closed whose client, for so long, takes no bytes of its replies or does not complete "
		  "a request that it began. Meanwhile up to 4M of replies are queued for it, and no further requests "
		  "are read. After 10 seconds a request must arrive at 4 KiB a second on average. While others wait "
		  "for memory, 4 seconds without progress are enough, and 32 KiB must arrive in each second." },
	{ ROW(tcp, max_record, CFG_SIZE), RANGE(KIB(64), MIB(64)), .def = "1088K",
	  .text = "Longest RPC message. A longer one closes its connection. It must be at least 4K above "
		  "nfs3.max_io and nfs4.max_io." },

	{ ROW(udp, enabled, CFG_BOOL), .def = "yes",
	  .text = "Serve MOUNT, NLM and RQUOTA, which belong to NFS version 3, over UDP, on the addresses and ports of [tcp]. "
		  "Many clients of version 3 ask for locks and quotas so." },
	{ ROW(udp, nfs, CFG_BOOL), .def = "no",
	  .text = "Serve NFS version 3, and 2 if nfs2.enabled is yes, and NFSACL over UDP too. A call moves 32 KiB of data at "
		  "most. For old clients only: a lost fragment costs the whole datagram, and in a network that is fast "
		  "enough fragments of different datagrams are put together unnoticed." },

	{ ROW(rdma, enabled, CFG_ENUM), .words = tristate, .def = "auto",
	  .text = "Serve over RDMA. With auto a machine without an RDMA device is served by TCP alone; with "
		  "yes that is an error." },
	{ ROW(rdma, port, CFG_UINT), RANGE(1, 65535), .def = "20049",
	  .text = "Port for NFS." },
	{ ROW(rdma, listen, CFG_ADDRS), .def = "",
	  .text = "Addresses to listen on. None means all of IPv4 and IPv6, on every RDMA device." },
	{ ROW(rdma, inline_size, CFG_SIZE), RANGE(KIB(1), KIB(256)), .step = KIB(1), .def = "4K",
	  .text = "Longest message sent and received without chunks. The smaller of the two ends' sizes is "
		  "used." },
	{ ROW(rdma, credits, CFG_UINT), RANGE(1, 1024), .def = "128",
	  .text = "Requests that a client may have under way on one connection. All connections share a quarter of "
		  "memory_max, or less if that is small; when there are many, later ones get fewer requests, down to 4." },
	{ ROW(rdma, poll_usec, CFG_UINT), RANGE(0, 10000), .def = "0",
	  .text = "Microseconds to poll a busy completion queue before waiting for its event. 0 means not at "
		  "all. Polling buys latency with processor time." },
	{ ROW(rdma, idle_timeout, CFG_SECONDS), RANGE(0, 7 * 86400), .def = "6m",
	  .text = "A connection without a request for so long is closed. 0 means never." },
	{ ROW(rdma, stall_timeout, CFG_SECONDS), RANGE(1, 3600), .def = "1m",
	  .text = "A connection is closed whose client, for so long, takes no reply and delivers none of the data that "
		  "it offered. While others wait for memory, 4 seconds are enough." },
	{ ROW(rdma, max_connections, CFG_UINT), RANGE(1, 65536), .def = "1024",
	  .text = "Connections at a time. Above that, one is closed to make room for each new one, as with TCP. "
		  "If none may be closed, the new one is refused." },

	{ ROW(nfs2, enabled, CFG_BOOL), .def = "no",
	  .text = "Serve NFS version 2 (RFC 1094), for clients that have no other. It needs nfs3.enabled, whose MOUNT and "
		  "locks it uses. File systems whose handles do not fit in its 32 bytes, such as btrfs, are not "
		  "served by it; the log names their exports at the start. Files end at 4 GiB for it, and every WRITE "
		  "waits for the disk." },

	{ ROW(nfs3, enabled, CFG_BOOL), .def = "yes",
	  .text = "Serve NFS version 3." },
	{ ROW(nfs3, max_io, CFG_SIZE), RANGE(KIB(4), MIB(1)), .step = KIB(4), .def = "1M",
	  .text = "Most data in one READ or WRITE." },
	{ ROW(nfs3, drc_size, CFG_UINT), RANGE(64, 1 << 20), .def = "131072",
	  .text = "Most replies kept for retransmitted requests of NFS versions 3 and 4.0." },
	{ ROW(nfs3, drc_memory, CFG_SIZE), RANGE(MIB(1), TIB(1)), .def = "32M",
	  .text = "Memory for these replies, with 300 bytes or so beside each. The host with most loses its "
		  "oldest when it is full." },
	{ ROW(nfs3, manage_gids, CFG_BOOL), .def = "no",
	  .text = "Take a user's groups from this machine rather than from the request, which carries at "
		  "most 16." },

	{ ROW(nfs3, rquota, CFG_BOOL), .def = "yes",
	  .text = "Tell clients the quotas of users and groups by RQUOTA: a user's own, and root any. Say no where "
		  "rpc.rquotad runs, whose registration for TCP would be replaced. Quotas are never set by clients." },

	{ ROW(nfs4, enabled, CFG_BOOL), .def = "yes",
	  .text = "Serve NFS version 4." },
	{ ROW(nfs4, minor_min, CFG_UINT), RANGE(0, 2), .def = "0",
	  .text = "The lowest minor version: 1 leaves out NFSv4.0, which has no sessions." },
	{ ROW(nfs4, minor_max, CFG_UINT), RANGE(0, 2), .def = "2",
	  .text = "The highest minor version." },
	{ ROW(nfs4, lease_time, CFG_SECONDS), RANGE(5, 3600), .def = "90s",
	  .text = "A client that is silent for so long may lose its open files and locks to others. It keeps them "
		  "until somebody needs them." },
	{ ROW(nfs4, grace_time, CFG_SECONDS), RANGE(5, 3600), .def = "90s",
	  .text = "After a restart, clients have so long to get their locks back before others may have them. The time "
		  "ends as soon as all have done so; clients of version 4.0 cannot say that they have. It is doubled at "
		  "most while clients are still reclaiming. It is never shorter than lease_time was before the restart, "
		  "as that is the time that clients know." },
	{ ROW(nfs4, max_io, CFG_SIZE), RANGE(KIB(4), MIB(1)), .step = KIB(4), .def = "1M",
	  .text = "Most data in one READ or WRITE." },
	{ ROW(nfs4, max_sessions, CFG_UINT), RANGE(0, 1000000), .def = "0",
	  .text = "Sessions of all clients at a time. 0 means as many as memory_max allows." },
	{ ROW(nfs4, idmap, CFG_ENUM), .words = idmaps, .def = "auto",
	  .text = "How clients are told a file's owner and group: by number, or by name (user@domain, see "
		  "idmapd.conf(5)). With auto they are told by number if the client identifies its users by numbers "
		  "(sec=sys), else by name. Clients may set owners by number in any case, and by name unless this is "
		  "numbers." },
	{ ROW(nfs4, idmap_file, CFG_PATH), .zero = true, .def = "",
	  .text = "Configuration of libnfsidmap, which maps the names of users, and Kerberos principals to users. Empty means "
		  "idmapd.conf(5)." },
	{ ROW(nfs4, manage_gids, CFG_BOOL), .def = "no",
	  .text = "Take a user's groups from this machine rather than from the request, which carries at "
		  "most 16." },
	{ ROW(nfs4, delegations, CFG_BOOL), .def = "yes",
	  .text = "Give clients of version 4 delegations, if they can be called back: as long as nobody changes a file, they open it to "
		  "read, and believe what they have cached, without asking; and as long as nobody else uses a file that they write, "
		  "they open and lock it by themselves. Others wait until a delegation is returned." },
	{ ROW(nfs4, posix_acls, CFG_BOOL), .def = "no",
	  .text = "Show and set POSIX ACLs by NFSv4.2 as they are, besides the NFSv4 ACLs that they are mapped to, so that getfacl(1) and "
		  "setfacl(1) work as by NFSv3, with clients that have that. Experimental: the numbers of the attributes are those of a "
		  "draft (draft-ietf-nfsv4-posix-acls) and may change." },
	{ ROW(nfs4, copy_servers, CFG_SERVERS), .def = "",
	  .text = "Other servers, which may read a file here for a copy that a client of both asks for, and which files are "
		  "read from in such copies, at that port. Name only servers that are trusted: they may read what their clients "
		  "may. The exports must admit them. With none, clients copy by themselves." },

	{ ROW(nlm, statd, CFG_ENUM), .words = statds, .def = "auto",
	  .text = "Keep a record of the clients that have locks, tell them after a restart that they must reclaim them, and "
		  "free the locks of a client that tells that it has restarted. With auto this is registered with "
		  "rpcbind(8) as the status monitor (program 100024), unless rpc.statd(8) runs on this machine: what clients "
		  "tell of themselves then goes there, and is not seen. With off a restart loses the locks, and "
		  "those of a client that dies stay." },
	{ ROW(nlm, statd_port, CFG_UINT), RANGE(0, 65535), .def = "0",
	  .text = "UDP port of the status monitor, which the clients are told from, too. 0 means any free port from 665 to 1023. "
		  "Some clients take no notice of a port above that." },

	{ ROW(vfs, io_mode, CFG_ENUM), .words = io_modes, .def = "buffered",
	  .text = "How file data is read and written: through the page cache, or past it with O_DIRECT." },
	{ ROW(vfs, handle_mac, CFG_BOOL), .def = "yes",
	  .text = "Sign file handles with a secret in state_dir, so that a client cannot make one up. A change of this "
		  "setting makes all handles stale that clients hold." },
	{ ROW(vfs, ring_entries, CFG_UINT), RANGE(8, 4096), .def = "256",
	  .text = "Submission queue entries of each worker's io_uring." },

	{ ROW(gss, enabled, CFG_ENUM), .words = tristate, .def = "auto",
	  .text = "Serve calls under RPCSEC_GSS with Kerberos V5. With auto this is so if the keytab has a key to serve with; "
		  "with yes the server does not start without one." },
	{ ROW(gss, keytab, CFG_PATH), .zero = true, .def = "",
	  .text = "File with the server's keys. It is read at the start and at each reload. Empty means the system's, which is "
		  "/etc/krb5.keytab unless krb5.conf(5) has another." },
	{ ROW(gss, principal, CFG_NAME), RANGE(1, 255), .def = "nfs",
	  .text = "Principal that clients ask for. SERVICE means the key of any host for that service, SERVICE@HOST that of one "
		  "host, and SERVICE/HOST@REALM one principal." },
	{ ROW(gss, max_contexts, CFG_UINT), RANGE(64, 1000000), .def = "16384",
	  .text = "Established contexts that are kept, at most: one for each user of each client, and two or three more for a "
		  "client. When there are more, the client with most loses those that it has not used for longest, and makes "
		  "new ones when it needs them. Each is counted with 13 KiB, of which an eighth of server.memory_max is set aside "
		  "at most: with less memory there are fewer." },

	{ ROW(tls, certificate, CFG_PATH), .zero = true, .def = "",
	  .text = "PEM file with the server's certificate, then those of the CAs between it and the one that clients trust. It "
		  "and the other files are read at the start and at each reload. Empty means that TLS is not offered." },
	{ ROW(tls, key, CFG_PATH), .zero = true, .def = "",
	  .text = "PEM file with the certificate's private key, without a password. It must not be open to everybody. Empty "
		  "means that the key is in the certificate's file." },
	{ ROW(tls, ca, CFG_PATH), .zero = true, .def = "",
	  .text = "PEM file with the CAs that sign clients' certificates. A client whose certificate they did not sign is "
		  "refused. Empty means that clients' certificates prove nothing, so that xprtsec=mtls admits nobody." },
	{ ROW(tls, crl, CFG_PATH), .zero = true, .def = "",
	  .text = "PEM file with the list of certificates that tls.ca has revoked. Empty means that there is none." },
	{ ROW(tls, user_map, CFG_PATH), .zero = true, .def = "",
	  .text = "File that maps clients' certificates to users, for AUTH_SYS and AUTH_NONE calls; ringnfs.conf(5) has its form "
		  "below. It is read at the start and at each reload. Empty means that certificates stand for machines, and users "
		  "are those of the calls." },
	{ ROW(tls, require_alpn, CFG_BOOL), .def = "no",
	  .text = "Refuse clients that do not name the protocol \"sunrpc\" in the handshake (ALPN). Those that name another one "
		  "only are always refused." },
	{ ROW(tls, ktls, CFG_BOOL), .def = "no",
	  .text = "Let the kernel encrypt what is sent, if it has the module tls. A client that changes its key is then cut off." },

	{ ROW(metrics, listen, CFG_PORTS), .def = "",
	  .text = "Addresses and ports where anybody may read metrics over HTTP, at /metrics: for Prometheus and the like. There "
		  "are no names of files and clients in them. None means that they are on the control socket alone." },

	{ ROW(cluster, name, CFG_NAME), RANGE(1, 30), .zero = true, .def = "",
	  .text = "Name of the cluster, which clients are told as the scope of all of its servers. It must differ from those of other clusters that "
		  "the clients use. Empty means that this server is alone, and that the other keys of the section are empty, too. Experimental: ringnfsd(8) "
		  "says what is missing. No delegations are given, opens that deny others access are refused, and so is the export option nfs_only." },
	{ ROW(cluster, instance, CFG_NAME), RANGE(1, 30), .zero = true, .def = "",
	  .text = "Name of this member of the cluster: letters, digits, \".\", \"_\" and \"-\". A member is an address, this name and a state_dir on the cluster "
		  "file system; any machine may run it, and one at a time." },
	{ ROW(cluster, path, CFG_PATH), .zero = true, .def = "",
	  .text = "Directory on the cluster file system, the same for all members, where they keep what they have in common, with the key that file handles "
		  "are signed with. It must be there, and writable to root alone. It must not be exported." },
	{ ROW(cluster, address, CFG_ADDRS), .def = "",
	  .text = "Addresses that clients reach this member by, at most eight, which move with it to another machine. Other members and ringnfsctl(8) show them. "
		  "Where two members may run on one machine, tcp.listen and rdma.listen have the same." },
	{ ROW(cluster, pnfs, CFG_BOOL), .def = "no",
	  .text = "Clients of NFSv4.1 and 4.2 get layouts of files from this member (pNFS, flexible files), by which they read and write them at another "
		  "one, by NFSv3 and at its cluster.address. ringnfsd(8) says what that does not protect. Needs nfs3.enabled." },
	{ ROW(cluster, dead_time, CFG_SECONDS), RANGE(2, 600), .def = "10s",
	  .text = "A member that was not heard of for so long is dead to the others, and ends by itself before. It must be longer than the cluster "
		  "file system pauses when one of its own servers fails. The value of the member that starts first counts." },
	{ ROW(cluster, backend, CFG_ENUM), .words = backends, .def = "file",
	  .text = "Where members keep what they agree upon: in files in path, or in a pool of RADOS, Ceph's object store. With rados the CephFS client of a "
		  "machine that has died is evicted, so that its locks do not last until Ceph gives it up. That needs the libraries librados2 and libcephfs2, and a "
		  "mount of its own for each member. pool and the keys that begin with ceph_ are for rados only." },
	{ ROW(cluster, pool, CFG_NAME), RANGE(1, 128), .zero = true, .def = "",
	  .text = "Pool of RADOS for three small objects of the cluster. It must be replicated, not erasure-coded." },
	{ ROW(cluster, ceph_conf, CFG_PATH), .def = "/etc/ceph/ceph.conf", .text = "Ceph's configuration, which names its monitors." },
	{ ROW(cluster, ceph_user, CFG_NAME), RANGE(1, 64), .def = "ringnfs",
	  .text = "User of Ceph, without \"client.\". Its keyring must be readable to root. It needs the capabilities mon 'allow r', osd 'allow rw pool=POOL', and "
		  "mds 'allow *', without which metadata servers evict nobody for it." },
	{ ROW(cluster, ceph_fs, CFG_NAME), RANGE(1, 64), .zero = true, .def = "",
	  .text = "Name of the CephFS whose metadata servers are asked to evict a client. Empty means those of all in that Ceph." },
};
/* clang-format on */
const unsigned cfg_n_rows = sizeof(cfg_rows) / sizeof(cfg_rows[0]);
