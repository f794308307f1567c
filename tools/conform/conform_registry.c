/* SPDX-License-Identifier: BSD-2-Clause */
/* Every group of cases, in the order in which they run. A group's numbers are its own hundreds. */
#include "tools/conform/conform.h"

/* Up to 1000. */
extern const struct cf_group cf_group_private, cf_group_inline, cf_group_read, cf_group_zero;
extern const struct cf_group cf_group_header, cf_group_lists, cf_group_ddp, cf_group_v4;
extern const struct cf_group cf_group_companions;

/* From 1001 on. */
extern const struct cf_group cf_group_write, cf_group_write_other, cf_group_reply, cf_group_both;
extern const struct cf_group cf_group_credits, cf_group_invalidate, cf_group_connect;
extern const struct cf_group cf_group_again, cf_group_reverse, cf_group_thousand;
extern const struct cf_group cf_group_v4_write, cf_group_v4_reply, cf_group_v4_session;
extern const struct cf_group cf_group_limits;
extern const struct cf_group cf_group_back, cf_group_back_reply, cf_group_back_lost;
extern const struct cf_group cf_group_nfs2;
extern const struct cf_group cf_group_gss, cf_group_gss_body, cf_group_gss_size,
	cf_group_gss_window;

/* clang-format off */
const struct cf_group *const cf_groups[] = {
	&cf_group_private,
	&cf_group_inline,
	&cf_group_read,
	&cf_group_zero,
	&cf_group_header,
	&cf_group_lists,
	&cf_group_ddp,
	&cf_group_v4,
	&cf_group_companions,
	&cf_group_nfs2,

	&cf_group_write,
	&cf_group_write_other,
	&cf_group_reply,
	&cf_group_both,
	&cf_group_credits,
	&cf_group_invalidate,
	&cf_group_connect,
	&cf_group_again,
	&cf_group_v4_write,
	&cf_group_v4_reply,
	&cf_group_v4_session,
	&cf_group_reverse,
	&cf_group_back,
	&cf_group_back_reply,
	&cf_group_back_lost,
	&cf_group_gss,
	&cf_group_gss_body,
	&cf_group_gss_size,
	&cf_group_gss_window,
	&cf_group_thousand,
	&cf_group_limits,
	NULL,
};
