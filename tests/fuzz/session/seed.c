/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/seed.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"

static struct {
	const char *dir;
	struct ss_step step[SS_STEPS_MAX];
	uint8_t data[SS_STEPS_MAX][SS_DATA_MAX];
	unsigned n;
	int err;
} seed;

uint8_t *seed_add(uint8_t op, uint8_t conn, uint8_t how)
{
	struct ss_step *s = &seed.step[seed.n];

	*s = (struct ss_step){ .op = op, .conn = conn, .how = how, .data = seed.data[seed.n] };
	return seed.data[seed.n++];
}

uint8_t *seed_data(void)
{
	return seed.data[seed.n - 1];
}

void seed_set_len(size_t len)
{
	seed.step[seed.n - 1].len = (uint16_t)len;
}

void seed_write(const char *name)
{
	static uint8_t out[SS_INPUT_MAX];
	char path[1024];
	size_t size = ss_encode(seed.step, seed.n, out, sizeof(out));

	snprintf(path, sizeof(path), "%s/%s", seed.dir, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(out, 1, size, f) != size || fclose(f)) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		seed.err = 1;
	}
	seed.n = 0;
}

unsigned seed_template(const char *name)
{
	for (unsigned i = 0; i < ss_template_count(); i++)
		if (!strcmp(ss_template_name(i), name))
			return i;
	return 0;
}

void seed_record(uint8_t conn, const char *name, uint8_t how)
{
	seed_set_len(ss_template(seed_template(name), seed_add(SS_RECORD, conn, how)));
}

/* Waits for each answer, because it holds ids and stateids for the next call. */
void seed_compound(uint8_t conn, const char *name, unsigned minor)
{
	char full[32];

	snprintf(full, sizeof(full), "%s-4.%u", name, minor);
	if (strcmp(ss_template_name(seed_template(full)), full) != 0)
		return; /* not in this minor version */
	seed_record(conn, full, 0);
	seed_add(SS_WAIT, conn, 0);
}

void seed_begin_client(uint8_t conn, unsigned minor)
{
	static const char *const first[] = { "clientid", "confirm", "exchange", "session",
					     "reclaimed" };

	for (unsigned i = 0; i < rn_array_size(first); i++)
		seed_compound(conn, first[i], minor);
}

void seed_begin(const char *dir)
{
	seed.dir = dir;
}

bool seed_failed(void)
{
	return seed.err;
}
