/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/server.h"

#include <errno.h>
#include <stdlib.h>

#include "nfs3/nlm_owners.h"
#include "nfs3/proto.h"

int nfs3_server_new(const struct nfs3_config *cfg, struct nfs3_server **out)
{
	struct nfs3_server *s;

	if (cfg->max_io == 0 || cfg->max_io > NFS3_MAX_IO || cfg->max_io % 4096)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->nlm = nlm_owners_new();
	if (!s->nlm) {
		free(s);
		return -ENOMEM;
	}
	s->cfg = *cfg;
	mnt_list_init(&s->mounts);
	rn_log_hosts_init(&s->mount_log);
	*out = s;
	return 0;
}

void nfs3_server_free(struct nfs3_server *s)
{
	if (!s)
		return;
	mnt_list_fini(&s->mounts);
	rn_log_hosts_fini(&s->mount_log);
	nlm_owners_free(s->nlm);
	free(s);
}
