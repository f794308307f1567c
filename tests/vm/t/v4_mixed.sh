#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Every version on one export at once: each sees what the others do, and locks and shares hold among all.
# VERS makes no difference to it. Locks of NFSv3 beside those of NFSv4 are in v3_locks.sh.
export KNFSD_V4=1
. "$VMDIR/guest/lib.sh"
vm_up
S=/export/$FS/mixed
rm -rf "$S"
mkdir "$S"
four="4.0 4.1 4.2" all="3 4.0 4.1 4.2"
for v in $all; do nfs_mount $v "$PROTO" "/export/$FS" /mnt/v$v actimeo=1 || die "no mount of $v"; done
at() { echo "/mnt/v$1/mixed/$2"; }
start() { vm_prog vmfile start "$1" "$(at "$1" "$2")" "${3:-rw}"; }
f() { vm_prog vmfile do "$@"; }
stop() { vm_prog vmfile stop "$1"; }
busy() { fails_with busy vm_prog vmfile do "$@"; }

data() {
	local v w
	for v in $all; do
		vm_prog vmio gen "${v/./}" 300000 "$(at "$v" "f$v")"
		for w in $all; do vm_prog vmio check "${v/./}" 300000 "$(at "$w" "f$v")"; done
	done
	for v in $all; do
		for w in $all; do echo "$v" >>"$(at "$v" log)"; done
		sleep 1.1
	done
	same "lines" 16 "$(wc -l <"$S/log")"
	same "inodes" 1 "$(for v in $all; do stat -c %i "$(at "$v" log)"; done | sort -u | wc -l)"
}
names() {
	local v
	for v in $all; do echo "$v" >"$(at "$v" n$v)"; done
	sleep 1.1
	for v in $all; do same "names" "n3 n4.0 n4.1 n4.2" "$(cd "$(at "$v" .)" && echo $(ls -d n*))"; done
	mv "$(at 3 n4.1)" "$(at 3 moved)"
	rm "$(at 4.0 n4.2)"
	ln "$(at 4.2 moved)" "$(at 4.2 linked)"
	sleep 1.1
	for v in $all; do
		same "names" "linked moved n3 n4.0" "$(cd "$(at "$v" .)" && echo $(ls -d linked moved n*))"
		same "data" 4.1 "$(cat "$(at "$v" linked)")"
	done
}
# Each pair of versions, both ways.
locks() {
	local v w
	: >"$S/l"
	for v in $four; do start "$v" l; done
	for v in $four; do
		f "$v" lock posix w 10 10
		for w in $four; do
			[ "$v" = "$w" ] || busy "$w" lock posix r 19 1
			[ "$v" = "$w" ] || same "what $w sees" "w 10 10" "$(f "$w" test posix w 0 100)"
		done
		f "$v" lock posix u 10 10
		f "$v" lock posix r 30 5
	done
	for v in $four; do busy "$v" lock posix w 30 5; done
	for v in $four; do stop "$v"; done
}
# reserve ACCESS DENY: in the background, by NFSv4.0; prints the status.
reserve() {
	rm -f $STATE/share $STATE/share.closed
	python3 "$VMDIR/guest/share_open.py" $ADDR "$NFSPORT" "$(v4_path "/export/$FS")/mixed/share" "$1" "$2" $STATE/share >&2 &
	wait_until 20 [ -e $STATE/share ] || die "no answer"
	cat $STATE/share
}
release() {
	rm $STATE/share
	wait_until 20 [ -e $STATE/share.closed ] || die "not closed"
}
shares() {
	local v
	echo data >"$S/share"
	same "OPEN" 0 "$(reserve 1 2)" # read; nobody may write
	for v in $four; do
		same "data" data "$(cat "$(at "$v" share)")"
		fails_with "Permission denied" sh -c "echo x >>$(at "$v" share)"
		fails_with "Permission denied" truncate -s 1 "$(at "$v" share)"
	done
	release
	for v in $four; do echo "$v" >>"$(at "$v" share)"; done
	same "OPEN" 0 "$(reserve 2 1)" # write; nobody may read
	for v in $four; do
		fails_with "Permission denied" cat "$(at "$v" share)"
		echo "$v" >>"$(at "$v" share)"
	done
	release
	same "lines" 7 "$(wc -l <"$S/share")"
}
# Opens of a Linux client conflict with share reservations.
shares_against() {
	local v
	for v in $four; do
		start "$v" share r
		same "deny read while $v reads" 10015 "$(reserve 1 1)"
		same "deny write while $v reads" 0 "$(reserve 1 2)"
		release
		stop "$v"
		start "$v" share w
		same "deny write while $v writes" 10015 "$(reserve 1 2)"
		stop "$v"
	done
	same "and then" 0 "$(reserve 3 3)"
	release
}
# NFSv3 opens nothing: its calls themselves are refused.
shares_of_3() {
	[ "$SERVER" = ringnfsd ] || { echo "knfsd lets NFSv3 do it"; exit 77; }
	echo data >"$S/share"
	same "OPEN" 0 "$(reserve 1 2)"
	same "data" data "$(cat "$(at 3 share)")"
	! timeout 20 sh -c "echo x | dd of=$(at 3 share) conv=notrunc,fsync status=none" 2>/dev/null || die "NFSv3 wrote"
	same "data" data "$(cat "$S/share")"
	release
	echo more >>"$(at 3 share)"
	same "data" "data more" "$(echo $(cat "$S/share"))"
}
removed() {
	local v
	for v in $four; do
		echo "$v" >"$S/r$v"
		start "$v" r$v
		rm "$(at 3 r$v)"
	done
	drop_caches
	for v in $four; do
		same "data" "$v" "$(f "$v" read 0 3)"
		stop "$v"
	done
}

t_run "data" data
t_run "names" names
t_run "locks" locks
t_run "reservations" shares
t_run "reservations against what is open" shares_against
t_run "reservations and NFSv3" shares_of_3
t_run "removed by NFSv3" removed
pidof vmfile | xargs -r kill -9 # of a test that failed
for v in $all; do umount /mnt/v$v; done
rm -rf "$S"
t_done
