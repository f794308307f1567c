/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The library's own cost, to compare with: gssfloor wrap|unwrap|write|mic BYTES SECONDS [CPU|- [FILE]]. Prints a line as
 * nfsload does. The environment has a keytab for nfs@localhost and a ticket.
 *   wrap    gss_wrap_iov of a message in place, again and again
 *   unwrap  gss_unwrap_iov, without the copying that a message needs for each round
 *   write   the same, and the message is written to FILE, over its first 16 MiB again and again
 *   mic     gss_verify_mic of a call's header (BYTES), and gss_get_mic of a number
 */
#include <errno.h>
#include <fcntl.h>
#include <gssapi/gssapi_ext.h>
#include <gssapi/gssapi_krb5.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "load.h"

#define EXTRA 512u
#define HEADER 32u /* bytes before a message that AES encrypts: RFC 4121, RFC 3962 */
#define FILE_SIZE (16u << 20)

struct floor {
	gss_ctx_id_t client, server;
	size_t len, token_len;
	uint8_t *kept, *work; /* unwrap: the token, and a copy that is decrypted; else work only */
	gss_buffer_desc mic;
	double copying; /* seconds */
	int fd;		/* of write */
	off_t at;
};

void die(const char *format, ...)
{
	va_list args;

	fputs("gssfloor: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void need(OM_uint32 major, const char *what)
{
	if (GSS_ERROR(major))
		die("%s: status %x", what, major);
}

static void connect_both(struct floor *f)
{
	static char name_text[] = "nfs@localhost";
	gss_buffer_desc text = { sizeof(name_text) - 1, name_text };
	gss_buffer_desc there = GSS_C_EMPTY_BUFFER, back = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	gss_name_t name;

	need(gss_import_name(&minor, &text, GSS_C_NT_HOSTBASED_SERVICE, &name), "gss_import_name");
	for (unsigned i = 0; i < 2; i++) {
		need(gss_init_sec_context(&minor, GSS_C_NO_CREDENTIAL, &f->client, name,
					  (gss_OID)(uintptr_t)gss_mech_krb5, GSS_C_MUTUAL_FLAG, 0,
					  NULL, &back, NULL, &there, NULL, NULL),
		     "gss_init_sec_context");
		if (i == 0)
			need(gss_accept_sec_context(&minor, &f->server, GSS_C_NO_CREDENTIAL, &there,
						    NULL, NULL, NULL, &back, NULL, NULL, NULL),
			     "gss_accept_sec_context");
	}
	gss_release_name(&minor, &name);
}

/* Lays the parts of a message out in work, and encrypts it. */
static void wrap(struct floor *f, gss_ctx_id_t ctx)
{
	gss_iov_buffer_desc v[4] = { { .type = GSS_IOV_BUFFER_TYPE_HEADER },
				     { .type = GSS_IOV_BUFFER_TYPE_DATA,
				       .buffer = { f->len, NULL } },
				     { .type = GSS_IOV_BUFFER_TYPE_PADDING },
				     { .type = GSS_IOV_BUFFER_TYPE_TRAILER } };
	OM_uint32 minor;

	need(gss_wrap_iov_length(&minor, ctx, 1, 0, NULL, v, 4), "gss_wrap_iov_length");
	v[0].buffer.value = f->work;
	for (unsigned i = 1; i < 4; i++)
		v[i].buffer.value = (uint8_t *)v[i - 1].buffer.value + v[i - 1].buffer.length;
	need(gss_wrap_iov(&minor, ctx, 1, 0, NULL, v, 4), "gss_wrap_iov");
	f->token_len = v[0].buffer.length + f->len + v[2].buffer.length + v[3].buffer.length;
}

static void round_wrap(struct floor *f)
{
	wrap(f, f->server);
}

/* Returns the message. */
static const uint8_t *unwrap(struct floor *f)
{
	gss_iov_buffer_desc v[2] = { { .type = GSS_IOV_BUFFER_TYPE_STREAM,
				       .buffer = { f->token_len, f->work } },
				     { .type = GSS_IOV_BUFFER_TYPE_DATA } };
	const uint64_t began = now_ns();
	OM_uint32 minor;

	memcpy(f->work, f->kept, f->token_len);
	f->copying += (double)(now_ns() - began) / 1e9;
	need(gss_unwrap_iov(&minor, f->server, NULL, NULL, v, 2), "gss_unwrap_iov");
	/* The library tells of the token's number that it was used before, and nothing more. */
	return v[1].buffer.value ? v[1].buffer.value : f->work + HEADER;
}

static void round_unwrap(struct floor *f)
{
	unwrap(f);
}

static void round_write(struct floor *f)
{
	const uint8_t *message = unwrap(f);

	if (f->at + (off_t)f->len > (off_t)FILE_SIZE)
		f->at = 0;
	if (pwrite(f->fd, message, f->len, f->at) != (ssize_t)f->len)
		die("writing: %s", strerror(errno));
	f->at += (off_t)f->len;
}

static void round_mic(struct floor *f)
{
	gss_buffer_desc head = { f->len, f->work }, seq = { 4, f->work }, out;
	OM_uint32 minor;

	need(gss_verify_mic(&minor, f->server, &head, &f->mic, NULL), "gss_verify_mic");
	need(gss_get_mic(&minor, f->server, 0, &seq, &out), "gss_get_mic");
	gss_release_buffer(&minor, &out);
}

static void prepare(struct floor *f, const char *what)
{
	gss_buffer_desc head = { f->len, NULL };
	OM_uint32 minor;

	connect_both(f);
	f->work = calloc(1, f->len + EXTRA);
	f->kept = calloc(1, f->len + EXTRA);
	if (!f->work || !f->kept)
		die("no memory");
	head.value = f->work;
	if (!strcmp(what, "mic")) {
		need(gss_get_mic(&minor, f->client, 0, &head, &f->mic), "gss_get_mic");
	} else if (strcmp(what, "wrap") != 0) {
		wrap(f, f->client);
		memcpy(f->kept, f->work, f->token_len);
	}
}

static void measure(struct floor *f, void (*one)(struct floor *f), double most)
{
	static struct load l;
	struct usage from, to;
	double n = 0, seconds, own;
	uint64_t end;

	for (unsigned i = 0; i < 8; i++)
		one(f);
	f->copying = 0;
	load_usage(&l, &from);
	end = from.ns + (uint64_t)(most * 1e9);
	do {
		for (unsigned i = 0; i < 16; i++)
			one(f);
		n += 16;
	} while (now_ns() < end);
	load_usage(&l, &to);
	seconds = (double)(to.ns - from.ns) / 1e9 - f->copying;
	own = to.own - from.own - f->copying;
	printf("n=%.0f rate=%.1f server_us=%.3f steal=%.1f others=%.1f\n", n, n / seconds,
	       own / n * 1e6, (to.steal - from.steal) / (to.all - from.all) * 100,
	       (to.others - from.others) / (to.all - from.all) * 100);
}

static void (*round_of(const char *what))(struct floor *)
{
	if (!strcmp(what, "mic"))
		return round_mic;
	if (!strcmp(what, "unwrap"))
		return round_unwrap;
	return strcmp(what, "write") ? round_wrap : round_write;
}

static void open_file(struct floor *f, const char *path)
{
	f->fd = path ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (f->fd < 0 || posix_fallocate(f->fd, 0, FILE_SIZE))
		die("no file to write to");
}

int main(int argc, char **argv)
{
	static struct floor f;
	cpu_set_t set;

	if (argc < 4)
		die("usage: gssfloor wrap|unwrap|write|mic BYTES SECONDS [CPU|- [FILE]]");
	f.len = strtoul(argv[2], NULL, 10);
	if (f.len < 4 || f.len > SIZE_MAX_IO + HEAD_MAX)
		die("BYTES: 4 to %u", SIZE_MAX_IO + HEAD_MAX);
	CPU_ZERO(&set);
	if (argc > 4 && strcmp(argv[4], "-") != 0) {
		CPU_SET((unsigned)atoi(argv[4]), &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			die("no processor %s", argv[4]);
	}
	if (!strcmp(argv[1], "write"))
		open_file(&f, argc > 5 ? argv[5] : NULL);
	prepare(&f, argv[1]);
	measure(&f, round_of(argv[1]), atof(argv[3]));
	free(f.work);
	free(f.kept);
	return 0;
}
