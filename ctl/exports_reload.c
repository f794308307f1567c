/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl exports reload */
#include <inttypes.h>
#include <stdio.h>

#include "ctl/ctl_exports.h"

int ctl_exports_reload(const struct ctl *ctl, int argc, char **argv)
{
	json_t *answer;

	if (argc > 1) {
		fprintf(stderr, "ringnfsctl: exports reload takes no argument, such as '%s'\n",
			argv[1]);
		return CTL_USAGE;
	}
	int status = ctl_post(ctl, "/v1/exports/reload", NULL, &answer);

	exports_print_messages(answer, stderr);
	if (status == CTL_DONE && answer) {
		printf("%" JSON_INTEGER_FORMAT " exports are in force\n",
		       json_integer_value(json_object_get(answer, "exports")));
		exports_print_changes(answer, false, stdout);
	}
	json_decref(answer);
	return status;
}
