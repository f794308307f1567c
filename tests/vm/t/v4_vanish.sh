#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# State of clients that vanish: cut off for longer than the lease or over a restart of the server, without power, and started again.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ]; then
	t_begin "clients that vanish"
	t_skip "NFSv3 has no state"
	t_done
fi
LEASE=10 # knfsd's here, too
vm_up
server_anew
S=/export/$FS/vanish
rm -rf "$S"
mkdir "$S"
one=/mnt/one/vanish two=/mnt/two/vanish

# one_takes NAME START: one gets the lock of NAME that two has had, after a lease since START.
one_takes() {
	local took
	until file one "$1" lock posix w 0 10 >/dev/null; do
		at_most "its lock was never given to another" "$(since "$2")" $((LEASE * 12))
		sleep 0.5
	done
	took=$(since "$2")
	t_note "lease $LEASE s, taken after $took s"
	at_most "it was taken too early" $((LEASE / 2)) "$took"
}
# A client vanishes: what it has is another's after the lease, and it learns that when it is back.
vanished() {
	local start
	both v
	file two v lock posix w 0 10
	file two v write 0 mine
	file two v sync
	net_cut two
	start=$EPOCHREALTIME
	sleep 1
	busy one v lock posix w 0 10
	one_takes v "$start"
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
	at_most "grace was too long" "$took" $((LEASE * 12))
	net_heal two
	busy two m lock posix w 0 10
	neither m
}

# A client loses its power. Its locks are another's after the lease; when it is back, it starts anew.
powerless() {
	local start
	both d
	file two d lock posix w 0 10
	peer_die 2
	start=$EPOCHREALTIME
	busy one d lock posix w 0 10
	one_takes d "$start"
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

server_with "[nfs4]
lease_time = $LEASE
grace_time = $((4 * LEASE))"
clients_mount || die "no mounts"
t_run "a client vanishes" vanished
t_run "a client is away, nobody minds" courtesy
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
