/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ringnfs.conf: the daemon's settings as plain fields, filled from typed schema rows
 * (conf/settings_schema.c).
 *
 * One row gives a key's section, name, type, range, default and text; the parser, --print-config
 * and the manual page ringnfs.conf(5) are all made from it. Sizes are bytes; durations are seconds
 * unless the name gives another unit. cfg_set_defaults() comes first. Strings belong to the
 * settings, and cfg_free() frees them.
 */
#ifndef RINGNFS_CONF_SETTINGS_H
#define RINGNFS_CONF_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "conf/diag.h"

enum cfg_log_level { CFG_LOG_ERROR, CFG_LOG_WARNING, CFG_LOG_NOTICE, CFG_LOG_INFO, CFG_LOG_DEBUG };
enum cfg_tristate { CFG_NO, CFG_YES, CFG_AUTO };
enum cfg_idmap { CFG_IDMAP_NUMBERS, CFG_IDMAP_AUTO, CFG_IDMAP_NAMES };
enum cfg_statd { CFG_STATD_OFF, CFG_STATD_AUTO };
enum cfg_io_mode { CFG_IO_BUFFERED, CFG_IO_DIRECT };
enum cfg_backend { CFG_BACKEND_FILE, CFG_BACKEND_RADOS };

enum { CFG_MAX_ADDRS = 16, CFG_MEMBER_ADDRS = 8, CFG_MAX_ROWS = 128 };

/* Place that a value comes from. */
struct cfg_origin {
	char *name;    /* a file, or an option of the command line; NULL: the default */
	unsigned line; /* of the file, the last one of a list; 0: an option */
};

/* Addresses; those that NFS listens on have no ports, and none means all of IPv4 and IPv6. */
struct cfg_addrs {
	unsigned n;
	struct sockaddr_storage addrs[CFG_MAX_ADDRS];
};

struct cfg_server {
	uint64_t threads;    /* 0: one for each online core */
	uint64_t memory_max; /* 0: a quarter of the RAM, or what is needed */
	uint64_t max_fds;    /* 0: RLIMIT_NOFILE less a reserve */
	char *state_dir;
	char *exports_file;
	char *exports_dir;
	char *control_socket; /* empty: none */
	bool strict_exports;
	int log_level; /* enum cfg_log_level */
	bool rpcbind;
};

struct cfg_tcp {
	bool enabled;
	uint64_t port;
	struct cfg_addrs listen;
	uint64_t mount_port;  /* 0: MOUNT on the NFS port only */
	uint64_t rquota_port; /* 0: RQUOTA on the NFS port only */
	uint64_t max_connections;
	uint64_t max_requests; /* in flight, for each connection */
	uint64_t idle_timeout; /* 0: never */
	uint64_t stall_timeout;
	uint64_t max_record;
};

struct cfg_udp {
	bool enabled;
	bool nfs; /* NFS itself too */
};

struct cfg_rdma {
	int enabled; /* enum cfg_tristate */
	uint64_t port;
	struct cfg_addrs listen;
	uint64_t inline_size;
	uint64_t credits;
	uint64_t poll_usec; /* 0: never spin */
	uint64_t idle_timeout;
	uint64_t stall_timeout;
	uint64_t max_connections;
};

struct cfg_nfs2 {
	bool enabled;
};

struct cfg_nfs3 {
	bool enabled;
	uint64_t max_io;
	uint64_t drc_size; /* entries */
	uint64_t drc_memory;
	bool manage_gids;
	bool rquota;
};

struct cfg_nlm {
	int statd;	     /* enum cfg_statd */
	uint64_t statd_port; /* UDP; 0: any privileged one */
};

struct cfg_nfs4 {
	bool enabled;
	uint64_t minor_min;
	uint64_t minor_max;
	uint64_t lease_time;
	uint64_t grace_time;
	uint64_t max_io;
	uint64_t max_sessions; /* 0: as memory allows */
	int idmap;	       /* enum cfg_idmap */
	char *idmap_file;      /* empty: libnfsidmap's own */
	bool manage_gids;
	bool delegations;
	bool posix_acls;
	struct cfg_addrs copy_servers; /* with ports */
};

struct cfg_vfs {
	int io_mode; /* enum cfg_io_mode */
	bool handle_mac;
	uint64_t ring_entries;
};

struct cfg_gss {
	int enabled;	 /* enum cfg_tristate */
	char *keytab;	 /* empty: the system's */
	char *principal; /* as gss/gss.h has it */
	uint64_t max_contexts;
};

struct cfg_tls {
	char *certificate, *key, *ca, *crl, *user_map; /* paths; empty: none */
	bool require_alpn;
	bool ktls;
};

struct cfg_metrics {
	struct cfg_addrs listen; /* with ports; none: not over TCP */
};

struct cfg_cluster {
	char *name; /* empty: this server is alone */
	char *instance;
	char *path;
	struct cfg_addrs address; /* that clients reach this member by; none: it does not say */
	bool pnfs;
	uint64_t dead_time;
	int backend; /* enum cfg_backend; the rest is for RADOS */
	char *pool, *ceph_conf, *ceph_user;
	char *ceph_fs; /* empty: all file systems */
};

struct cfg_settings {
	struct cfg_server server;
	struct cfg_tcp tcp;
	struct cfg_udp udp;
	struct cfg_rdma rdma;
	struct cfg_nfs2 nfs2;
	struct cfg_nfs3 nfs3;
	struct cfg_nfs4 nfs4;
	struct cfg_nlm nlm;
	struct cfg_vfs vfs;
	struct cfg_gss gss;
	struct cfg_tls tls;
	struct cfg_metrics metrics;
	struct cfg_cluster cluster;
	struct cfg_origin origin[CFG_MAX_ROWS]; /* by row of the schema */
};

/* 0 or -ENOMEM. */
int cfg_set_defaults(struct cfg_settings *settings);
void cfg_free(struct cfg_settings *settings);

/*
 * Reads a file into the settings, over their values. 0, -EINVAL if a message of CFG_ERROR was added
 * (the settings then hold the correct part of the file and must not be used), or -errno with a
 * message if the file cannot be read.
 */
int cfg_load(struct cfg_settings *settings, const char *path, struct cfg_diags *diags);

/* Parses a text in memory like a file; name stands for the file in messages. */
int cfg_parse(struct cfg_settings *settings, const char *name, const char *text, size_t len,
	      struct cfg_diags *diags);

/*
 * Sets one key, "section.name", as if a file said "[section] name = value": for options of the
 * command line. `origin` stands for the file in messages, as in "--port". 0, -EINVAL with a
 * message, -ENOMEM.
 */
int cfg_set(struct cfg_settings *settings, const char *key, const char *value, const char *origin,
	    struct cfg_diags *diags);

/* Checks that settings from several places go together; called after the last of them, the command
 * line included. 0, or -EINVAL with a message from `origin`. */
int cfg_check(const struct cfg_settings *settings, const char *origin, struct cfg_diags *diags);

/*
 * Compares the settings with nfs.conf(5) at `path`, the files that it includes and those of PATH.d
 * that end in .conf. Adds a warning for each value with a counterpart here that says something
 * else. A setting that was given in ringnfs.conf or on the command line was chosen, and is not
 * warned of. A missing file is nothing to warn of. 0 or -ENOMEM.
 */
int cfg_compare_nfs_conf(const struct cfg_settings *settings, const char *path,
			 struct cfg_diags *diags);

/* One setting as a text. */
struct cfg_shown {
	const char *section, *name;
	const char *key;   /* SECTION.NAME */
	const char *value; /* as ringnfs.conf would have it */
	const struct cfg_origin *origin;
};
/* Calls each for every setting, section by section. */
void cfg_each(const struct cfg_settings *settings,
	      void (*each)(void *ctx, const struct cfg_shown *shown), void *ctx);

/* Place where a key, "section.name", was set. NULL: it has its default. */
const struct cfg_origin *cfg_origin_of(const struct cfg_settings *settings, const char *key);

/* Prints the settings in the syntax of ringnfs.conf; the output reads back to the same settings. */
void cfg_print(const struct cfg_settings *settings, FILE *out);
/* Like cfg_print(), with a comment above each value that is not a default: the position that it comes from. */
void cfg_print_origins(const struct cfg_settings *settings, FILE *out);

#endif
