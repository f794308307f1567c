/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands `ringnfsctl exports ...`; each gets the words behind `exports`, its own name first. */
#ifndef RN_CTL_CTL_EXPORTS_H
#define RN_CTL_CTL_EXPORTS_H

#include <stdio.h>

#include "ctl/ctl.h"

int exports_add(const struct ctl *ctl, int argc, char **argv);
int exports_check(const struct ctl *ctl, int argc, char **argv);
int ctl_exports_diff(const struct ctl *ctl, int argc, char **argv);
int exports_explain(const struct ctl *ctl, int argc, char **argv);
int exports_import(const struct ctl *ctl, int argc, char **argv);
int exports_list(const struct ctl *ctl, int argc, char **argv);
int ctl_exports_reload(const struct ctl *ctl, int argc, char **argv);
int exports_remove(const struct ctl *ctl, int argc, char **argv);

/* Prints the list of these commands. */
void exports_print_help(FILE *out);
/* Prints what a change did; would: what it would do. */
void exports_print_changes(const json_t *answer, bool would, FILE *out);
/* Prints the messages of an answer to out, one a line, as compilers do. */
void exports_print_messages(const json_t *answer, FILE *out);
/* A text of the answer, safe for a terminal, followed by end. */
void exports_print_text(const json_t *from, const char *name, const char *end, FILE *out);

#endif
