/* SPDX-License-Identifier: BSD-2-Clause */
/* Error replies of the control socket that no handler makes. */
#ifndef RN_ADMIN_REPLY_H
#define RN_ADMIN_REPLY_H

#include "admin/admin.h"

/* The word for programs of errors that HTTP itself has. */
const char *admin_code(int status);

#endif
