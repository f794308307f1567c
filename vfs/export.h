/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports as vfs/ and the protocols see them. The daemon builds them out of exports(5) and answers,
 * through struct vfs_exports, which export a handle or a path belongs to and what a client may do
 * there; a reload swaps the set behind it, and an export lives until its last reference is put.
 */
#ifndef RN_VFS_EXPORT_H
#define RN_VFS_EXPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "vfs/types.h"

enum vfs_io_mode { VFS_IO_BUFFERED, VFS_IO_DIRECT };

struct vfs;
struct vfs_export;

/* Rights of one client in one export. */
enum vfs_access_flags {
	VFS_RO = 1,
	VFS_ROOT_SQUASH = 2, /* uid and gid 0 become anonymous */
	VFS_ALL_SQUASH =
		4, /* everybody is anonymous: by the option, or since the flavour or transport is not accepted */
	VFS_ASYNC = 8,		  /* acknowledge before it is stable */
	VFS_SECURE = 16,	  /* the client's port must be below 1024 */
	VFS_ABSENT = 32,	  /* NFSv4: the files are at other servers only (refer=) */
	VFS_CROSSMNT = 128,	  /* mounts below the export are shown */
	VFS_NO_READDIRPLUS = 512, /* NFSv3's READDIRPLUS is not supported (nordirplus) */
	VFS_NO_AUTH_NLM = 1024, /* NLM's locks take neither a flavour nor permission for the file */
	VFS_SECURITY_LABEL = 2048, /* security labels are shown, and may be set (vfs/xattr.h) */
	/* Transports that the export does not take: see rpc_protection in rpc/message.h */
	VFS_NO_PLAIN = 8192,
	VFS_NO_TLS = 16384,
	VFS_NO_MTLS = 32768,
	VFS_NOHIDE =
		65536,	   /* clients of NFSv2 and 3 cross into the export from the one around it */
	VFS_NO_ACL = 4096, /* ACLs are neither shown nor set; they decide all the same */
};

/* Flags of enum vfs_access_flags that differ between the security flavours of an export. */
#define VFS_FLAVOR_FLAGS ((uint32_t)VFS_RO | VFS_ROOT_SQUASH | VFS_ALL_SQUASH)

enum vfs_sec { VFS_SEC_NONE, VFS_SEC_SYS, VFS_SEC_KRB5, VFS_SEC_KRB5I, VFS_SEC_KRB5P };
#define VFS_SECS 5

struct vfs_access {
	uint32_t flags; /* VFS_FLAVOR_FLAGS among them are those of the flavour in use */
	uint32_t anonuid, anongid;
	/* Flavours that are accepted, in the administrator's order of preference. */
	uint8_t nsecs;
	struct {
		uint8_t sec;   /* enum vfs_sec */
		uint8_t flags; /* VFS_FLAVOR_FLAGS under it, all of which are below 256 */
	} secs[VFS_SECS];
};

/* Adds a flavour at the end of the list; a second time it does nothing. */
void vfs_access_accept(struct vfs_access *a, enum vfs_sec sec, uint32_t flavor_flags);
/* Puts the flags of that flavour in force. False: it is not accepted; the flags then are those of a
 * caller who may read only, and is anonymous. */
bool vfs_access_use(struct vfs_access *a, enum vfs_sec sec);
bool vfs_access_accepts(const struct vfs_access *a, enum vfs_sec sec);

enum vfs_export_flags {
	VFS_EXPORT_CROSSMNT = 1, /* mounts below it are shown to some client */
	/* The id was given by fsid=, which stands for the identity of the file system: handles stay
	 * valid when another file system with the same root takes its place. */
	VFS_EXPORT_FSID = 2,
};

struct vfs_export_config {
	const char *path; /* a directory, or a file: exports(5) allows both */
	uint32_t id;
	enum vfs_io_mode mode;
	unsigned flags; /* enum vfs_export_flags */
};

/* Facts about file systems, for opening several exports one after the other. What they tell is not looked at again until they are freed.
 * NULL: no memory. */
struct vfs_fs_seen *vfs_fs_seen_new(void);
void vfs_fs_seen_free(struct vfs_fs_seen *seen); /* NULL is allowed */

/*
 * Opens an export. The mount is cloned
 * without what is mounted below it where the kernel allows (open_tree), so lookups cannot leave it.
 * On failure *why gets a static text that says what would help (a file system without handles,
 * say). The caller gets one reference.
 */
int vfs_export_open(struct vfs *vfs, const struct vfs_export_config *cfg, struct vfs_export **out,
		    const char **why);
/* The same with facts that were found just before, to which it adds; NULL: none. */
int vfs_export_open_next(struct vfs *vfs, const struct vfs_export_config *cfg,
			 struct vfs_fs_seen *seen, struct vfs_export **out, const char **why);
void vfs_export_ref(struct vfs_export *exp);
void vfs_export_put(struct vfs_export *exp);
uint32_t vfs_export_id(const struct vfs_export *exp);
const char *vfs_export_path(const struct vfs_export *exp);
/* The path without symbolic links, as it was when the export was opened. */
const char *vfs_export_real_path(const struct vfs_export *exp);
/* The name of an export's root, since the export was opened. */
enum vfs_root_name {
	VFS_ROOT_NAMED, /* as it was */
	VFS_ROOT_MOVED, /* the root, or a directory above it, was renamed */
	/* The kernel knows the name no more: it was removed, or the file system has dropped it from the cache. */
	VFS_ROOT_UNNAMED,
	VFS_ROOT_REMOVED,
};
/* Never waits for the file system. */
enum vfs_root_name vfs_export_root_name(const struct vfs_export *exp);
/* The part of path behind dir and a slash; NULL if path is not below dir. */
const char *vfs_path_below(const char *path, const char *dir);

/* nfs_only is true if the administrator promises that nobody but this server's clients changes what is exported
 * (exports option nfs_only). False at first. */
void vfs_export_set_nfs_only(struct vfs_export *exp, bool nfs_only);
bool vfs_export_is_nfs_only(const struct vfs_export *exp);
/* draining is true while clients get no new state below the export (opens, locks, delegations), and keep what they have. False at first. The
 * protocols ask. */
void vfs_export_set_draining(struct vfs_export *exp, bool draining);
bool vfs_export_is_draining(const struct vfs_export *exp);

/* The kernel's id of the mount of its path. A descriptor is held there, so that umount(8) finds it
 * busy and the id is not reused as long as the export is open. */
uint64_t vfs_export_mnt_id(const struct vfs_export *exp);
/* True if both are the same directory of the same file system: handles of one are good for the
 * other. */
bool vfs_export_same_root(const struct vfs_export *a, const struct vfs_export *b);
/* True if handles carry a MAC, so that clients cannot make them up. */
bool vfs_export_signs(const struct vfs_export *exp);
/* False if only the device number identifies its file system, so that handles may end with the next
 * mount of it. */
bool vfs_export_fs_known(const struct vfs_export *exp);
/* Fills path with where the mount of a handle lies, if that is a mount below the export: 1. 0: it is the export's own mount, or the
 * handle is not one of ours, which vfs_fh_open tells. -ESTALE: there is no such mount. */
int vfs_submount_path(struct vfs_export *exp, const struct vfs_fh *fh, char *path, size_t size);
/* True if the export's root lies on another mount than the export around it. */
bool vfs_export_is_mounted_in(const struct vfs_export *inner, const struct vfs_export *outer);
/* True for a file system of this machine's own (vfs/fs/file_system.h): what the kernel has of it
 * in memory it gives without asking another process or host. */
bool vfs_export_is_local(const struct vfs_export *exp);

/*
 * A cluster file system gives a machine up that it has not heard of, or that somebody evicts. Then nothing that this machine has is of worth, and its
 * errors say nothing about the files (doc/design/cluster.md).
 */
/* True if an error of opening a directory, or looking at it, as root, comes of that. Errors that a damaged or removed directory has, too, are
 * none. */
bool vfs_error_tells_lost(int rc);
/* Asks whether the file system of an open directory has given this machine up. The thread is root. */
bool vfs_is_lost(int fd);

/* The exports in force, as the daemon shows them. All functions are thread-safe; none waits for a
 * name service. */
/* An export that lies within another one. */
struct vfs_nested {
	const char *real_path; /* without symbolic links */
	/* Mount points of the export and of the directory above it, as lengths of parts of real_path */
	size_t mount, dir_mount;
	struct vfs_export *exp; /* NULL: it is not served now */
	uint32_t id;		/* of what has a line */
	bool refused;		/* nobody may enter, as its line is in error; it has no id */
	/* result of by_id for the peer, and, if that is 0, his rights */
	int rc;
	struct vfs_access access;
};

/* Another location of an export's files. */
struct vfs_location {
	const char *path; /* absolute */
	size_t path_len;
	const char *hosts; /* names and addresses with '+' between, an IPv6 address in brackets */
	size_t hosts_len;
};

struct vfs_exports {
	/*
	 * The export with that id, if the client may use it: 0 and a reference in *exp; -ESTALE: no
	 * such export; -EACCES: not for this client; -RN_EUNNAMED: not known now, the client may come
	 * again; -RN_ESILENT: it is not mounted yet.
	 */
	int (*by_id)(void *ctx, uint32_t id, const struct sockaddr *peer, struct vfs_export **exp,
		     struct vfs_access *access);
	/* In a call that is about to use the file system of that export, which it may do: has it go on at a thread that
	 * serves that file system. 0, or -RN_ESILENT: it does not answer. No lock is held. NULL: there is no difference. */
	int (*enter)(void *ctx, uint32_t id);
	/* The export with the longest path, as written or without symbolic links, that leads to path, among those for the peer; *rest
	 * points behind it within path (without leading slashes). 0, -ENOENT, -EACCES or -RN_EUNNAMED. */
	int (*by_path)(void *ctx, const char *path, const struct sockaddr *peer,
		       struct vfs_export **exp, struct vfs_access *access, const char **rest);
	/* Calls each(arg, n) for the exports that lie within another one and that an entry with that name may lead to, until it
	 * returns false; n is valid during the call. All are of one set, whatever reloads come. NULL: no export does. */
	void (*nested)(void *ctx, const char *name, uint32_t len, const struct sockaddr *peer,
		       bool (*each)(void *arg, const struct vfs_nested *n), void *arg);
	/* Tells if an export deeper than outer has that path, which is without symbolic links, and a line for the peer, though it may
	 * not be served now, or one in error: 1, 0, or -RN_EUNNAMED: not known now. NULL: none has. */
	int (*governs)(void *ctx, const struct vfs_export *outer, const char *path,
		       const struct sockaddr *peer);
	/* Puts in words, for the log, which line of the exports decides whether the peer may use the path.
	 * Empty: not known. NULL: there is no such function. */
	void (*why)(void *ctx, const char *path, const struct sockaddr *peer, char *text,
		    size_t size);
	/* Calls each for the other locations of an export that the peer may use, in the
	 * administrator's order; the location is valid during the call. NULL: none has any. */
	void (*locations)(void *ctx, uint32_t id, const struct sockaddr *peer,
			  void (*each)(void *arg, const struct vfs_location *l), void *arg);
	/* Calls each(arg, path, groups, ngroups) for every export; false stops. */
	void (*list)(void *ctx,
		     bool (*each)(void *arg, const char *path, const char *const *groups,
				  unsigned ngroups),
		     void *arg);
	/* As above for the open exports, which are valid during each. The export with id 0 is
	 * exports(5)'s fsid=0. */
	void (*each)(void *ctx, bool (*each)(void *arg, struct vfs_export *exp), void *arg);
	void *ctx;
};

static inline int vfs_exports_enter(const struct vfs_exports *exports, uint32_t id)
{
	return exports->enter ? exports->enter(exports->ctx, id) : 0;
}

/*
* Exports that a reload has taken away, so that the protocols revoke what clients hold there: then the
 * file system can be unmounted, and others may have what was held. An export that is still the same
 * directory and still for the client is not lost, whatever else its options say now: a client that
 * may only read any more keeps its opens and locks, and its writes are refused.
 */
struct vfs_exports_lost {
	/* Ids of exports that some clients have lost, and of exports that all have lost */
	const uint32_t *ids;
	unsigned n;
	uint32_t *
		some; /* as long, for whoever the struct is given to: nobody may fail for want of memory any more */
	/* True if the export of that id is gone, is another directory, or is not for that client
	 * any more. May look names up: no lock is held. */
	bool (*lost)(void *ctx, uint32_t id, const struct sockaddr *peer);
	void *ctx;
};

/* Applies an export's squash rules to a credential as sent; auth_none: the call carried no
 * identity. */
void vfs_cred_squash(struct vfs_cred *cred, const struct vfs_access *access, bool auth_none);

#endif
