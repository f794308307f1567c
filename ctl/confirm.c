/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/confirm.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool confirm_possible(void)
{
	if (isatty(STDIN_FILENO))
		return true;
	fputs("ringnfsctl: nobody can be asked, as standard input is no terminal; add --yes to do "
	      "it all "
	      "the same\n",
	      stderr);
	return false;
}

bool confirm_ask(const char *question)
{
	char answer[16] = "";

	fprintf(stderr, "%s [y/N] ", question);
	if (!fgets(answer, sizeof(answer), stdin))
		fputc('\n', stderr);
	answer[strcspn(answer, "\n")] = '\0';
	return strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0;
}
