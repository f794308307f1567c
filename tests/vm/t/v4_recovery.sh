#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# State and how it outlives the server: reclaim after a crash, and from a server that was away for longer than the lease, with locks
# and data. Clients that vanish are in v4_vanish.sh.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ]; then
	t_begin "recovery"
	t_skip "NFSv3 has no state"
	t_done
fi
LEASE=10 # knfsd's here, too
vm_up
server_anew
S=/export/$FS/recovery
rm -rf "$S"
mkdir "$S"
one=/mnt/one/recovery two=/mnt/two/recovery
SIZE=$((32 << 20))

# in_flight CLIENT NAME: a large file is being written.
in_flight() {
	on "$1" vm_prog vmio gen 31 $SIZE "/mnt/$1/recovery/$2" &
	flight=$!
	wait_until 60 eval "[ \"\$(stat -c %s $S/$2 2>/dev/null || echo 0)\" -gt 4000000 ]"
}
landed() { # CLIENT NAME
	wait $flight
	on "$1" drop_caches
	on "$1" vm_prog vmio check 31 $SIZE "/mnt/$1/recovery/$2"
	vm_prog vmio check 31 $SIZE "$S/$2"
	rm "$S/$2"
}
# contender: two tries to get what one holds, again and again, until $STATE/enough is there.
contender() {
	rm -f $STATE/enough $STATE/taken
	file two contender start "$two/$1" rw
	until [ -e $STATE/enough ]; do
		if file two contender lock posix w 0 10; then touch $STATE/taken; fi
		sleep 0.1
	done >/dev/null 2>&1
	file two contender stop
}

# Both clients are at work when the server dies: it has them back, and nobody else in, as fast as they
# come. The grace period is long, so that waiting for all of it, or for a fixed time, would be seen.
killed() {
	local start took pid
	both k
	file one k lock posix w 0 10
	file one k lock ofd r 100 10
	file two k lock posix w 50 10
	on one sh -c "echo before >$one/before"
	contender k &
	pid=$!
	in_flight one flight
	server_crash
	start=$EPOCHREALTIME
	server_again
	file one k lock posix w 200 10 # a new one: not before the grace period has ended
	took=$(since "$start")
	t_note "restart $took s"
	busy two k lock posix w 9 1
	busy two k lock posix w 100 1
	busy one k lock posix w 50 1
	file one k write 0 reclaimed
	file one k sync
	file two k write 50 reclaimed
	file two k sync
	same "data" reclaimed "$(head -c 9 "$S/k")"
	touch $STATE/enough
	landed one flight
	wait $pid
	[ ! -e $STATE/taken ] || die "another had the lock meanwhile"
	same "data from before" before "$(cat "$S/before")"
	at_most "the restart took too long" "$took" $((GRACE - 20))
	file one k lock posix u 0 10
	file two k lock posix w 0 10
	neither k
}
# Files that are open without names, and with other names, are there after the restart.
killed_open() {
	echo text >"$S/o"
	file one o start $one/o rw
	file one g start $one/gone rwc
	file one g write 0 unlinked
	file one g sync
	on one rm $one/gone
	on two mv $two/o $two/p
	server_crash
	server_again
	file one o write 0 TEXT
	file one o sync
	same "data" TEXT "$(cat "$S/p")"
	same "data of a removed file" unlinked "$(file one g read 0 20)"
	file one o stop
	file one g stop
	# The client removes them behind the close, after the grace period, which 4.0 waits for as a whole.
	wait_until $GRACE eval '[ -z "$(ls -A $S | grep -F .nfs)" ]' || die "left: $(ls -A "$S")"
	rm "$S/p"
}
# Twice, the second time before all was reclaimed.
killed_twice() {
	both t
	file one t lock posix w 0 10
	file two t lock posix w 50 10
	server_crash
	server_again
	sleep 0.5
	server_crash
	server_again
	file one t lock posix w 100 10
	busy two t lock posix w 0 10
	busy one t lock posix w 50 10
	file two t write 50 x
	file two t sync
	neither t
}
# Nobody has anything: there is nothing to wait for.
killed_idle() {
	local start took
	clients_umount
	server_crash
	start=$EPOCHREALTIME
	server_again
	clients_mount
	on one sh -c "echo x >$one/idle"
	took=$(since "$start")
	t_note "restart and mount $took s"
	[ "$SERVER" = knfsd ] || at_most "the restart took too long" "$took" $((GRACE - 20))
}
away() {
	both a
	file one a lock posix w 0 10
	file two a lock posix r 50 10
	in_flight one flight
	server_crash
	sleep $((LEASE * 3 / 2))
	server_again
	busy two a lock posix w 0 10
	busy one a lock posix w 50 10
	landed one flight
	file one a lock posix u 0 10
	file two a lock posix w 0 10
	neither a
}
# Clients of 4.0 do not say when they have reclaimed all, so the server waits for as long as it is told to. On a busy host
# clients have taken more than ten seconds to come back. A client that is connecting when the server dies waits for a minute until it gives
# that up (rdma_cm), and then for up to 30 s before it tries again: longer than the usual grace period of 90 s.
GRACE=300
if [ "$VERS" = 4.0 ]; then
	server_with "[nfs4]
lease_time = $LEASE
grace_time = $((2 * LEASE))"
else
	server_with "[nfs4]
grace_time = $GRACE"
fi
clients_mount || die "no mounts"
t_run "killed with locks and writes under way" killed
t_run "killed with files open that have no name" killed_open
t_run "killed once more during recovery" killed_twice
t_run "killed with nothing open" killed_idle
clients_umount
# The grace period ends when all are back, which takes long on a busy host, where the client tries to connect again after up to 30 s; but
# clients of 4.0 are waited for.
server_with "[nfs4]
lease_time = $LEASE
grace_time = $([ "$VERS" = 4.0 ] && echo $((4 * LEASE)) || echo $((12 * LEASE)))"
clients_mount || die "no mounts"
t_run "away for longer than the lease" away
clients_umount
server_with ""
t_done
