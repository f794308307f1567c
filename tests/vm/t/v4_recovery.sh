#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# State and how it outlives the server, the network and the client: reclaim after a crash, a server that was
# away for longer than the lease, clients that vanish, with their locks and their data.
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

since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }
at_most() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a <= b) }' || die "$1: $2 s"; }
busy() { refused busy "$@"; }
both() {
	: >"$S/$1"
	file one "$1" start "$one/$1" rw
	file two "$1" start "$two/$1" rw
}
neither() { file one "$1" stop; file two "$1" stop; }
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
# come. The lease is the usual one, so that waiting for it, or for a fixed time, would be seen.
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
	at_most "the restart took too long" "$took" 85 # a busy host has taken 74 s; to wait for the whole grace period takes 90 s
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
	wait_until 90 eval '[ -z "$(ls -A $S | grep -F .nfs)" ]' || die "left: $(ls -A "$S")"
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
	[ "$SERVER" = knfsd ] || at_most "the restart took too long" "$took" 15
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
# A client vanishes: what it has is another's after the lease, and it learns that when it is back.
vanished() {
	local start took
	both v
	file two v lock posix w 0 10
	file two v write 0 mine
	file two v sync
	net_cut two
	start=$EPOCHREALTIME
	sleep 1
	busy one v lock posix w 0 10
	until file one v lock posix w 0 10 >/dev/null; do
		at_most "its lock was never given to another" "$(since "$start")" $((LEASE * 4))
		sleep 0.5
	done
	took=$(since "$start")
	t_note "lease $LEASE s, taken after $took s"
	at_most "it was taken too early" $((LEASE / 2)) "$took"
	file one v write 0 other
	file one v sync
	net_heal two
	# The descriptor whose lock is lost says so, and writes nothing over what the other has written.
	if file two v write 0 stale && file two v sync; then die "written with a lost lock"; fi
	same "data" other "$(cat "$S/v")"
	busy two v lock posix w 0 10
	neither v
}
# A client is away for longer than the lease, and nobody wants what it has: it is as before (courtesy).
courtesy() {
	both c
	file two c lock posix w 0 10
	file two c write 0 mine
	file two c sync
	net_cut two
	sleep $((LEASE * 2))
	net_heal two
	file two c write 0 MINE
	file two c sync
	same "data" MINE "$(cat "$S/c")"
	busy one c lock posix w 0 10
	neither c
}
# A client misses the grace period of a restarted server: others go on, and it has lost its state.
missed() {
	local start took
	both m
	file two m lock posix w 0 10
	net_cut two
	server_crash
	start=$EPOCHREALTIME
	server_again
	file one m lock posix w 0 10
	took=$(since "$start")
	t_note "grace $took s"
	at_most "grace was too long" "$took" $((LEASE * 6))
	net_heal two
	busy two m lock posix w 0 10
	neither m
}

# A client loses its power. Its locks are another's after the lease; when it is back, it starts anew.
powerless() {
	local start took
	both d
	file two d lock posix w 0 10
	peer_die 2
	start=$EPOCHREALTIME
	busy one d lock posix w 0 10
	until file one d lock posix w 0 10 >/dev/null; do
		at_most "its lock was never given to another" "$(since "$start")" $((LEASE * 4))
		sleep 0.5
	done
	took=$(since "$start")
	t_note "lease $LEASE s, taken after $took s"
	at_most "it was taken too early" $((LEASE / 2)) "$took"
	peer_boot 2
	client_mount two "$VERS" "/export/$FS"
	file two d start $two/d rw
	busy two d lock posix w 0 10
	neither d
}
# A rebooted client returns before its lease ends: its name tells the server that its old state is void.
rebooted() {
	both b
	file two b lock posix w 0 10
	busy one b lock posix w 0 10
	peer_die 2
	peer_boot 2
	client_mount two "$VERS" "/export/$FS"
	on two sh -c "echo x >$two/back"
	file one b lock posix w 0 10
	file one b stop
}

# Clients of 4.0 do not say when they have reclaimed all, so the server waits for as long as it is told to. On a busy host
# clients have taken more than ten seconds to come back.
[ "$VERS" != 4.0 ] || server_with "[nfs4]
lease_time = $LEASE
grace_time = $((2 * LEASE))"
clients_mount || die "no mounts"
t_run "killed with locks and writes under way" killed
t_run "killed with files open that have no name" killed_open
t_run "killed once more during recovery" killed_twice
t_run "killed with nothing open" killed_idle
clients_umount
# The grace period ends when all are back, which takes long on a busy host, where the client tries to connect again after up to 30 s; but
# clients of 4.0, and who misses it, are waited for.
server_with "[nfs4]
lease_time = $LEASE
grace_time = $([ "$VERS" = 4.0 ] && echo $((4 * LEASE)) || echo $((12 * LEASE)))"
clients_mount || die "no mounts"
t_run "away for longer than the lease" away
t_run "a client vanishes" vanished
t_run "a client is away, nobody minds" courtesy
clients_umount
server_with "[nfs4]
lease_time = $LEASE
grace_time = $((4 * LEASE))"
clients_mount || die "no mounts"
t_run "a client misses the grace period" missed
if [ "$PEERS" = 2 ]; then
	t_run "a client without power" powerless
	# Here the lease is longer than it takes to start.
	clients_umount
	server_with ""
	clients_mount
	t_run "a client starts again" rebooted
fi
clients_umount
server_with ""
t_done
