/* SPDX-License-Identifier: BSD-2-Clause */
/* The work request builders of struct ibv_qp_ex, which gather a list for sv_post_send(). */
#ifndef SV_QP_EX_H
#define SV_QP_EX_H

#include "tools/softverbs/qp.h"

/* Sets up the builders if the attributes ask for them. Returns 0 or -errno. */
int sv_qp_ex_init(struct sv_qp *qp, const struct ibv_qp_init_attr_ex *attr);
void sv_qp_ex_free(struct sv_qp *qp);

#endif
