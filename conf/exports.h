/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The export table: exports(5) files read into an immutable, reference-counted set.
 *
 * A reload builds a new table and swaps the pointer; users of the old one keep their reference
 * until they are done. Nothing in a published table ever changes, so it is read without locks. All
 * strings belong to the table.
 *
 * An error in any client or option of a path leaves out that whole export, not only the client in
 * error: with one line of an access list gone, a client meant to be restricted would fall through
 * to a wider line. For the same reason the table keeps its path, so that the line of a directory
 * above does not give away what the line in error was to restrict.
 *
 * The parts of this header: the options of an export for a client; the table; addresses; paths; lists of locations; which options a
 * peer has; changes of the text; options as text.
 */
#ifndef RN_CONF_EXPORTS_H
#define RN_CONF_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "conf/diag.h"

/* The options of one export for one client, resolved for the protocol layers; how they were written
 * down is not kept. Immutable; lives as long as the exp_table that owns it. */
enum exp_flag {
	/*
	 * The flags that may differ between security flavours: read them through exp_opts_flavor().
	 */
	EXP_RW = 1u << 0,
	EXP_ROOT_SQUASH = 1u << 1,
	EXP_ALL_SQUASH = 1u << 2,

	EXP_ASYNC = 1u << 3,
	EXP_INSECURE = 1u << 4, /* source ports of 1024 and above are allowed */
	EXP_SUBTREE_CHECK = 1u << 5,
	EXP_CROSSMNT = 1u << 6,
	EXP_NOHIDE = 1u << 7,
	EXP_WDELAY = 1u << 8,
	EXP_NO_ACL = 1u << 9,
	EXP_NO_AUTH_NLM = 1u << 10,
	EXP_PNFS = 1u << 11,
	EXP_SECURITY_LABEL = 1u << 12, /* NFSv4.2 clients see SELinux labels, and may set them */
	EXP_NO_RDIRPLUS = 1u << 13,
	/* Transports that xprtsec= leaves out */
	EXP_NO_PLAIN = 1u << 15,
	EXP_NO_TLS = 1u << 16,	 /* sessions in which the client has proved no identity */
	EXP_NO_MTLS = 1u << 17,	 /* those in which it has, by a certificate */
	EXP_SIGN_FH = 1u << 18,	 /* handles must be signed */
	EXP_REFER = 1u << 19,	 /* clients are referred to other servers: see locations */
	EXP_NFS_ONLY = 1u << 14, /* nobody but this server's clients changes what is exported */
};

/* Bits beside those of enum exp_flag, for options with a value: which options a text gives. */
enum exp_given {
	EXP_GIVEN_ANONUID = 1u << 24,
	EXP_GIVEN_ANONGID = 1u << 25,
	EXP_GIVEN_FSID = 1u << 26,
	EXP_GIVEN_SEC = 1u << 27,
	EXP_GIVEN_MOUNTPOINT = 1u << 28,
	EXP_GIVEN_XPRTSEC = 1u << 29,
	EXP_GIVEN_LOCATIONS = 1u << 30,
};

enum { EXP_XPRTSEC = EXP_NO_PLAIN | EXP_NO_TLS | EXP_NO_MTLS };
enum { EXP_FLAVOR_FLAGS = EXP_RW | EXP_ROOT_SQUASH | EXP_ALL_SQUASH };

/* RFC 5531 section 8.1 */
enum { EXP_AUTH_NONE = 0, EXP_AUTH_SYS = 1 };
/* Numbers of RPCSEC_GSS' flavours in MOUNT and exports (RFC 2623 section 2.7). */
enum { EXP_AUTH_KRB5 = 390003, EXP_AUTH_KRB5I = 390004, EXP_AUTH_KRB5P = 390005 };

enum { EXP_MAX_FLAVORS = 5 };

struct exp_flavor {
	uint32_t flavor;
	uint32_t flags; /* EXP_FLAVOR_FLAGS in force under this flavour */
};

struct exp_opts {
	uint32_t flags; /* enum exp_flag; the flavour-dependent ones are those of the first flavour
			 */
	uint32_t anonuid;
	uint32_t anongid;
	uint32_t n_flavors; /* at least 1, in order of preference */
	struct exp_flavor flavors[EXP_MAX_FLAVORS];
	bool has_fsid; /* fsid=NUMBER was given */
	bool has_uuid; /* fsid=UUID was given */
	uint32_t fsid;
	uint8_t uuid[16];
	/* NULL, or the path that must be a mount point for the export to be served (mountpoint=).
	 */
	const char *mountpoint;
	/* NULL, or the list of refer= (EXP_REFER) or replicas=, without errors:
	 * conf/exports.h reads it. */
	const char *locations;
};

/* Name of a flavour in the option sec=: "sys", "none", "krb5" and so on. */
const char *exp_flavor_name(uint32_t flavor);

/* Flags in force for a call with this flavour; false when the export does not admit the flavour. */
static inline bool exp_opts_flavor(const struct exp_opts *opts, uint32_t flavor, uint32_t *flags)
{
	for (uint32_t i = 0; i < opts->n_flavors; i++) {
		if (opts->flavors[i].flavor == flavor) {
			*flags = (opts->flags & ~(uint32_t)EXP_FLAVOR_FLAGS) |
				 opts->flavors[i].flags;
			return true;
		}
	}
	return false;
}

/* True if a TCP peer with this source port may use the export ("secure"). RDMA peers have no
 * reserved ports, so callers do not ask for them. */
static inline bool exp_opts_port_ok(const struct exp_opts *opts, uint16_t port)
{
	return (opts->flags & EXP_INSECURE) || port < 1024;
}

/* In order of precedence, exports(5) "Machine Name Formats". */
enum exp_client_kind {
	EXP_CLIENT_HOST, /* one address, or a name that resolves to addresses */
	EXP_CLIENT_NETWORK,
	EXP_CLIENT_WILDCARD,
	EXP_CLIENT_NETGROUP,
	EXP_CLIENT_ANY,
};

/* An address: 4 or 16 octets in network order; IPv4-mapped IPv6 is stored as IPv4. */
struct exp_addr {
	uint8_t len; /* 0 = none, 4 or 16 */
	uint8_t bytes[16];
};

struct exp_client {
	enum exp_client_kind kind;
	/* As MOUNT EXPORT shows it: "192.0.2.0/24", "*.example.org", "@lab", "*". */
	char *spec;
	/* Host name, wildcard pattern or netgroup (without '@'), lower case but for netgroups; NULL
	 * for addresses. */
	char *name;
	struct exp_addr addr; /* HOST by address and NETWORK */
	uint8_t prefix;	      /* NETWORK: bits */
	uint32_t gss; /* flavour of a line for gss/krb5 and its like, which is for ANY; else 0 */
	const char *file; /* the table's; NULL if the line is not from a file */
	unsigned line;
	/* Options that the client's own list gives, and those of the line's defaults (-OPTIONS) that the
	 * own list leaves: bits of enum exp_flag and enum exp_given. The others have their built-in values. */
	uint32_t own, inherited;
	struct exp_opts opts;
};

struct exp_export {
	char *path; /* absolute, without trailing or doubled slashes */
	/* Stable over restarts and reloads: fsid= if given, else from the UUID or the path. */
	uint32_t id;
	unsigned index; /* in the table */
	unsigned n_clients;
	struct exp_client *clients; /* in the order of the file */
};

/* A path whose lines are in error: nobody reaches it, by the line of a directory above neither. */
struct exp_refused {
	char *path;
	const char *file; /* the table's: where the first of its lines is */
	unsigned line;
};

struct exp_table {
	unsigned n_exports, n_refused;
	struct exp_export *exports; /* sorted by path */
	struct exp_refused *refused;
	struct exp_export **by_id;
	char **files; /* names of the files that it was read from */
	size_t n_files;
	unsigned refs; /* atomic; through exp_table_ref() and exp_table_unref() */
};

struct exp_load_opts {
	const char *file; /* NULL: none */
	const char *text; /* NULL: read from the file; else its content, of text_len octets */
	size_t text_len;
	const char *dir; /* NULL: none; its *.exports are read in version order */
	bool strict;	 /* any error fails the load */
	bool check_paths; /* a path that does not exist, or is neither a directory nor a regular file, is an error */
	bool shared; /* other servers have the same files: nfs_only, which says that there are none, is an error */
	/* Sets answers[i] to false if the file system of path[i] does not answer; the path is then not looked at. A path
	 * may be NULL, which answers. NULL: all answer. */
	void (*ask)(void *ctx, const char *const *path, size_t n, bool *answers);
	void *ask_ctx;
};

/*
 * Read the files. 0 and a table with one reference (perhaps empty: look at diags->errors), or
 * -EINVAL under strict with an error in a file, -ENOMEM.
 */
int exp_table_load(const struct exp_load_opts *opts, struct cfg_diags *diags,
		   struct exp_table **table);

/* Like exp_table_load(), for one text in memory, named `name` in diagnostics; opts->file and opts->dir are not
 * used. */
int exp_table_parse(const char *name, const char *text, size_t len,
		    const struct exp_load_opts *opts, struct cfg_diags *diags,
		    struct exp_table **table) __attribute__((nonnull(4, 5, 6)));

struct exp_table *exp_table_ref(struct exp_table *table);
void exp_table_unref(struct exp_table *table);

const struct exp_export *exp_table_by_path(const struct exp_table *table, const char *path);
const struct exp_export *exp_table_by_id(const struct exp_table *table, uint32_t id);

/* Drops doubled and trailing slashes and "." of an absolute path in place, as in tables; false when there is a "..". */
bool exp_path_clean(char *path);

/* 0 if `path` is the root of a mount, as the option mountpoint= asks; -ENXIO if it is not, or
 * -errno. Called at each MNT, since the answer changes without a reload. */
int exp_check_mountpoint(const char *path);

/* Addresses of clients and peers in one shape: IPv4-mapped IPv6 is IPv4. */

enum { EXP_ADDR_STRLEN = 46 };

/* Address of a sockaddr; false for a family without one. */
bool exp_addr_from_sockaddr(const struct sockaddr *sa, struct exp_addr *addr);
/* Address of a text, IPv4 or IPv6; false when it is neither. */
bool exp_addr_from_text(const char *text, struct exp_addr *addr);
void exp_addr_to_text(const struct exp_addr *addr, char text[EXP_ADDR_STRLEN]);
void exp_addr_to_sockaddr(const struct exp_addr *addr, struct sockaddr_storage *sa);

bool exp_addr_equal(const struct exp_addr *a, const struct exp_addr *b);
/* True if addr is within net/prefix. Families never mix. */
bool exp_addr_within(const struct exp_addr *addr, const struct exp_addr *net, unsigned prefix);

/* The paths that the tables of exports name, without the rest of the tables. */

/* MNTPATHLEN of RFC 1813 appendix I: a longer path cannot be mounted. */
enum { EXP_PATH_MAX = 1024 };

/*
 * Calls fn with the cleaned path of each line, in the order of the files, whether or not the rest of the line is right.
 * Takes time in proportion to the files, and looks at nothing else. A file that does not exist has no lines. 0, -ENOMEM,
 * or -errno if a file cannot be read or the first is no regular file; fn has then had the paths of the others.
 */
int exp_paths_each(const char *file, const char *dir, void (*fn)(void *arg, const char *path),
		   void *arg);

/* Lists of refer= and replicas=: /PATH@HOST[+HOST...][:/PATH@HOST...], an IPv6 address in brackets. */

struct exp_location {
	const char *path; /* absolute */
	size_t path_len;
	const char *hosts; /* names and addresses with '+' between */
	size_t hosts_len;
};

/* The next location of a list without errors, from *list on, which moves behind it; false at the end. */
bool exp_location_next(const char **list, struct exp_location *out);

/* NULL, or what is wrong with the list and what would be right; *at is then the position of the error in it. */
const char *exp_locations_error(const char *list, size_t *at);

/*
 * The options that a peer has on an export.
 *
 * Precedence is that of exports(5): single hosts, networks, wildcards, netgroups, then everybody;
 * within one kind the first in the file. Peers are compared by address; a name is looked up only
 * when an export's answer depends on it. Answers are kept for each address up to a time to live, in
 * a bounded cache, so that a busy client costs at most one round of look-ups in that time. An
 * expired answer is renewed. While the name service is silent the old one is used, for old_ms at
 * most.
 *
 * A line that cannot be decided because the name service has not answered is never passed over: a
 * client that was to be restricted must not fall through to a wider line. The answer then is "not
 * known now", which gives no access.
 *
 * A name from the peer's reverse entry counts only if it resolves to the peer's address again.
 *
 * Thread-safe: one matcher is shared by all workers. It holds a reference to its table; answers
 * (exp_opts pointers) live as long as the caller keeps the table.
 */

enum { EXP_NAME_MAX = 256, EXP_MAX_ADDRS = 16 };

/*
 * Name look-ups, replaceable for tests. Each returns 0 or more, -ENOENT when there is no such name,
 * or another -errno when the answer is not known now (an older answer is then kept). They may be
 * called from several threads at once.
 */
struct exp_resolver {
	/* Name of an address, from the reverse map. */
	int (*reverse)(void *arg, const struct exp_addr *addr, char name[EXP_NAME_MAX]);
	/* Addresses of a name; returns their number, at most max. */
	int (*forward)(void *arg, const char *name, struct exp_addr *addrs, unsigned max);
	/* 1 when one of the names is a host of the netgroup by its own entry, else 0. */
	int (*in_netgroup)(void *arg, const char *group, const char *const *names, unsigned n);
	/* Milliseconds of a clock that never goes back. */
	uint64_t (*now)(void *arg);
	void *arg;
	/* 1 if there is such a netgroup, else 0. May be NULL: not known. */
	int (*has_netgroup)(void *arg, const char *group);
};

struct exp_match_conf {
	unsigned ttl_ms;      /* 0: five minutes */
	unsigned fail_ttl_ms; /* time to live after a failed look-up; 0: ten seconds */
	unsigned max_peers;   /* addresses kept; 0: 4096 */
	unsigned old_ms;      /* longest use of an expired answer; 0: an hour */
	/*
	 * Has run(job, false) called soon by a thread that may wait for a name service, on behalf
	 * of the peer; or run(job, true), when nothing is to be asked any more. False: too many
	 * wait, and run is not called. NULL: exp_match asks on its caller's thread.
	 */
	bool (*later)(void *arg, const struct exp_addr *peer,
		      void (*run)(void *job, bool cancelled), void *job);
	void *later_arg;
};

struct exp_matcher;

/* The system's resolver: getaddrinfo, getnameinfo, netgroups. Nothing to free. */
void exp_resolver_system(struct exp_resolver *resolver);

/* conf may be NULL. The resolver is copied; its arg must outlive the matcher. */
int exp_matcher_new(struct exp_table *table, const struct exp_resolver *resolver,
		    const struct exp_match_conf *conf, struct exp_matcher **matcher);
/* Questions handed to conf.later keep the matcher alive until they have run. */
void exp_matcher_free(struct exp_matcher *matcher);

/*
 * Options of the peer on an export of the matcher's own table. 0; -EACCES: no access; -RN_EUNNAMED: not
 * known now, ask again. A peer that is neither IPv4 nor IPv6 has no access. With conf.later it
 * never waits for a name service.
 */
int exp_match(struct exp_matcher *matcher, const struct exp_export *export,
	      const struct sockaddr *peer, const struct exp_opts **opts);
/* Answers as exp_match, but waits some seconds for the name service itself: for threads that serve no calls. */
int exp_match_wait(struct exp_matcher *matcher, const struct exp_export *export,
		   const struct sockaddr *peer, const struct exp_opts **opts);

/* Result of comparing a line with a peer. */
enum exp_verdict {
	EXP_NO_MATCH,
	EXP_MATCH,
	EXP_UNDECIDED, /* the name service does not answer: nothing behind the line counts */
	EXP_NOT_ASKED, /* a line before it has decided */
};

/*
 * Compares the peer with the lines in their order of precedence, and calls each for every one of them. name is
 * the peer's confirmed name, or NULL if no line depends on it or it is not known. The answer is what exp_match()
 * gives without its cache. Waits for name services, some seconds at most. False: the peer has no address, or
 * the export is not of the matcher's table.
 */
bool exp_match_explain(struct exp_matcher *matcher, const struct exp_export *export,
		       const struct sockaddr *peer,
		       void (*each)(void *ctx, const struct exp_client *client,
				    enum exp_verdict verdict, const char *name),
		       void *ctx);

/* Warnings for names in the export table that the name service does not know. They are no errors,
 * since the name service may know them later; until then such a line admits nobody. */

/* Waits for the name service, so for a thread that may wait. Ends at the first name without an
 * answer, with a warning about that. */
void exp_names_check(const struct exp_table *table, const struct exp_resolver *resolver,
		     struct cfg_diags *diags);

/*
 * Tables that differ from another one by one client: for temporary changes, which no file names. The files
 * are not read, so that nothing else of them comes into force.
 */

/* A client of an export, as a person names it. Any bytes are safe. */
struct exp_change {
	const char *client, *path;
	const char *options; /* as in brackets behind the client; NULL or empty: the usual ones */
};

/*
 * Makes a table with that client as well, which replaces one of the same name. The path is checked as opts says,
 * and those of the other exports are not. Files, text and strict of opts are not used. 0, -EINVAL with errors in
 * diags, or -ENOMEM.
 */
int exp_table_add(const struct exp_table *old, const struct exp_change *change,
		  const struct exp_load_opts *opts, struct cfg_diags *diags,
		  struct exp_table **out);
/* Makes a table without that client; its export is left out if it was the last one. Errors as above. */
int exp_table_remove(const struct exp_table *old, const struct exp_change *change,
		     struct cfg_diags *diags, struct exp_table **out);

/*
 * Options as text: every one that is in force, in a fixed order, as exportfs -v shows them. Two clients
 * with the same options have the same text, and an exports(5) file may have it, quoted if a mount point has blanks in it.
 */

/* Longest text of one option: a mount point or locations. */
enum { EXP_OPTION_TEXT = 8300 };

/* Calls each for every option in force. bit: of enum exp_flag or enum exp_given, to be looked for in
 * exp_client.own and exp_client.inherited. */
void exp_opts_each(const struct exp_opts *opts,
		   void (*each)(void *ctx, uint32_t bit, const char *text), void *ctx);

/* All of them with commas between, by malloc(). NULL: no memory. */
char *exp_opts_text(const struct exp_opts *opts);

#endif
