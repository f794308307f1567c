/* SPDX-License-Identifier: BSD-2-Clause */
/* Rights that nfs-ganesha's EXPORT_DEFAULTS, EXPORT and CLIENT blocks give, and their options of exports(5). */
#ifndef RN_GANESHA_RIGHTS_H
#define RN_GANESHA_RIGHTS_H

#include <stdint.h>

#include "tools/ganesha/ganesha_say.h"
#include "tools/ganesha/ganesha_tree.h"

enum ganesha_access { GANESHA_NO_ACCESS, GANESHA_RO, GANESHA_RW, GANESHA_METADATA };
enum ganesha_squash { GANESHA_ROOT_SQUASH, GANESHA_NO_SQUASH, GANESHA_ALL_SQUASH };

/* Bits of ganesha_rights. */
enum { GANESHA_SYS = 1, GANESHA_NONE = 2, GANESHA_KRB5 = 4, GANESHA_KRB5I = 8, GANESHA_KRB5P = 16 };
enum { GANESHA_V3 = 1, GANESHA_V4 = 2, GANESHA_9P = 4 };
enum { GANESHA_TCP = 1, GANESHA_UDP = 2, GANESHA_RDMA = 4 };

struct ganesha_rights {
	enum ganesha_access access;
	enum ganesha_squash squash;
	bool has_anonuid, has_anongid;
	uint32_t anonuid, anongid;
	bool privileged; /* the source port must be below 1024 */
	unsigned sec, protocols, transports;
};

/* nfs-ganesha's own defaults. */
struct ganesha_rights ganesha_rights_default(void);
/* Takes over what the block says; all else stays. False: a value is wrong, which was said. */
bool ganesha_rights_read(struct ganesha_said *said, const struct ganesha_item *block,
			 struct ganesha_rights *r);
/* False: the word is neither true nor false, by any of their names. */
bool ganesha_boolean(const char *word, bool *value);
/* True if the parameter is one of the rights. */
bool ganesha_rights_has(const char *name);
/* True if nobody gets at data by them with NFS. */
bool ganesha_rights_none(const struct ganesha_rights *r);
/* The options, without brackets. The caller frees it. NULL: no memory. */
char *ganesha_rights_options(const struct ganesha_rights *r);

#endif
