/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/reader.h"

#include <string.h>

#include "lib/util.h"

void ss_wrong(struct ss_in *in, const char *what)
{
	if (!in->bad)
		in->bad = what;
	in->left = 0;
}

const uint8_t *ss_get(struct ss_in *in, size_t n)
{
	static const uint8_t nothing[128];
	const uint8_t *p = in->p;

	if (n > in->left) {
		ss_wrong(in, "cut short");
		return nothing; /* no fixed item is longer */
	}
	in->p += n;
	in->left -= n;
	return p;
}

uint32_t ss_get_u32(struct ss_in *in)
{
	return ss_word(ss_get(in, 4));
}

uint64_t ss_get_u64(struct ss_in *in)
{
	uint64_t high = ss_get_u32(in);

	return high << 32 | ss_get_u32(in);
}

bool ss_get_bool(struct ss_in *in)
{
	uint32_t v = ss_get_u32(in);

	if (v > 1)
		ss_wrong(in, "a boolean of neither 0 nor 1");
	return v == 1;
}

const uint8_t *ss_get_opaque(struct ss_in *in, uint32_t max, uint32_t *len)
{
	*len = ss_get_u32(in);
	if (*len > max || *len > in->left) {
		ss_wrong(in, "a counted item over its limit, or over the message");
		*len = 0;
	}
	const uint8_t *p = ss_get(in, *len);
	const uint8_t *pad = ss_get(in, rn_xdr_pad(*len));
	for (uint32_t i = 0; i < rn_xdr_pad(*len); i++)
		if (pad[i])
			ss_wrong(in, "a pad that is not zero");
	return p;
}

void ss_get_name(struct ss_in *in, uint32_t max)
{
	uint32_t len;
	const uint8_t *p = ss_get_opaque(in, max, &len);

	if (!in->bad && (!len || memchr(p, 0, len)))
		ss_wrong(in, "a name that is empty or has a NUL");
}

void ss_get_handle(struct ss_in *in)
{
	uint32_t len;
	const uint8_t *p = ss_get_opaque(in, SS_HANDLE_MAX, &len);

	if (!in->bad && !len)
		ss_wrong(in, "an empty handle");
	if (!in->bad && in->learn)
		ss_learn_handle(in->learn, p, len);
}

uint32_t ss_get_bulk(struct ss_in *in)
{
	unsigned i = in->next_bulk++;
	uint32_t len;

	if (!in->bulks || i >= in->bulks->n || !in->bulks->offered[i]) {
		ss_get_opaque(in, UINT32_MAX, &len);
		return len;
	}
	len = ss_get_u32(in);
	if (len != in->bulks->written[i])
		ss_wrong(in, "a length other than that of the Write chunk");
	return len;
}
