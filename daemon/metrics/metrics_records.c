/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/metrics/collect.h"

static void metrics_put_client_records(struct metrics *m, const struct nsm_stats *s)
{
	static const struct metrics_family hosts = {
		"ringnfs_nfs3_client_records", METRICS_GAUGE, NULL,
		"NFSv3 clients on record, by whether they may have locks."
	};
	static const struct metrics_family evicted = {
		"ringnfs_nfs3_client_records_evicted", METRICS_COUNTER, NULL,
		"Records of NFSv3 clients without locks that made room for others."
	};
	static const struct metrics_family refused = {
		"ringnfs_nfs3_client_records_refused", METRICS_COUNTER, NULL,
		"Locks that were refused to NFSv3 clients: no room for a record, or no answer of a "
		"host that asks by UDP."
	};

	metrics_family(m, &hosts);
	metrics_value(m, s->with_locks, "locks", "yes", NULL);
	metrics_value(m, s->without, "locks", "no", NULL);
	metrics_family(m, &evicted);
	metrics_value(m, s->made_room, NULL);
	metrics_family(m, &refused);
	metrics_value(m, s->refused, "reason", "room", NULL);
	metrics_value(m, s->silent, "reason", "silent", NULL);
}

void metrics_records(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family failing = {
		"ringnfs_client_records_failing", METRICS_GAUGE, NULL,
		"1 while records of clients cannot be written: after a restart they would not get "
		"their locks back."
	};
	struct nsm_stats s = { 0 };

	if (from->held.nsm)
		nsm_stats(from->held.nsm, &s);
	metrics_family(m, &failing);
	if (from->held.nsm)
		metrics_value(m, s.failing, "version", "3", NULL);
	if (from->held.nfs4)
		metrics_value(m, nfs4_records_failing(from->held.nfs4), "version", "4", NULL);
	if (from->held.nsm)
		metrics_put_client_records(m, &s);
}
