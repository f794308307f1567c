/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine name formats of exports(5). Internal to the exports parser. */
#ifndef RINGNFS_CONF_EXPORTS_CLIENT_H
#define RINGNFS_CONF_EXPORTS_CLIENT_H

#include "conf/exports.h"
#include "conf/exports_source.h"

/*
 * Read octets [0, len) of the word as a machine name; none of them is the world. Fills kind, spec,
 * name, addr, prefix and line; the strings go with exp_client_free(), after an error too. 0,
 * -EINVAL with a message, -ENOMEM.
 */
int exp_client_parse(struct exp_client *client, const struct exp_source *src,
		     const struct exp_word *word, size_t len, struct cfg_diags *diags);
void exp_client_free(struct exp_client *client);

/* True if both name the same machines by the same words. */
bool exp_client_same(const struct exp_client *a, const struct exp_client *b);

#endif
