/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_part.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void digest_bytes(const void *bytes, size_t len, const char *key,
			 uint8_t out[CLUSTER_DIGEST_SIZE])
{
	crypto_generichash(out, CLUSTER_DIGEST_SIZE, bytes, len, (const uint8_t *)key, strlen(key));
}

void cluster_digest_key(const uint8_t key[STATE_SECRET_SIZE], uint8_t out[CLUSTER_DIGEST_SIZE])
{
	digest_bytes(key, STATE_SECRET_SIZE, "ringnfs cluster: handle key", out);
}

/* False: there is no memory. */
static bool digest_client(FILE *to, const struct exp_client *c)
{
	char *options = exp_opts_text(&c->opts);

	if (!options)
		return false;
	fprintf(to, " %s %" PRIu32 "(%s)", c->spec, c->gss, options);
	free(options);
	return true;
}

static bool digest_table(FILE *to, const struct exp_table *table)
{
	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *e = &table->exports[i];

		fprintf(to, "%s %" PRIu32, e->path, e->id);
		for (unsigned k = 0; k < e->n_clients; k++)
			if (!digest_client(to, &e->clients[k]))
				return false;
		fputc('\n', to);
	}
	return true;
}

int cluster_digest_exports(struct exports *exports, uint8_t out[CLUSTER_DIGEST_SIZE])
{
	struct exports_now now;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	bool good = false;

	if (!to)
		return -ENOMEM;
	exports_now_get(exports, &now);
	good = digest_table(to, now.table);
	exports_now_put(&now);
	good &= fclose(to) == 0;
	if (good)
		digest_bytes(text, len, "ringnfs cluster: exports", out);
	free(text);
	return good ? 0 : -ENOMEM;
}

void cluster_digest_settings(const struct cfg_settings *set, uint8_t out[CLUSTER_DIGEST_SIZE])
{
	char text[512];
	const int len = snprintf(text, sizeof(text),
				 "%s %d %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %d",
				 set->cluster.name, set->nfs2.enabled, set->nfs3.enabled,
				 set->nfs4.minor_min, set->nfs4.minor_max, set->nfs4.lease_time,
				 set->nfs4.grace_time, set->nlm.statd, set->vfs.handle_mac);

	digest_bytes(text, (size_t)len, "ringnfs cluster: settings", out);
}
