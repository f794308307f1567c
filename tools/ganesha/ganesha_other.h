/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of nfs-ganesha's configuration that are no rights: comments tell where their counterparts are. */
#ifndef RN_GANESHA_OTHER_H
#define RN_GANESHA_OTHER_H

#include "tools/ganesha/ganesha_say.h"
#include "tools/ganesha/ganesha_tree.h"

/* Comments on all blocks and directives but EXPORT. False: one may say of the exports what is not known here. */
bool ganesha_other_blocks(struct ganesha_said *said, const struct ganesha_item *tree);
/* The same for the parameters of an EXPORT, and of a CLIENT. False: one is not known or wrong, which was said. */
bool ganesha_other_export(struct ganesha_said *said, const struct ganesha_item *block);
bool ganesha_other_client(struct ganesha_said *said, const struct ganesha_item *block);
/* Writes options that the EXPORT has for all its clients, each behind a comma. */
void ganesha_other_options(const struct ganesha_item *block, FILE *out);

#endif
