/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses any octets as ringnfs.conf. Accepted settings are printed and must read back to the same
 * values. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *printed(const struct cfg_settings *settings)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	cfg_print(settings, out);
	fclose(out);
	return text;
}

static void check_round_trip(const struct cfg_settings *settings)
{
	struct cfg_diags diags;
	struct cfg_settings again;
	char *first = printed(settings);
	char *second;

	cfg_diags_init(&diags);
	if (!first || cfg_set_defaults(&again)) {
		free(first);
		return;
	}
	if (cfg_parse(&again, "printed", first, strlen(first), &diags))
		abort();
	second = printed(&again);
	if (second && strcmp(first, second))
		abort();
	free(first);
	free(second);
	cfg_free(&again);
	cfg_diags_free(&diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cfg_diags diags;
	struct cfg_settings settings;

	cfg_diags_init(&diags);
	if (cfg_set_defaults(&settings))
		return 0;
	cfg_parse(&settings, "fuzz", (const char *)data, size, &diags);
	check_round_trip(&settings);
	cfg_check(&settings, "fuzz", &diags);
	cfg_free(&settings);
	cfg_diags_free(&diags);
	return 0;
}
