/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The constants of NFSACL, which shows the POSIX ACLs of files: version 3 beside NFSv3, version 2 beside NFSv2. The
 * protocol has no RFC: the numbers are those of linux/nfsacl.h and of Solaris, which it comes from.
 */
#ifndef RN_NFS3_NFSACL_H
#define RN_NFS3_NFSACL_H

#include "nfs3/nfs3_server.h"

enum nfsacl_procedure {
	NFSACLPROC3_NULL = 0,
	NFSACLPROC3_GETACL = 1,
	NFSACLPROC3_SETACL = 2,
	NFSACLPROC3_COUNT = 3,
};

/* Version 2 has what NFSv2 lacks: an ACCESS. */
enum nfsacl2_procedure {
	NFSACLPROC2_NULL = 0,
	NFSACLPROC2_GETACL = 1,
	NFSACLPROC2_SETACL = 2,
	NFSACLPROC2_GETATTR = 3,
	NFSACLPROC2_ACCESS = 4,
	NFSACLPROC2_COUNT = 5,
};

/* Parts of a secattr that a call asks for or sets: entries and number of the access ACL, entries
 * and number of the default ACL. */
#define NA_ACL 0x1u
#define NA_ACLCNT 0x2u
#define NA_DFACL 0x4u
#define NA_DFACLCNT 0x8u
#define NA_MASK (NA_ACL | NA_ACLCNT | NA_DFACL | NA_DFACLCNT)

/* Set in the type of each entry of a default ACL. */
#define NA_ACL_DEFAULT 0x1000u

#define NFSACL_ENTRIES_MAX 1024u /* of one ACL */
#define NFSACL_ENTRY_SIZE 12u	 /* bytes */

#endif
