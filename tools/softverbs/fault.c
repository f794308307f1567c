/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/qp.h"

#define SCRIPT_MAX 65536

/* xorshift64*: the same seed gives the same faults. */
static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return x * 0x2545f4914f6cdd1du;
}

static bool fires(struct sv_rule *r)
{
	r->seen++;
	if ((r->times && r->fired >= r->times) || r->seen < r->nth)
		return false;
	if (r->one_in)
		return (next_random(&r->random) >> 33) % r->one_in == 0;
	return (r->seen - r->nth) % r->every == 0;
}

/* Returns the rule that fires here, or NULL. Counts the event in every rule that matches. */
static struct sv_rule *hit(unsigned points, const struct sv_qp *qp)
{
	struct sv_faults *f = sv_fabric.faults;
	struct sv_rule *r, *found = NULL;

	if (!f)
		return NULL;
	TAILQ_FOREACH (r, &f->rules, link) {
		if (!(r->point & points) || (r->qp && (!qp || r->qp != qp->ordinal)))
			continue;
		if (!fires(r) || found)
			continue;
		r->fired++;
		f->fired++;
		found = r;
	}
	return found;
}

static void run_deferred(void *arg)
{
	struct sv_faults *f = arg;
	struct sv_deferred *d;

	while ((d = TAILQ_FIRST(&f->deferred))) {
		struct sv_qp *qp = sv_qp_find(d->qpn);
		TAILQ_REMOVE(&f->deferred, d, link);
		if (qp && d->action == SV_DROP_CONNECTION)
			sv_qp_drop(qp);
		else if (qp)
			sv_device_remove(qp->ctx->dev);
		free(d);
	}
}

static void defer(struct sv_qp *qp, enum sv_action action)
{
	struct sv_faults *f = sv_fabric.faults;
	struct sv_deferred *d = calloc(1, sizeof(*d));

	if (!d)
		return;
	d->action = action;
	d->qpn = qp->ibv.qp_num;
	TAILQ_INSERT_TAIL(&f->deferred, d, link);
	sv_timer_start(&f->timer, 0, run_deferred, f);
}

static unsigned post_points(uint8_t op)
{
	switch (op) {
	case SV_OP_SEND:
		return SV_AT_POST | SV_AT_SEND;
	case SV_OP_WRITE:
		return SV_AT_POST | SV_AT_WRITE;
	case SV_OP_READ:
		return SV_AT_POST | SV_AT_READ;
	default:
		return SV_AT_POST | SV_AT_ATOMIC;
	}
}

int sv_fault_post(struct sv_qp *qp, uint8_t op)
{
	const struct sv_rule *r = hit(post_points(op), qp);

	if (!r)
		return 0;
	switch (r->action) {
	case SV_FULL_SQ:
		return ENOMEM;
	case SV_FAIL:
		return (int)r->arg;
	case SV_DROP_CONNECTION:
		qp->drop = true;
		break;
	case SV_DEVICE_REMOVED:
		defer(qp, r->action);
		break;
	case SV_STOP_READING:
		qp->silent = true;
		break;
	case SV_DELAY:
		sv_qp_pause(qp, r->arg);
		break;
	default:
		break;
	}
	return 0;
}

void sv_fault_request(struct sv_qp *qp)
{
	const struct sv_rule *r = hit(SV_AT_REQUEST, qp);

	if (!r)
		return;
	if (r->action == SV_RNR)
		qp->rnr = true;
	else if (r->action == SV_STOP_READING)
		qp->silent = true;
	else
		defer(qp, r->action);
}

int sv_fault_mr(enum sv_point point)
{
	const struct sv_rule *r = hit(point, NULL);

	return r ? -(int)r->arg : 0;
}

uint64_t sv_fault_completion(struct sv_qp *qp)
{
	const struct sv_rule *r = hit(SV_AT_COMPLETION, qp);

	if (!r)
		return 0;
	if (r->action == SV_DELAY)
		return r->arg;
	if (r->action == SV_REORDER)
		return SV_HOLD_REORDER;
	if (r->action == SV_STOP_READING)
		qp->silent = true;
	else
		defer(qp, r->action);
	return 0;
}

void sv_faults_clear(struct sv_faults *f)
{
	struct sv_rule *r;

	while ((r = TAILQ_FIRST(&f->rules))) {
		TAILQ_REMOVE(&f->rules, r, link);
		free(r);
	}
}

static int add_statement(struct sv_rules *rules, const char *statement)
{
	struct sv_rule *r = calloc(1, sizeof(*r));
	int err = r ? sv_rule_parse(statement, r) : -ENOMEM;

	if (err)
		free(r);
	else
		TAILQ_INSERT_TAIL(rules, r, link);
	return err < 0 ? err : 0;
}

int sv_faults_add(struct sv_faults *f, const char *text, const char **where)
{
	struct sv_rules rules = TAILQ_HEAD_INITIALIZER(rules);
	struct sv_rule *r;
	char statement[256];
	int err = 0;

	while (*text && !err) {
		size_t len = strcspn(text, ";\n");
		*where = text;
		if (len >= sizeof(statement))
			err = -EINVAL;
		if (!err) {
			memcpy(statement, text, len);
			statement[len] = '\0';
			if (statement[strspn(statement, " \t\r")] && *text != '#')
				err = add_statement(&rules, statement);
		}
		text += len;
		text += *text != '\0';
	}
	if (!err) {
		TAILQ_CONCAT(&f->rules, &rules, link);
		return 0;
	}
	while ((r = TAILQ_FIRST(&rules))) {
		TAILQ_REMOVE(&rules, r, link);
		free(r);
	}
	return err;
}

static char *read_script(const char *path)
{
	char *text = calloc(1, SCRIPT_MAX);
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	ssize_t n = fd < 0 ? -1 : read(fd, text, SCRIPT_MAX - 1);

	if (fd >= 0)
		close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	return text;
}

int sv_faults_init(void)
{
	const char *given = sv_env("SOFTVERBS_FAULTS", ""), *where = "";
	struct sv_faults *f = calloc(1, sizeof(*f));
	char *text = *given == '@' ? read_script(given + 1) : strdup(given);
	int err = f && text ? 0 : -ENOENT;

	if (!err) {
		TAILQ_INIT(&f->rules);
		TAILQ_INIT(&f->deferred);
		err = sv_faults_add(f, text, &where);
		if (err)
			fprintf(stderr, "softverbs: not a fault: %.60s\n", where);
	}
	if (!err)
		err = sv_faults_listen(f);
	free(text);
	if (err)
		free(f);
	else
		sv_fabric.faults = f;
	return err;
}
