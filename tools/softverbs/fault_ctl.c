/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control socket of a process, ctl.SLOT in the fabric's directory. A datagram is one command;
 * the answer goes to its sender. Commands: fault statements, which are added; "clear"; "plug",
 * which makes absent devices appear; "status", which reports the objects of the process and the
 * number of faults.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/sv_device.h"

static void status(const struct sv_faults *f, char *out, size_t size)
{
	const struct sv_rule *r;
	const struct sv_device *dev;
	const struct sv_context *ctx;
	unsigned rules = 0, objects = 0;

	TAILQ_FOREACH (r, &f->rules, link)
		rules++;
	TAILQ_FOREACH (dev, &sv_fabric.devices, link)
		LIST_FOREACH (ctx, &dev->contexts, link)
			objects += ctx->users;
	snprintf(out, size,
		 "qps %u mrs %u pds_cqs %u rules %u fired %u connected %u pds %u remote %u "
		 "remote_ever %u\n",
		 sv_fabric.qps.used, sv_fabric.mrs.used, objects, rules, f->fired,
		 sv_fabric.qps.connected, sv_fabric.pds, sv_fabric.mrs.remote,
		 sv_fabric.mrs.remote_ever);
}

static void command(struct sv_faults *f, const char *text, char *out, size_t size)
{
	const char *where = "";

	if (strncmp(text, "status", 6) == 0) {
		status(f, out, size);
		return;
	}
	if (strncmp(text, "plug", 4) == 0)
		sv_devices_plug();
	else if (strncmp(text, "clear", 5) == 0)
		sv_faults_clear(f);
	else if (sv_faults_add(f, text, &where) < 0) {
		snprintf(out, size, "not a fault: %.100s\n", where);
		return;
	}
	snprintf(out, size, "ok\n");
}

static void on_command(struct sv_watch *w, uint32_t events)
{
	struct sv_faults *f = sv_fabric.faults;
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	char text[4096], out[256];

	(void)events;
	ssize_t n = recvfrom(w->fd, text, sizeof(text) - 1, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &len);
	if (n < 0 || !f)
		return;
	text[n] = '\0';
	command(f, text, out, sizeof(out));
	if (len > sizeof(sa_family_t))
		(void)!sendto(w->fd, out, strlen(out), MSG_DONTWAIT, (struct sockaddr *)&from, len);
}

int sv_faults_listen(struct sv_faults *f)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%.90s/ctl.%u", sv_fabric.dir, sv_fabric.slot);
	unlink(sun.sun_path);
	f->ctl_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->ctl_fd < 0 || bind(f->ctl_fd, (struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -errno;
	f->ctl = (struct sv_watch){ .fd = f->ctl_fd, .fn = on_command };
	return sv_watch_add(&f->ctl, EPOLLIN);
}
