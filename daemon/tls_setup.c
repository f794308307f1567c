/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/tls_setup.h"

#include <time.h>

#define SOON_DAYS 14

static const char *tls_setup_path(const char *set)
{
	return set && set[0] ? set : NULL;
}

/* Certificates are forgotten until they have expired. */
static void log_expiry(struct tls *t, const struct rn_logger *log)
{
	struct tls_own own;

	tls_own(t, &own);
	const int64_t left = own.expires - (int64_t)time(NULL);

	if (left < 0)
		rn_warn(log, "the TLS certificate has expired, and clients refuse it: write a new "
			     "one to the files of tls.certificate and tls.key, and reload");
	else if (left < SOON_DAYS * 86400)
		rn_warn(log,
			"the TLS certificate expires in %d days: write a new one to the files of "
			"tls.certificate and tls.key, and reload",
			(int)(left / 86400));
}

int tls_setup(const struct cfg_tls *set, struct rn_budget *budget, const struct rn_logger *log,
	      struct tls **out)
{
	const struct tls_config cfg = {
		.certificate = tls_setup_path(set->certificate),
		.key = tls_setup_path(set->key) ? tls_setup_path(set->key)
						: tls_setup_path(set->certificate),
		.ca = tls_setup_path(set->ca),
		.crl = tls_setup_path(set->crl),
		.require_alpn = set->require_alpn,
		.ktls = set->ktls,
		.budget = budget,
		.log = log,
	};
	char why[TLS_WHY] = "no memory, or no thread";
	int rc;

	*out = NULL;
	if (!cfg.certificate) {
		if (cfg.key || cfg.ca)
			rn_warn(log, "TLS is not offered: tls.key or tls.ca is set, and "
				     "tls.certificate is not; set it, too");
		return 0;
	}
	rc = tls_new(&cfg, out, why);
	if (rc)
		rn_err(log, "%s; correct that, or take out tls.certificate to serve without TLS",
		       why);
	else
		rn_notice(log, "TLS is offered to NFS clients over TCP%s",
			  cfg.ca ? ", and their certificates are verified" : "");
	if (!rc)
		log_expiry(*out, log);
	return rc;
}

void tls_setup_reload(struct tls *t, const struct rn_logger *log)
{
	char why[TLS_WHY] = "no memory";

	if (!t)
		return;
	if (tls_reload(t, why) != 0)
		rn_warn(log, "the old TLS certificate stays in use: %s", why);
	else
		rn_notice(log, "the TLS certificate was read again, new connections have it");
	log_expiry(t, log);
}
