/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of one export for one client, resolved for the protocol layers; how they were written
 * down is not kept. Immutable; lives as long as the exp_table that owns it. */
#ifndef RINGNFS_CONF_EXPORT_OPTS_H
#define RINGNFS_CONF_EXPORT_OPTS_H

#include <stdbool.h>
#include <stdint.h>

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
	EXP_REFER = 1u << 19,	 /* what is exported is at other places: see locations */
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
	 * conf/exports_locations.h reads it. */
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

#endif
