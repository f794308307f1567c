/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/faults.h"

#include <stdio.h>

#include "lib/util.h"
#include "tests/fuzz/session/finding.h"
#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"

/*
 * Only faults that either end notices. The server would notice a silent peer only after a minute.
 */
static const struct {
	const char *point, *action;
} faults[] = {
	{ "send", "drop-connection" },
	{ "write", "drop-connection" },
	{ "read", "drop-connection" },
	{ "request", "drop-connection" },
	{ "completion", "drop-connection" },
	{ "send", "fail" },
	{ "write", "fail" },
	{ "read", "fail" },
	{ "post", "full-sq" },
	{ "reg-mr", "fail" },
	{ "request", "rnr" },
	{ "post", "delay 2ms" },
	{ "completion", "delay 2ms" },
};

void ss_fault_arm(unsigned how)
{
	const char *where = "";
	char text[64];
	unsigned i = (how & 15) % rn_array_size(faults);

	snprintf(text, sizeof(text), "on %s %u : %s", faults[i].point, 1 + (how >> 4 & 15),
		 faults[i].action);
	sv_lock();
	int err = sv_fabric.faults ? sv_faults_add(sv_fabric.faults, text, &where) : 0;
	sv_unlock();
	if (err)
		ss_finding("the fabric does not know \"%s\": %s", text, where);
}

void ss_faults_clear(void)
{
	sv_lock();
	if (sv_fabric.faults)
		sv_faults_clear(sv_fabric.faults);
	sv_unlock();
}
