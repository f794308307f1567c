/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines for "gss/krb5", "gss/krb5i" and "gss/krb5p", an old form of sec= (exports(5) "RPCSEC_GSS Security"): the
 * options of every host that calls under that flavour. Internal to the exports parser.
 */
#ifndef RINGNFS_CONF_EXPORTS_GSS_H
#define RINGNFS_CONF_EXPORTS_GSS_H

#include "conf/exports_builder.h"

/* The flavour of a client so written; 0: it is no such client. */
uint32_t exp_gss_flavor(const char *client);

/*
 * Joins the lines of one export. Other lines get the flavours of the gss/ lines, unless they have a sec= of
 * their own, which then holds alone, as in the kernel's server. The gss/ lines become one for all hosts that
 * no other line admits. Returns the number of drafts that are left.
 */
size_t exp_gss_join(struct exp_draft *drafts, size_t n, struct cfg_diags *diags);

#endif
