/* SPDX-License-Identifier: BSD-2-Clause */
/* The object that members of a cluster share: each transition, each refusal, and bytes that are damaged or made by somebody hostile. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_object.h"
#include "lib/util.h"

static const struct cluster_digest digest = { .key = { 1 }, .exports = { 2 }, .settings = { 3 } };
static struct cluster_object o;
static struct cluster_self a, b;

static enum cluster_refusal join(struct cluster_object *obj, const char *name,
				 const struct cluster_digest *d, bool has_records,
				 struct cluster_self *self)
{
	const struct cluster_starter starter = { name, *d, has_records, 10000, { 0 } };

	return cluster_join(obj, &starter, self);
}

static void two_members(void)
{
	cluster_init(&o);
	cr_assert_eq(join(&o, "a", &digest, false, &a), CLUSTER_OK);
	cr_assert_eq(join(&o, "b", &digest, false, &b), CLUSTER_OK);
}

TestSuite(cluster_object, .init = two_members);

static void expect_refused(enum cluster_refusal got, enum cluster_refusal wanted,
			   const struct cluster_object *before, int line)
{
	cr_expect_eq(got, wanted, "line %d: %s, not %s", line, cluster_refusal_text(got),
		     cluster_refusal_text(wanted));
	cr_expect(memcmp(before, &o, sizeof(o)) == 0,
		  "line %d: a refused transition changed the object", line);
}

#define REFUSED(call, wanted)                                                                      \
	do {                                                                                       \
		const struct cluster_object before = o;                                            \
		const enum cluster_refusal got = (call);                                           \
		expect_refused(got, wanted, &before, __LINE__);                                    \
	} while (0)
#define DONE(call) cr_expect_eq((call), CLUSTER_OK)

Test(cluster_object, new_members_need_no_grace)
{
	cr_expect_eq(o.reclaim_epoch, 0);
	cr_expect_not(cluster_duty(&o, &a).enforce);
	cr_expect_not(cluster_all_enforce(&o), "without a grace nobody enforces");
	/* Records of a member that the cluster does not know are worth nothing. */
	REFUSED(cluster_remove(&o, "nobody"), CLUSTER_UNKNOWN_MEMBER);
	DONE(join(&o, "c", &digest, true, &b));
	cr_expect_eq(o.reclaim_epoch, 0);
	cr_expect_not(cluster_look(&o, "c")->needs_grace);
}

/* Rows: a is ahead of b; then c joins, and is ahead of both. */
Test(cluster_object, clocks)
{
	struct cluster_self c, again;

	REFUSED(cluster_see_clock(&o, &b, "b", b.incarnation, true), CLUSTER_UNKNOWN_MEMBER);
	REFUSED(cluster_see_clock(&o, &b, "x", 1, true), CLUSTER_UNKNOWN_MEMBER);
	REFUSED(cluster_see_clock(&o, &b, "a", a.incarnation + 1, true), CLUSTER_STARTED_ANEW);
	DONE(cluster_see_clock(&o, &b, "a", a.incarnation, true));
	cr_expect(cluster_is_sound(&o));
	cr_expect(cluster_are_apart(&o, "a", "b") && cluster_are_apart(&o, "b", "a"));
	cr_expect(!cluster_duty(&o, &a).leave && cluster_duty(&o, &b).leave);
	DONE(join(&o, "c", &digest, false, &c));
	cr_expect(!cluster_duty(&o, &a).leave && !cluster_duty(&o, &b).leave);
	DONE(cluster_see_clock(&o, &b, "c", c.incarnation, true));
	cr_expect(cluster_duty(&o, &b).leave, "it is apart from both");
	DONE(cluster_see_clock(&o, &a, "c", c.incarnation, true));
	cr_expect(!cluster_duty(&o, &a).leave && cluster_duty(&o, &b).leave &&
			  cluster_duty(&o, &c).leave,
		  "all are apart: the first stays");
	DONE(cluster_see_clock(&o, &b, "a", a.incarnation, false));
	cr_expect(!cluster_duty(&o, &a).leave && !cluster_duty(&o, &b).leave &&
		  cluster_duty(&o, &c).leave);
	/* A new run is not what the last one was. */
	DONE(join(&o, "c", &digest, false, &again));
	cr_expect_not(cluster_are_apart(&o, "a", "c"));
	REFUSED(cluster_see_clock(&o, &c, "a", a.incarnation, true), CLUSTER_FENCED);
	/* Rows move when a member is removed. */
	DONE(cluster_see_clock(&o, &b, "c", again.incarnation, true));
	DONE(cluster_leave(&o, &a, false));
	REFUSED(cluster_see_clock(&o, &b, "a", a.incarnation, true), CLUSTER_NOT_RUNNING);
	DONE(cluster_remove(&o, "a"));
	cr_expect(cluster_is_sound(&o) && cluster_are_apart(&o, "b", "c"));
	cr_expect(cluster_duty(&o, &again).leave);
	DONE(cluster_declare_dead(&o, &b, "c", again.incarnation));
	cr_expect(cluster_is_sound(&o) && !cluster_are_apart(&o, "b", "c"));
	cr_expect_not(cluster_duty(&o, &b).leave);
	o.member[0].ahead = 1;
	cr_expect_not(cluster_is_sound(&o));
}

/* Two pairs: one of them stays, and no more leave than must. */
Test(cluster_object, clocks_of_two_pairs)
{
	struct cluster_self m[4] = { a, b };

	DONE(join(&o, "c", &digest, false, &m[2]));
	DONE(join(&o, "d", &digest, false, &m[3]));
	for (unsigned i = 0; i < 4; i++)
		DONE(cluster_see_clock(&o, &m[i % 2], i / 2 ? "c" : "d",
				       m[i / 2 ? 2 : 3].incarnation, true));
	cr_expect(!cluster_duty(&o, &m[0]).leave && !cluster_duty(&o, &m[1]).leave);
	cr_expect(cluster_duty(&o, &m[2]).leave && cluster_duty(&o, &m[3]).leave);
}

Test(cluster_object, restart_and_grace)
{
	struct cluster_self again;

	DONE(join(&o, "a", &digest, true, &again));
	cr_expect_eq(o.epoch, 2);
	cr_expect_eq(o.reclaim_epoch, 1);
	cr_expect(cluster_duty(&o, &a).fenced);
	cr_expect(cluster_duty(&o, &again).enforce);
	cr_expect_not(cluster_duty(&o, &again).confirm, "who joins enforces");
	cr_expect_not(cluster_duty(&o, &again).may_reclaim);
	cr_expect(cluster_duty(&o, &b).confirm);
	REFUSED(cluster_reclaimed(&o, &again), CLUSTER_NOT_ENFORCED);
	REFUSED(cluster_enforcing(&o, &b, 1), CLUSTER_OLD_EPOCH);
	REFUSED(cluster_enforcing(&o, &a, 2), CLUSTER_FENCED);
	DONE(cluster_enforcing(&o, &b, 2));
	cr_expect(cluster_all_enforce(&o));
	cr_expect(cluster_duty(&o, &again).may_reclaim);
	cr_expect_not(cluster_duty(&o, &b).may_reclaim);
	DONE(cluster_reclaimed(&o, &b)); /* b has nothing to reclaim */
	cr_expect_neq(o.reclaim_epoch, 0);
	DONE(cluster_reclaimed(&o, &again));
	cr_expect_eq(o.reclaim_epoch, 0);
	cr_expect_not(cluster_duty(&o, &b).enforce);
	REFUSED(cluster_enforcing(&o, &b, 2), CLUSTER_NO_GRACE);
}

Test(cluster_object, restart_without_records)
{
	struct cluster_self again;

	DONE(join(&o, "a", &digest, false, &again));
	cr_expect_eq(o.reclaim_epoch, 0, "nobody waits for a member without clients");
}

Test(cluster_object, death)
{
	struct cluster_self again;

	REFUSED(cluster_declare_dead(&o, &b, "c", 1), CLUSTER_UNKNOWN_MEMBER);
	REFUSED(cluster_declare_dead(&o, &b, "a", a.incarnation + 7), CLUSTER_STARTED_ANEW);
	REFUSED(cluster_remove(&o, "a"), CLUSTER_IS_RUNNING);
	cr_expect_not(cluster_may_release(&o, &a), "a has crashed unseen");
	DONE(cluster_declare_dead(&o, &b, "a", a.incarnation));
	REFUSED(cluster_declare_dead(&o, &b, "a", a.incarnation), CLUSTER_NOT_RUNNING);
	REFUSED(cluster_declare_dead(&o, NULL, "a", a.incarnation), CLUSTER_NOT_RUNNING);
	cr_expect(cluster_duty(&o, &a).fenced);
	cr_expect_not(cluster_may_release(&o, &a), "b does not enforce yet");
	DONE(cluster_enforcing(&o, &b, o.epoch));
	cr_expect(cluster_all_enforce(&o), "nobody waits for the dead to enforce");
	cr_expect(cluster_may_release(&o, &a));
	/* a was only slow. It can change nothing now. */
	REFUSED(cluster_declare_dead(&o, &a, "b", b.incarnation), CLUSTER_FENCED);
	REFUSED(cluster_enforcing(&o, &a, o.epoch), CLUSTER_FENCED);
	REFUSED(cluster_reclaimed(&o, &a), CLUSTER_FENCED);
	REFUSED(cluster_leave(&o, &a, true), CLUSTER_FENCED);
	REFUSED(cluster_set_digest(&o, &a, &digest), CLUSTER_FENCED);
	DONE(join(&o, "a", &digest, true, &again));
	cr_expect(cluster_duty(&o, &again).may_reclaim, "b enforces already");
	DONE(cluster_reclaimed(&o, &again));
	cr_expect_eq(o.reclaim_epoch, 0);
	cr_expect(cluster_may_release(&o, &a),
		  "whatever the old run had was reclaimed by the new one");
}

/* Member b may call a's locks lost only until all enforce; and a's duty follows from that. */
Test(cluster_object, losses)
{
	struct cluster_self again;

	REFUSED(cluster_lose(&o, &b, "c", 1), CLUSTER_UNKNOWN_MEMBER);
	REFUSED(cluster_lose(&o, &b, "a", a.incarnation + 7), CLUSTER_STARTED_ANEW);
	/* The object shows the member as running. */
	cr_expect(cluster_must_stand(&o, cluster_look(&o, "a")));
	DONE(cluster_lose(&o, &b, "a", a.incarnation));
	cr_expect_eq(cluster_look(&o, "a")->state, CLUSTER_DEAD);
	cr_expect(cluster_is_sound(&o) && cluster_duty(&o, &a).fenced);
	cr_expect_eq(o.reclaim_epoch, 0, "there is nothing to wait for");
	cr_expect(cluster_may_release(&o, &a));
	REFUSED(cluster_lose(&o, &b, "a", a.incarnation), CLUSTER_RELEASED);
	REFUSED(cluster_lose(&o, &a, "b", b.incarnation), CLUSTER_FENCED);
	DONE(join(&o, "a", &digest, true, &a));
	cr_expect_not(cluster_look(&o, "a")->needs_grace || cluster_look(&o, "a")->lost);
	/* The member has been started again, and b does not enforce yet. */
	DONE(join(&o, "a", &digest, true, &again));
	cr_expect_eq(cluster_look(&o, "a")->holder, a.incarnation);
	DONE(cluster_lose(&o, &b, "a", a.incarnation));
	cr_expect(cluster_is_sound(&o) && cluster_duty(&o, &again).lost);
	cr_expect(cluster_duty(&o, &again).enforce && !cluster_duty(&o, &again).confirm);
	cr_expect_eq(o.reclaim_epoch, 0);
	DONE(cluster_reclaimed(&o, &again));
	cr_expect(cluster_is_sound(&o) && !cluster_duty(&o, &again).enforce);
	/* The member ends before it has dropped its records. */
	DONE(join(&o, "a", &digest, true, &a));
	DONE(cluster_lose(&o, NULL, "a", again.incarnation));
	DONE(cluster_declare_dead(&o, &b, "a", a.incarnation));
	cr_expect(cluster_is_sound(&o) && cluster_look(&o, "a")->lost);
	DONE(join(&o, "a", &digest, true, &a));
	cr_expect_not(cluster_look(&o, "a")->needs_grace);
	/* Released in order, they are not lost. */
	DONE(cluster_declare_dead(&o, &b, "a", a.incarnation));
	DONE(cluster_enforcing(&o, &b, o.epoch));
	REFUSED(cluster_lose(&o, &b, "a", a.incarnation), CLUSTER_RELEASED);
}

Test(cluster_object, removal)
{
	struct cluster_self again;

	DONE(cluster_declare_dead(&o, &b, "a", a.incarnation));
	DONE(cluster_remove(&o, "a"));
	cr_expect_eq(o.nmembers, 1);
	cr_expect_eq(o.reclaim_epoch, 0, "nobody waits for it any more");
	cr_expect(cluster_duty(&o, &a).fenced);
	DONE(join(&o, "a", &digest, true, &again));
	cr_expect_not(cluster_look(&o, "a")->needs_grace, "its clients have lost what they had");
	cr_expect(cluster_duty(&o, &a).fenced, "numbers of runs do not come twice");
}

Test(cluster_object, leaving)
{
	struct cluster_self again;

	DONE(cluster_leave(&o, &a, true));
	cr_expect_neq(o.reclaim_epoch, 0);
	cr_expect_not(cluster_may_release(&o, &a), "b does not enforce yet");
	DONE(cluster_enforcing(&o, &b, o.epoch));
	cr_expect(cluster_may_release(&o, &a));
	DONE(join(&o, "a", &digest, false, &again));
	cr_expect_eq(o.reclaim_epoch, 0);
	DONE(cluster_leave(&o, &again, false));
	cr_expect_eq(o.reclaim_epoch, 0, "a member without clients leaves without a grace");
	DONE(join(&o, "a", &digest, true, &again));
	cr_expect_not(cluster_look(&o, "a")->needs_grace, "it had nothing when it left");
}

Test(cluster_object, second_death_in_a_grace)
{
	struct cluster_self c, again;

	DONE(join(&o, "c", &digest, false, &c));
	DONE(cluster_declare_dead(&o, &b, "a", a.incarnation));
	DONE(cluster_enforcing(&o, &b, o.epoch));
	DONE(join(&o, "a", &digest, true, &again));
	/* c dies before it enforces: the grace is for it, too, and does not wait for it to enforce. */
	DONE(cluster_declare_dead(&o, &b, "c", c.incarnation));
	cr_expect_eq(o.epoch, 2);
	cr_expect(cluster_duty(&o, &again).may_reclaim);
	DONE(cluster_reclaimed(&o, &again));
	cr_expect_neq(o.reclaim_epoch, 0, "c has not reclaimed");
	DONE(join(&o, "c", &digest, true, &c));
	DONE(cluster_reclaimed(&o, &c));
	cr_expect_eq(o.reclaim_epoch, 0);
}

Test(cluster_object, names_and_room)
{
	static const char *const bad[] = {
		"",	   ".",
		".hidden", "a/b",
		"..",	   "a b",
		"a\n",	   "0123456789012345678901234567890123456789012345678901234567890123"
	};
	struct cluster_self self;
	char name[CLUSTER_NAME_SIZE];

	for (size_t i = 0; i < rn_array_size(bad); i++)
		REFUSED(join(&o, bad[i], &digest, true, &self), CLUSTER_BAD_NAME);
	for (unsigned i = o.nmembers; i < CLUSTER_MEMBERS; i++) {
		snprintf(name, sizeof(name), "%063u", i);
		DONE(join(&o, name, &digest, true, &self));
	}
	REFUSED(join(&o, "one-too-many", &digest, true, &self), CLUSTER_FULL);
	DONE(join(&o, "a", &digest, true, &self));
}

Test(cluster_object, digests)
{
	struct cluster_digest other = digest, key = digest;
	struct cluster_self c;

	other.exports[5] ^= 1;
	key.key[15] ^= 1;
	cr_expect_eq(cluster_differences(&digest, &other), CLUSTER_EXPORTS);
	cr_expect_eq(cluster_differences(&digest, &key), CLUSTER_KEY);
	REFUSED(join(&o, "c", &other, false, &c), CLUSTER_UNLIKE);
	/* A change of exports is rolled out: a has read it, and b has not. */
	DONE(cluster_set_digest(&o, &a, &other));
	DONE(join(&o, "c", &other, false, &c));
	DONE(cluster_leave(&o, &c, false));
	DONE(join(&o, "c", &digest, false, &c));
	DONE(cluster_leave(&o, &c, false));
	REFUSED(join(&o, "c", &key, false, &c), CLUSTER_UNLIKE);
	/* Nobody else runs: the first one decides. */
	DONE(cluster_leave(&o, &b, false));
	DONE(join(&o, "a", &key, false, &a));
}

Test(cluster_object, time_until_death)
{
	struct cluster_starter starter = { "a", digest, false, 1, { 0 } };

	REFUSED(cluster_join(&o, &starter, &a), CLUSTER_BAD_TIME);
	starter.dead_ms = 30000;
	DONE(cluster_join(&o, &starter, &a));
	cr_expect_eq(o.dead_ms, 10000, "all members go by one time");
	DONE(cluster_leave(&o, &b, false));
	DONE(cluster_join(&o, &starter, &a));
	cr_expect_eq(o.dead_ms, 30000);
}

static enum cluster_wait waits_for(const char *name)
{
	return cluster_waits_for(&o, cluster_look(&o, name));
}

Test(cluster_object, waits)
{
	cr_expect_eq(waits_for("a"), CLUSTER_WAITS_NOT);
	DONE(cluster_declare_dead(&o, &a, "b", b.incarnation));
	cr_expect_eq(waits_for("a"), CLUSTER_WAITS_ENFORCE);
	cr_expect_eq(waits_for("b"), CLUSTER_WAITS_START);
	DONE(cluster_enforcing(&o, &a, o.epoch));
	cr_expect_eq(waits_for("a"), CLUSTER_WAITS_NOT);
	DONE(join(&o, "b", &digest, true, &b));
	cr_expect_eq(waits_for("b"), CLUSTER_WAITS_RECLAIM);
	DONE(cluster_reclaimed(&o, &b));
	cr_expect_eq(waits_for("b"), CLUSTER_WAITS_NOT);
}

static struct cluster_place place_at(uint8_t last_byte, uint16_t tcp_port)
{
	return (struct cluster_place){ .naddresses = 1,
				       .address = { { [10] = 0xff, 0xff, 192, 0, 2, last_byte } },
				       .tcp_port = tcp_port,
				       .rdma_port = 20049 };
}

Test(cluster_object, places)
{
	struct cluster_starter starter = { "a", digest, false, 10000, place_at(1, 2049) };
	const struct cluster_place first = starter.place;
	struct cluster_self c;

	DONE(cluster_join(&o, &starter, &a));
	starter.name = "c";
	REFUSED(cluster_join(&o, &starter, &c), CLUSTER_SAME_PLACE);
	starter.place = place_at(1, 2050);
	DONE(cluster_join(&o, &starter, &c));
	DONE(cluster_leave(&o, &c, false));
	starter.place = place_at(2, 2049);
	DONE(cluster_join(&o, &starter, &c));
	cr_expect(memcmp(&cluster_look(&o, "c")->place, &starter.place, sizeof(starter.place)) ==
		  0);
	/* An address stays that of a member that has stopped, and may be another's, too. */
	DONE(cluster_leave(&o, &a, false));
	cr_expect(memcmp(&cluster_look(&o, "a")->place, &first, sizeof(first)) == 0);
	starter.place = first;
	DONE(cluster_join(&o, &starter, &c));
	memset(starter.place.address[0], 0, 16);
	REFUSED(cluster_join(&o, &starter, &c), CLUSTER_BAD_PLACE);
	starter.place.naddresses = CLUSTER_ADDRESSES + 1;
	REFUSED(cluster_join(&o, &starter, &c), CLUSTER_BAD_PLACE);
}

/* ---- bytes ---- */

static uint8_t bytes[CLUSTER_BYTES_MAX];

static void repair_checksum(size_t len)
{
	const uint64_t sum = XXH3_64bits(bytes + 24, len - 24);

	rn_put32(bytes + 12, (uint32_t)(len - 24));
	rn_put32(bytes + 16, (uint32_t)(sum >> 32));
	rn_put32(bytes + 20, (uint32_t)sum);
}

static void full_object(void)
{
	struct cluster_self self;
	struct cluster_place *place = &o.member[1].place;
	char name[CLUSTER_NAME_SIZE];

	for (unsigned i = o.nmembers; i < CLUSTER_MEMBERS; i++) {
		snprintf(name, sizeof(name), "%063u", i);
		join(&o, name, &digest, true, &self);
	}
	cluster_declare_dead(&o, &a, "b", b.incarnation);
	cluster_enforcing(&o, &a, o.epoch);
	*place = place_at(1, 2049);
	place->naddresses = CLUSTER_ADDRESSES;
	for (unsigned i = 1; i < CLUSTER_ADDRESSES; i++)
		memset(place->address[i], (int)i, 16);
}

Test(cluster_object, bytes_and_back)
{
	struct cluster_object back;
	size_t len;

	for (unsigned full = 0; full < 2; full++) {
		if (full)
			full_object();
		len = cluster_encode(&o, bytes);
		cr_assert_leq(len, sizeof(bytes));
		memset(&back, 0xff, sizeof(back));
		cr_assert_eq(cluster_decode(bytes, len, &back), 0);
		cr_expect(memcmp(&back, &o, sizeof(o)) == 0);
	}
	bytes[11] = 1;
	cr_expect_eq(cluster_decode(bytes, len, &back), -EPROTONOSUPPORT);
}

/* Each bit that changes and each byte that is missing is found. */
Test(cluster_object, damaged_bytes)
{
	struct cluster_object back = o;
	const size_t len = cluster_encode(&o, bytes);

	for (size_t i = 0; i < len * 8; i++) {
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		cr_expect_lt(cluster_decode(bytes, len, &back), 0, "bit %zu", i);
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t cut = 0; cut < len; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1); /* so that a read beyond is seen by ASan */

		memcpy(exact, bytes, cut);
		cr_expect_lt(cluster_decode(exact, cut, &back), 0, "cut to %zu", cut);
		free(exact);
	}
	cr_expect(memcmp(&back, &o, sizeof(o)) == 0, "a refused object is not taken");
}

/* Whoever makes the checksum, too, can bring about nothing but an object that transitions could have made. */
Test(cluster_object, hostile_bytes)
{
	struct cluster_object back;
	unsigned taken = 0;

	full_object();
	srandom(1);
	for (unsigned round = 0; round < 20000; round++) {
		size_t len = cluster_encode(&o, bytes);

		for (unsigned n = 1 + (unsigned)random() % 3; n > 0; n--) {
			const size_t at = 24 + (size_t)random() % (round % 2 ? 200 : len - 24);

			bytes[at] = random() % 2 ? (uint8_t)random()
						 : (uint8_t)(bytes[at] + (random() % 3) - 1);
		}
		if (random() % 4 == 0)
			len = 24 + (size_t)random() % (len - 24);
		repair_checksum(len);
		if (cluster_decode(bytes, len, &back) == 0) {
			taken++;
			cr_expect(cluster_is_sound(&back));
		}
	}
	cr_expect_gt(taken, 0, "no round came as far as the values");
}

Test(cluster_object, unsound_objects)
{
	const struct cluster_object good = o;
	struct cluster_object back;

#define UNSOUND(change)                                                                            \
	do {                                                                                       \
		o = good;                                                                          \
		change;                                                                            \
		cr_expect_eq(cluster_decode(bytes, cluster_encode(&o, bytes), &back), -EBADMSG,    \
			     "%s", #change);                                                       \
	} while (0)
	UNSOUND(o.epoch = 0);
	UNSOUND(o.epoch = UINT64_MAX);
	UNSOUND(o.reclaim_epoch = 1);
	UNSOUND(o.epoch = 2; o.reclaim_epoch = 1);
	UNSOUND(o.last_incarnation = 1);
	UNSOUND(o.dead_ms = 0);
	UNSOUND(o.last_incarnation = UINT64_MAX);
	UNSOUND(o.member[0].needs_grace = true);
	UNSOUND(o.member[0].enforcing = true);
	UNSOUND(o.member[0].state = CLUSTER_DEAD);
	UNSOUND(o.member[0].state = (enum cluster_state)4);
	UNSOUND(o.member[0].incarnation = 0);
	UNSOUND(o.member[0].incarnation = o.member[1].incarnation);
	UNSOUND(o.member[0].holder = 0);
	UNSOUND(o.member[0].holder = o.member[0].incarnation + 1);
	UNSOUND(o.member[1].holder = 1); /* it has reclaimed nothing of an earlier run */
	UNSOUND(o.member[0].lost = true);
	UNSOUND(o.member[0].name[0] = 'b');
	UNSOUND(o.member[0].name[0] = '/');
	UNSOUND(o.member[0].name[0] = 0);
	UNSOUND(o.member[0].place = place_at(1, 2049); o.member[0].place.address[0][12] = 255);
	UNSOUND(o.member[0].place.naddresses = 1);
}
