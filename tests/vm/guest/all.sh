#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the guest: test scripts one after the other.
#   PLAN        what to run, as words SCRIPT:VERSION:FILESYSTEM[:PROTOCOL], with the machine's RDMA device
#               unless PROTOCOL is tcp; or else
#   TESTS, VERSIONS, FILESYSTEMS   each with each (defaults: the file tests, 3, both)
#   TESTS_ONCE  further scripts, for which one version and file system are enough, run last
# The last line is the sum of theirs.
passed=0 failed=0 skipped=0

# clean_up: what is left of a script that did not end must not stand in the way of the next.
clean_up() {
	local m
	pidof vmfile | xargs -r kill -9
	# The queue stays, as link_cuttable has made it.
	for m in tovm peer1 peer2; do tc qdisc change dev $m root netem loss 0% limit 100000 2>/dev/null; done
	[ ! -e /run/netns/two ] || tc -n two qdisc change dev totwo root netem loss 0% limit 100000 2>/dev/null
	awk '$3 == "nfs" || $3 == "nfs4" { print $2 }' /proc/mounts | sort -r | xargs -r -n 1 umount -f -l
	# The next script boots the other machines anew.
	[ "${PEERS:-0}" = 0 ] || bash -c '. "$VMDIR/guest/lib.sh"; . "$VMDIR/guest/clients.sh"
		for n in 1 2; do [ ! -e /share/peer.$n/up ] || { peer_die $n; rm /share/peer.$n/up; }; done'
}

# busy_time: of all processors since the start, in hundredths of a second.
busy_time() { awk '$1 == "cpu" { print $2 + $3 + $4 + $7 + $8 }' /proc/stat; }

# what_hangs: of a script that did not end: its last words, and where the kernel is with whoever waits for it.
what_hangs() {
	local p
	ls -t /run/t.log.* 2>/dev/null | head -n 1 | xargs -r tail -n 5
	for p in /proc/[0-9]*; do
		grep -q '^State:.*D' "$p/status" 2>/dev/null || continue
		echo "waits: $(tr '\0' ' ' <"$p/cmdline")"
		head -n 6 "$p/stack"
	done 2>/dev/null
}

# run_script NAME: t/NAME.sh for the version VERS and the file system FS.
run_script() {
	local start=$SECONDS busy rc last limit=${FULL:+1500}
	busy=$(busy_time)
	timeout "${SCRIPT_TIMEOUT:-${limit:-900}}" bash "$VMDIR/t/$1.sh" >/run/all.out 2>&1
	rc=$?
	last=$(tail -n 1 /run/all.out)
	sed '$d' /run/all.out
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
		[ "${BASH_REMATCH[2]}" = 0 ] || clean_up
	else
		echo "$last"
		echo "FAIL [$RDMA/v$VERS/$FS] $1.sh: ended with status $rc"
		failed=$((failed + 1))
		what_hangs | sed 's/^/    | /'
		clean_up
	fi
	echo "-- $1 v$VERS on $FS${PROTO:+ by $PROTO}: $((SECONDS - start)) s, computing $((($(busy_time) - busy) / 100)) s"
}

export FS VERS PROTO
if [ -z "${PLAN:-}" ]; then
	for FS in ${FILESYSTEMS:-ext4 xfs}; do
		for VERS in ${VERSIONS:-3}; do
			for t in ${TESTS:-stats data names dirs tree parallel access restart}; do
				PLAN="${PLAN:-} $t:$VERS:$FS"
			done
		done
	done
fi
for item in $PLAN; do
	IFS=: read -r t VERS FS PROTO <<<"$item"
	run_script "$t"
done
FS=ext4 VERS=3 PROTO=
for t in ${TESTS_ONCE:-}; do
	run_script "$t"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
