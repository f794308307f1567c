#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Recalls of Linux's client in a row, through one session's back channel: no connection is lost, no delegation revoked, and over RDMA
# nobody has to send again because the other had no Receive (RNR). RECALLS says how many; FULL is 10,000.
. "$VMDIR/guest/lib.sh"
case $VERS/$PROTO in
3/* | 4.0/rdma)
	t_begin "recalls"
	t_skip "NFSv3 has none, and clients of 4.0 are called back by TCP only"
	t_done
	;;
esac
RECALLS=${RECALLS:-${FULL:+10000}}
RECALLS=${RECALLS:-200}
BATCH=600 # files. The client returns by itself what it has not used for two thirds of a lease.
[ "$RECALLS" -ge $BATCH ] || BATCH=$((RECALLS + RECALLS / 8))
LEASE=20
vm_up
server_with "[nfs4]
lease_time = $LEASE
grace_time = $LEASE"
LOGGED=$(wc -l </share/ringnfsd.log)
M=/mnt/t
S=/export/$FS/recalls
rm -rf "$S"
mkdir "$S"
for ((i = 0; i < BATCH; i++)); do echo before >"$S/$i"; done
mnt_test || die "no mount"

# connects: how often the mount's connections were made.
connects() { mount_stats $M | awk '$1 == "xprt:" { s += $5 } END { print s + 0 }'; }
# hw_counters: lines NAME VALUE of the device's counters that tell of sends that were not taken, or not answered.
hw_counters() {
	local f
	for f in /sys/class/infiniband/*/ports/1/hw_counters/*rnr* /sys/class/infiniband/*/ports/1/hw_counters/retry_exceeded_err; do
		[ ! -e "$f" ] || echo "${f##*/} $(cat "$f")"
	done
}
returned() { op_count $M DELEGRETURN; }
# hold: the client has a delegation of each file.
hold() { (cd $M/recalls && cat -- *) | sort -u; }
# The processes that change the files wait for the recalls: eight at a time.
change() {
	seq 0 $((BATCH - 1)) | xargs -P 8 -n 25 sh -c 'cd "$0" && for f; do echo "$T" >"$f" || exit 255; done' "$S"
}

# Counts what is returned while others wait for it; rounds in which little was are repeated.
many() {
	local total=0 before got start ms=0 round=0 c h rounds=$((10 * (RECALLS / BATCH + 1)))
	c=$(connects)
	h=$(hw_counters)
	same "data" before "$(hold)"
	while :; do
		round=$((round + 1)) before=$(returned) start=$EPOCHREALTIME
		T="round $round" change
		ms=$((ms + $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%d", (b - a) * 1000 }')))
		got=$(($(returned) - before)) total=$((total + got))
		[ $total -lt "$RECALLS" ] || break
		[ $round -lt $rounds ] || die "$total in $round rounds"
		sleep $((LEASE + 1)) # no file that was recalled in the last lease is delegated
		same "data of round $round" "round $round" "$(hold)"
	done
	same "data at the end" "round $round" "$(hold)"
	t_note "$total recalls in $round rounds, $((total * 1000 / ms)) in a second"
	same "connections made" "$c" "$(connects)"
	same "the device's counters" "$h" "$(hw_counters)"
	assert_clean_stats $M
}
none_revoked() { same "log" "" "$(tail -n +$((LOGGED + 1)) /share/ringnfsd.log | grep "has not returned")"; }

t_run "$RECALLS recalls" many
t_run "none was revoked" none_revoked
umnt_test
server_with ""
t_done
