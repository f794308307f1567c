/* SPDX-License-Identifier: BSD-2-Clause */
/* Two looks at the server's sums, and their difference as tables. */
#ifndef RN_CTL_STATS_H
#define RN_CTL_STATS_H

#include <jansson.h>
#include <stdint.h>

enum stats_by { STATS_BY_OPERATION, STATS_BY_EXPORT, STATS_BY_CLIENT };

struct stats_look {
	json_t *rows;	  /* objects */
	uint64_t time_ns; /* of the server's, or of this machine's clock */
};

struct stats_view {
	enum stats_by by;
	struct stats_look now;
	/* The look before. rows NULL: there was none, and the sums are those since the start. */
	struct stats_look before;
};

/* An exit status. */
int stats_print(const struct stats_view *v);

#endif
