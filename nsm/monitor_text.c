/* SPDX-License-Identifier: BSD-2-Clause */
/* The record file of monitors: the machine's boot id, and one line for each. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nsm/monitor.h"

#define HEADER "ringnfs NSM monitors, format 1"
#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Text of the running kernel's boot id, or an empty one. */
static void boot_id(char out[NSM_BOOT_BYTES + 1])
{
	const int fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? 0 : read(fd, out, NSM_BOOT_BYTES);

	if (fd >= 0)
		close(fd);
	out[n > 0 ? n : 0] = '\0';
}

static void put_one(struct nsm_text *t, const struct nsm_monitor *m)
{
	char numbers[64];
	const int len = snprintf(numbers, sizeof(numbers), " %" PRIu32 " %" PRIu32 " %" PRIu32,
				 m->my.prog, m->my.vers, m->my.proc);

	nsm_text_put(t, m->former ? "tell" : "mon", m->former ? 4 : 3);
	nsm_text_put_address(t, &m->addr);
	nsm_text_put(t, numbers, (size_t)len);
	nsm_text_put_bytes(t, m->priv, sizeof(m->priv));
	nsm_text_put_bytes(t, m->name, m->name_len);
	nsm_text_put_bytes(t, m->my.name, m->my.name_len);
	nsm_text_put(t, "\n", 1);
}

void nsm_monitors_put(const struct nsm_monitor_list *list, struct nsm_text *t)
{
	const struct nsm_monitor *m;
	char id[NSM_BOOT_BYTES + 1], line[NSM_BOOT_BYTES + 64];
	unsigned n = 0;

	boot_id(id);
	nsm_text_put(t, line, (size_t)snprintf(line, sizeof(line), HEADER "\nboot %s\n", id));
	LIST_FOREACH (m, list, link) {
		put_one(t, m);
		n++;
	}
	nsm_text_end(t, n);
}

static bool read_fields(char *text, struct nsm_monitor *m)
{
	char *save = NULL, *f[7];
	uint32_t priv_len = 0;

	for (unsigned i = 0; i < 7; i++)
		f[i] = strtok_r(i ? NULL : text, " ", &save);
	return !strtok_r(NULL, " ", &save) && nsm_read_address(f[0], &m->addr) &&
	       nsm_read_number(f[1], &m->my.prog) && nsm_read_number(f[2], &m->my.vers) &&
	       nsm_read_number(f[3], &m->my.proc) &&
	       nsm_read_bytes(f[4], m->priv, sizeof(m->priv), &priv_len) &&
	       priv_len == sizeof(m->priv) &&
	       nsm_read_bytes(f[5], m->name, sizeof(m->name), &m->name_len) &&
	       nsm_read_bytes(f[6], m->my.name, sizeof(m->my.name), &m->my.name_len);
}

static int read_one(char *text, bool former, struct nsm_monitor_list *out)
{
	struct nsm_monitor *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->former = m->due = former;
	LIST_INSERT_HEAD(out, m, link);
	return read_fields(text, m) ? 0 : -EINVAL;
}

int nsm_monitors_read(const char *data, size_t len, struct nsm_monitor_list *out)
{
	struct nsm_reader r = { .at = data, .end = data + len };
	char id[NSM_BOOT_BYTES + 1], *text;
	uint32_t n = 0, said;
	bool restarted;
	int rc = 0;

	if (!nsm_read_line(&r) || strcmp(r.line, HEADER) != 0)
		return -EINVAL;
	if (!nsm_read_line(&r) || !(text = nsm_behind(r.line, "boot")))
		return -EINVAL;
	boot_id(id);
	restarted = strcmp(id, text) != 0;
	for (; nsm_read_line(&r) && rc == 0; n++) {
		char *tell = nsm_behind(r.line, "tell");

		text = tell ? tell : nsm_behind(r.line, "mon");
		if (!text)
			break;
		rc = n < NSM_MONITORS_MAX ? read_one(text, restarted || tell, out) : -EINVAL;
	}
	if (rc)
		return rc;
	text = nsm_behind(r.line, "end");
	return text && nsm_read_number(text, &said) && said == n && r.at == r.end ? 0 : -EINVAL;
}

void nsm_monitors_free(struct nsm_monitor_list *list)
{
	struct nsm_monitor *m;

	while ((m = LIST_FIRST(list)) != NULL) {
		LIST_REMOVE(m, link);
		free(m);
	}
}
