/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/gss/der.h"

#include <stdlib.h>
#include <string.h>

enum {
	INTEGER = 0x02,
	BITS = 0x03,
	OCTETS = 0x04,
	TIME = 0x18,
	TEXT = 0x1b,
	SEQUENCE = 0x30,
	APPLICATION = 0x60,
	CONTEXT = 0xa0
};

static void put(struct der *d, const void *p, size_t len)
{
	if (d->at < len)
		abort();
	d->at -= len;
	if (len > 0)
		memcpy(d->buf + d->at, p, len);
}

static void put_octet(struct der *d, size_t v)
{
	const uint8_t octet = (uint8_t)v;

	put(d, &octet, 1);
}

/* Makes an element of all that was written since `end`. */
static void wrap(struct der *d, unsigned tag, size_t end)
{
	const size_t len = end - d->at;

	if (len < 128) {
		put_octet(d, len);
	} else {
		put_octet(d, len & 0xff);
		put_octet(d, len >> 8);
		put_octet(d, 0x82);
	}
	put_octet(d, tag);
}

/* [number] of one simple element. */
static void field(struct der *d, unsigned number, unsigned tag, const void *p, size_t len)
{
	const size_t end = d->at;

	put(d, p, len);
	wrap(d, tag, end);
	wrap(d, CONTEXT + number, end);
}

static void number_field(struct der *d, unsigned number, uint32_t v)
{
	const uint8_t octets[2] = { (uint8_t)(v >> 8), (uint8_t)v };

	field(d, number, INTEGER, v > 127 ? octets : octets + 1, v > 127 ? 2 : 1);
}

static void text_field(struct der *d, unsigned number, const char *text)
{
	field(d, number, TEXT, text, strlen(text));
}

static void name_field(struct der *d, unsigned number, const struct der_name *name)
{
	const size_t end = d->at;

	if (name->second) {
		put(d, name->second, strlen(name->second));
		wrap(d, TEXT, end);
	}
	const size_t at = d->at;

	put(d, name->first, strlen(name->first));
	wrap(d, TEXT, at);
	wrap(d, SEQUENCE, end);
	wrap(d, CONTEXT + 1, end);
	number_field(d, 0, 1);
	wrap(d, SEQUENCE, end);
	wrap(d, CONTEXT + number, end);
}

static void begin(struct der *d)
{
	d->at = sizeof(d->buf);
}

static void finish(struct der *d, unsigned application)
{
	wrap(d, SEQUENCE, sizeof(d->buf));
	wrap(d, APPLICATION + application, sizeof(d->buf));
}

void der_enc_ticket_part(struct der *d, const char *realm, const struct der_name *client,
			 const krb5_keyblock *key, const char *end_time)
{
	static const uint8_t flags[5];
	size_t end;

	begin(d);
	field(d, 7, TIME, end_time, DER_TIME);
	field(d, 5, TIME, "20200101000000Z", 15);
	end = d->at;
	field(d, 1, OCTETS, "", 0);
	number_field(d, 0, 0);
	wrap(d, SEQUENCE, end);
	wrap(d, CONTEXT + 4, end);
	name_field(d, 3, client);
	text_field(d, 2, realm);
	end = d->at;
	field(d, 1, OCTETS, key->contents, key->length);
	number_field(d, 0, (uint32_t)key->enctype);
	wrap(d, SEQUENCE, end);
	wrap(d, CONTEXT + 1, end);
	field(d, 0, BITS, flags, sizeof(flags));
	finish(d, 3);
}

void der_ticket(struct der *d, const char *realm, const struct der_name *service,
		const krb5_enc_data *secret)
{
	size_t end;

	begin(d);
	end = d->at;
	field(d, 2, OCTETS, secret->ciphertext.data, secret->ciphertext.length);
	number_field(d, 1, secret->kvno);
	number_field(d, 0, (uint32_t)secret->enctype);
	wrap(d, SEQUENCE, end);
	wrap(d, CONTEXT + 3, end);
	name_field(d, 2, service);
	text_field(d, 1, realm);
	number_field(d, 0, 5);
	finish(d, 1);
}
