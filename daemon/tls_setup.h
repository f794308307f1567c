/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS as the settings have it. */
#ifndef RN_DAEMON_TLS_SETUP_H
#define RN_DAEMON_TLS_SETUP_H

#include "conf/settings.h"
#include "lib/log.h"
#include "transport/tls/tls.h"

/* Reads the files. *out is NULL without tls.certificate. 0; or -errno, after a message. */
int tls_setup(const struct cfg_tls *set, struct rn_budget *budget, const struct rn_logger *log,
	      struct tls **out);
/* Reads the files again; if they are wrong, logs why, and the old ones stay in use. t may be NULL. */
void tls_setup_reload(struct tls *t, const struct rn_logger *log);

#endif
