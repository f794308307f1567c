/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nfs3_state.h"

#include <errno.h>
#include <stdlib.h>

#include "nfs3/nlm/nlm_grant.h"
#include "nfs3/nfs3_proto.h"

int nfs3_server_new(const struct nfs3_config *cfg, struct nfs3_server **out)
{
	struct nfs3_server *s;

	if (cfg->max_io == 0 || cfg->max_io > NFS3_MAX_IO || cfg->max_io % 4096)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->cfg = *cfg;
	mnt_list_init(&s->mounts);
	rn_log_hosts_init(&s->mount_log);
	s->nlm = nlm_owners_new(cfg->nsm);
	s->grants = nlm_grants_new(s);
	if (!s->nlm || !s->grants) {
		nfs3_server_free(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void nfs3_server_free(struct nfs3_server *s)
{
	if (!s)
		return;
	mnt_list_fini(&s->mounts);
	rn_log_hosts_fini(&s->mount_log);
	if (s->grants)
		nlm_grants_stop(s->grants);
	nlm_owners_free(s->nlm);
	nlm_grants_free(s->grants);
	free(s);
}

void nlm_stop_grants(struct nfs3_server *s)
{
	nlm_grants_stop(s->grants);
}

void nlm_retry_grants(struct nfs3_server *s)
{
	nlm_grants_retry(s->grants);
}
