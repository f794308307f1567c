/* SPDX-License-Identifier: BSD-2-Clause */
#include "nsm/monitor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"
#include "rpc/xdr_out.h"

/* The record file of monitors: the machine's boot id, and one line for each. */

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

#define PAUSE_NS (5 * RN_NS_PER_SECOND) /* before a call is repeated */
#define TRIES 180u			/* about 15 minutes, as sm-notify(8) */
#define TRIES_LOCAL 12u
#define CALLS 32u /* under way at a time, so that other calls have theirs; not of brief ones */

bool nsm_get_my_id(struct xdr_in *x, struct nsm_my_id *out)
{
	const uint8_t *name = xdr_get_opaque(x, NSM_MY_NAME_MAX, &out->name_len);

	if (name && out->name_len > 0)
		memcpy(out->name, name, out->name_len);
	out->prog = xdr_get_u32(x);
	out->vers = xdr_get_u32(x);
	out->proc = xdr_get_u32(x);
	return !x->err;
}

bool nsm_get_mon_id(struct xdr_in *x, struct nsm_monitor *out)
{
	uint32_t len;
	const uint8_t *name = xdr_get_opaque(x, NSM_NAME_MAX, &len);

	if (x->err)
		return false;
	/* A longer name is no address. */
	out->name_len = len > sizeof(out->name) ? 0 : len;
	if (out->name_len > 0)
		memcpy(out->name, name, out->name_len);
	return nsm_get_my_id(x, &out->my);
}

bool nsm_name_address(const uint8_t *name, uint32_t len, struct rpc_address *out)
{
	char text[NSM_MON_NAME_MAX + 1];
	struct in_addr in;

	memset(out, 0, sizeof(*out));
	if (len == 0 || len >= sizeof(text) || memchr(name, '\0', len))
		return false;
	memcpy(text, name, len);
	text[len] = '\0';
	if (inet_pton(AF_INET6, text, out->bytes) == 1)
		return true;
	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	out->bytes[10] = out->bytes[11] = 0xff;
	memcpy(out->bytes + 12, &in, 4);
	return true;
}

static bool same_id(const struct nsm_my_id *a, const struct nsm_my_id *b)
{
	return a->prog == b->prog && a->vers == b->vers && a->proc == b->proc &&
	       a->name_len == b->name_len && memcmp(a->name, b->name, a->name_len) == 0;
}

static bool nsm_monitor_has_name(const struct nsm_monitor *m, const uint8_t *name, uint32_t len)
{
	return m->name_len == len && memcmp(m->name, name, len) == 0;
}

/* Under the lock. */
static uint64_t nsm_monitors_changed(struct nsm *n)
{
	pthread_cond_broadcast(&n->changed);
	return ++n->mon_generation;
}

/* Under the lock. */
static void nsm_monitor_forget(struct nsm *n, struct nsm_monitor *m)
{
	LIST_REMOVE(m, link);
	n->nmonitors--;
	free(m);
	nsm_monitors_changed(n);
}

/* Under the lock. The monitor of that host for that lock manager, or NULL. */
static struct nsm_monitor *nsm_monitor_find(struct nsm *n, const struct nsm_monitor *like)
{
	struct nsm_monitor *m;

	LIST_FOREACH (m, &n->monitors, link) {
		if (!m->former && same_id(&m->my, &like->my) &&
		    nsm_monitor_has_name(m, like->name, like->name_len))
			break;
	}
	return m;
}

/* Under the lock. */
static int nsm_monitor_insert(struct nsm *n, const struct nsm_monitor *like,
			      struct nsm_monitor **out)
{
	struct nsm_monitor *m;

	if (n->nmonitors >= NSM_MONITORS_MAX)
		return -ENOSPC;
	m = malloc(sizeof(*m));
	if (!m)
		return -ENOMEM;
	*m = *like;
	m->serial = ++n->last_serial;
	m->generation = nsm_monitors_changed(n);
	LIST_INSERT_HEAD(&n->monitors, m, link);
	n->nmonitors++;
	*out = m;
	return 0;
}

int nsm_monitor_add(struct nsm *n, const struct nsm_monitor *like)
{
	struct nsm_monitor fresh = *like, *m;
	int rc = 0;

	if (!nsm_name_address(like->name, like->name_len, &fresh.addr))
		return -EINVAL;
	pthread_mutex_lock(&n->lock);
	m = nsm_monitor_find(n, &fresh);
	if (!m) {
		rc = nsm_monitor_insert(n, &fresh, &m);
	} else if (memcmp(m->priv, like->priv, sizeof(m->priv)) != 0) {
		memcpy(m->priv, like->priv, sizeof(m->priv));
		m->generation = nsm_monitors_changed(n);
	}
	if (rc == 0 && m->generation > n->mon_saved && !n->mon_failing)
		rc = -RN_ESOON;
	pthread_mutex_unlock(&n->lock);
	return rc;
}

void nsm_monitor_remove(struct nsm *n, const struct nsm_my_id *my, const uint8_t *name,
			uint32_t len)
{
	struct nsm_monitor *m, *next;

	pthread_mutex_lock(&n->lock);
	for (m = LIST_FIRST(&n->monitors); m; m = next) {
		next = LIST_NEXT(m, link);
		if (!m->former && same_id(&m->my, my) &&
		    (!name || nsm_monitor_has_name(m, name, len)))
			nsm_monitor_forget(n, m);
	}
	pthread_mutex_unlock(&n->lock);
}

void nsm_monitor_crash(struct nsm *n)
{
	struct nsm_monitor *m;

	pthread_mutex_lock(&n->lock);
	n->state = nsm_next_state(n->state);
	n->generation++;
	LIST_FOREACH (m, &n->monitors, link) {
		m->former = m->due = true;
		m->tries = 0;
		m->due_ns = 0;
	}
	nsm_monitors_changed(n);
	pthread_mutex_unlock(&n->lock);
	nsm_wake(n);
}

unsigned nsm_monitor_rebooted(struct nsm *n, const struct rpc_address *addr, uint32_t state)
{
	struct nsm_monitor *m;
	unsigned found = 0;

	pthread_mutex_lock(&n->lock);
	LIST_FOREACH (m, &n->monitors, link) {
		if (m->former || !rpc_address_equal(&m->addr, addr))
			continue;
		found++;
		if (m->state == state)
			continue;
		m->state = state;
		m->due = true;
		m->tries = 0;
		m->due_ns = 0;
	}
	pthread_mutex_unlock(&n->lock);
	if (found)
		nsm_wake(n);
	return found;
}

/* A call about a monitor, which may be forgotten meanwhile. */
struct telling {
	struct nsm *nsm;
	bool brief;
	uint64_t serial;
	uint32_t state; /* that the lock manager is told of */
};

static void nsm_monitor_told(void *ctx, int rc, struct xdr_in *results)
{
	const struct telling t = *(struct telling *)ctx;
	struct nsm *n = t.nsm;
	struct nsm_monitor *m;

	(void)results;
	free(ctx);
	pthread_mutex_lock(&n->lock);
	n->monitor_calls -= !t.brief;
	LIST_FOREACH (m, &n->monitors, link) {
		if (m->serial == t.serial)
			break;
	}
	if (m) {
		const bool again = rc && m->tries < (m->former ? TRIES : TRIES_LOCAL);

		m->calling = false;
		/* The host may have restarted again since this notice was queued. */
		m->due = again || (!m->former && m->state != t.state);
		m->due_ns = rn_now_ns() + (again ? PAUSE_NS : 0);
		if (m->former && !m->due)
			nsm_monitor_forget(n, m);
	}
	pthread_mutex_unlock(&n->lock);
}

static const struct rpc_address here = { .bytes = { [10] = 0xff, 0xff, 127, 0, 0, 1 } };

/* Under the lock: arguments of SM_NOTIFY to the host, or of the lock manager's procedure. */
static uint32_t nsm_monitor_put_args(const struct nsm *n, const struct nsm_monitor *m, uint8_t *out,
				     size_t size)
{
	struct xdr_out x;

	xdr_out_init(&x, out, size);
	if (m->former) {
		xdr_put_opaque(&x, m->my.name, m->my.name_len);
		xdr_put_u32(&x, n->state);
	} else {
		xdr_put_opaque(&x, m->name, m->name_len);
		xdr_put_u32(&x, m->state);
		xdr_put_fixed(&x, m->priv, sizeof(m->priv));
	}
	return (uint32_t)x.used;
}

/* The first call to a host: silent ones hold up no others. */
static bool is_brief(const struct nsm_monitor *m)
{
	return m->former && m->tries == 0;
}

/* Under the lock, which is given up meanwhile. */
static void nsm_monitor_tell(struct nsm *n, struct nsm_monitor *m)
{
	struct nsm_callee to = { .peer = m->former ? m->addr : here,
				 .prog = m->former ? NSM_PROGRAM : m->my.prog,
				 .vers = m->former ? NSM_VERSION : m->my.vers,
				 .proc = m->former ? SM_NOTIFY : m->my.proc,
				 .brief = is_brief(m) };
	struct telling *t = malloc(sizeof(*t));
	uint8_t args[NSM_MY_NAME_MAX + 64];
	const uint32_t len = nsm_monitor_put_args(n, m, args, sizeof(args));
	int rc;

	if (!t) {
		m->due_ns = rn_now_ns() + PAUSE_NS;
		return;
	}
	m->tries++;
	m->calling = true;
	n->monitor_calls += !to.brief;
	*t = (struct telling){ n, to.brief, m->serial, m->state };
	pthread_mutex_unlock(&n->lock);
	rc = nsm_call(&n->calls, &to, args, len,
		      &(struct nsm_call_end){ .done = nsm_monitor_told, .ctx = t });
	if (rc)
		nsm_monitor_told(t, rc, NULL);
	pthread_mutex_lock(&n->lock);
}

static bool nsm_monitor_has_room(const struct nsm *n, const struct nsm_monitor *m)
{
	return is_brief(m) ? n->calls.brief < NSM_BRIEF_MAX
			   : n->monitor_calls < CALLS && n->calls.n < NSM_CALLS_MAX;
}

/* Under the lock. The one that has been due for longest and for which there is room, or NULL. *due: the time when the
 * next one is. Hosts are told when the programs are registered. */
static struct nsm_monitor *nsm_monitor_next_due(const struct nsm *n, uint64_t now, uint64_t *due)
{
	struct nsm_monitor *m, *first = NULL;

	*due = UINT64_MAX;
	LIST_FOREACH (m, &n->monitors, link) {
		if (!m->due || m->calling || (m->former && !n->tell))
			continue;
		if (m->due_ns > now)
			*due = rn_min(*due, m->due_ns);
		else if (nsm_monitor_has_room(n, m) && (!first || m->due_ns < first->due_ns))
			first = m;
	}
	return first;
}

uint64_t nsm_monitors_tick(struct nsm *n, uint64_t now)
{
	struct nsm_monitor *m;
	uint64_t due;

	pthread_mutex_lock(&n->lock);
	while ((m = nsm_monitor_next_due(n, now, &due)) != NULL)
		nsm_monitor_tell(n, m);
	pthread_mutex_unlock(&n->lock);
	return due;
}
