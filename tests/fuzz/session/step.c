/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/step.h"

#include <string.h>

#include "lib/util.h"

unsigned ss_decode(const uint8_t *data, size_t size, struct ss_step *steps)
{
	unsigned n = 0;

	while (size >= SS_STEP_HEAD && n < SS_STEPS_MAX) {
		struct ss_step *s = &steps[n++];
		size_t len = (size_t)data[3] << 8 | data[4];

		len = rn_min(rn_min(len, SS_DATA_MAX), size - SS_STEP_HEAD);
		*s = (struct ss_step){
			.op = data[0] % SS_OPS,
			.conn = data[1] % SS_CONNS,
			.how = data[2],
			.len = (uint16_t)len,
			.data = data + SS_STEP_HEAD,
		};
		data += SS_STEP_HEAD + len;
		size -= SS_STEP_HEAD + len;
	}
	return n;
}

size_t ss_encode(const struct ss_step *steps, unsigned n, uint8_t *out, size_t max)
{
	size_t at = 0;

	for (unsigned i = 0; i < n; i++) {
		const struct ss_step *s = &steps[i];

		if (max - at < SS_STEP_HEAD + s->len)
			break;
		out[at] = s->op;
		out[at + 1] = s->conn;
		out[at + 2] = s->how;
		out[at + 3] = (uint8_t)(s->len >> 8);
		out[at + 4] = (uint8_t)s->len;
		if (s->len)
			memcpy(out + at + SS_STEP_HEAD, s->data, s->len);
		at += SS_STEP_HEAD + s->len;
	}
	return at;
}
