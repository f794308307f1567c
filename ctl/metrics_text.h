/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of GET /metrics (Prometheus' format), sample by sample. The text is taken apart in place: names and labels
 * point into it. Lines that are no sample are passed over, as are labels beyond METRICS_LABELS_MAX.
 */
#ifndef RN_CTL_METRICS_TEXT_H
#define RN_CTL_METRICS_TEXT_H

#include <stdbool.h>

enum { METRICS_LABELS_MAX = 8 };

struct metrics_sample {
	const char *name;
	struct {
		const char *name, *value;
	} labels[METRICS_LABELS_MAX];
	unsigned nlabels;
	double value; /* never NaN */
};

/* Takes the next sample from *at, which the first call finds at the start of a string. False: there are no more. */
bool metrics_next(char **at, struct metrics_sample *s);
/* The label's value, or "". */
const char *metrics_label(const struct metrics_sample *s, const char *name);

#endif
