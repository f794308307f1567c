/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts and calls of RPCSEC_GSS. */
#include "daemon/metrics/collect.h"
#include "gss/gss.h"

void metrics_gss(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family contexts = {
		"ringnfs_gss_contexts", METRICS_GAUGE, NULL,
		"Kerberos contexts, by whether they are complete."
	};
	static const struct metrics_family places = {
		"ringnfs_gss_contexts_limit", METRICS_GAUGE, NULL,
		"Complete Kerberos contexts that there is room for, by gss.max_contexts and "
		"server.memory_max."
	};
	static const struct metrics_family copied = {
		"ringnfs_gss_contexts_copied", METRICS_GAUGE, NULL,
		"Kerberos contexts with copies, because several threads use them at a time."
	};
	static const struct metrics_family made = { "ringnfs_gss_context_requests", METRICS_COUNTER,
						    NULL,
						    "Kerberos contexts that clients asked for." };
	static const struct metrics_family evicted = {
		"ringnfs_gss_contexts_evicted", METRICS_COUNTER, NULL,
		"Kerberos contexts removed to make room for others."
	};
	static const struct metrics_family rejected = {
		"ringnfs_gss_rejected_calls", METRICS_COUNTER, NULL,
		"Calls under Kerberos that were not run: replays, those of a context that is not "
		"known, and those with a "
		"wrong verifier or body."
	};
	struct gss_stats s;

	if (!from->held.gss)
		return;
	gss_stats(from->held.gss, &s);
	metrics_family(m, &contexts);
	metrics_value(m, s.contexts, "state", "established", NULL);
	metrics_value(m, s.half_made, "state", "half_made", NULL);
	metrics_family(m, &places);
	metrics_value(m, s.places, NULL);
	metrics_family(m, &copied);
	metrics_value(m, s.grown, NULL);
	metrics_family(m, &made);
	metrics_value(m, s.accepted, "result", "accepted", NULL);
	metrics_value(m, s.refused, "result", "refused", NULL);
	metrics_family(m, &evicted);
	metrics_value(m, s.evicted, NULL);
	metrics_family(m, &rejected);
	metrics_value(m, s.replays, "reason", "replay", NULL);
	metrics_value(m, s.unknown, "reason", "unknown_context", NULL);
	metrics_value(m, s.bad, "reason", "bad", NULL);
}
