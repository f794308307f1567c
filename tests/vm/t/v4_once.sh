#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Exactly once: the connection breaks time and again while names are made, renamed and removed, and
# each of these happens once. A retry that ran again would be seen as EEXIST or ENOENT.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/once
mkdir -p $D
ROUND=${ROUND:-20} # seconds of each test

# breaker FILE: kills the client's connection until FILE is there; how often, to FILE.n. Seldom
# enough for the client, which waits longer before it connects when nothing comes through.
breaker() {
	local n=0
	until [ -e "$1" ]; do
		sleep "0.$((RANDOM % 900 + 100))"
		ss -K -t dst "$ADDR" dport = ":$NFSPORT" >/dev/null 2>&1
		n=$((n + 1))
	done
	echo $n >"$1.n"
}
# round COMMAND: calls it with 1, 2, ... amid breaks, until the time is over or it fails.
round() {
	local i=0 rc=0 end=$((SECONDS + ROUND))
	rm -f /run/once.stop
	breaker /run/once.stop &
	while [ $rc = 0 ] && [ $SECONDS -lt $end ]; do
		i=$((i + 1))
		"$1" $i || rc=1
	done
	: >/run/once.stop
	wait
	[ $rc = 0 ] || die "round $i failed"
	echo "$i rounds, broken $(cat /run/once.stop.n) times" >&2
	[ "$(cat /run/once.stop.n)" -ge 10 ] || die "too few breaks"
	same "names that are left" "" "$(ls $D)"
}
names() {
	mkdir $D/d$1 && mv $D/d$1 $D/e$1 && ln -s x $D/d$1 && ln $D/d$1 $D/f$1 && rm $D/d$1 $D/f$1 &&
		rmdir $D/e$1
}
# Opens with O_EXCL and locks, which have state.
opens() { (set -C && echo $1 >$D/o$1) && flock -w 20 $D/o$1 true && same "data" "$1" "$(cat $D/o$1)" && rm $D/o$1; }

# A call is under way for long when its connection breaks: the retry waits for the reply. It is not
# told to come again, which Linux's client does after 15 seconds.
under_way() {
	local start
	fsfreeze -f "/export/$FS"
	mkdir $D/under_way &
	sleep 1
	ss -K -t dst "$ADDR" dport = ":$NFSPORT" >/dev/null 2>&1 || : # or it stays frozen
	sleep 3
	fsfreeze -u "/export/$FS"
	start=$EPOCHREALTIME
	wait $! || die "mkdir failed"
	rmdir $D/under_way
	t_note "done $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s after the disk"
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { exit b - a > 13 }' || die "the client was sent away"
}

if [ "$PROTO" = tcp ]; then
	t_run "a call is under way when the connection breaks" under_way
	t_run "names are made, renamed and removed once" round names
	[ "$VERS" = 3 ] || t_run "files are made, locked and removed once" round opens
else
	t_begin "exactly once"
	t_skip "only TCP connections can be broken from outside"
fi
umnt_test
t_done
