#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What goes wrong around a server under load: two clients write by NFSv3 and by this version all the time, each into files that it reads
# back, while the server is killed, stopped, reloaded and held up, the network is cut, and a file system is full or frozen. They must get on
# after each fault, and in the end every client, and the server, must find every byte.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
. "$VMDIR/guest/load.sh"
if [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "faults under load"
	t_skip "needs machines of their own for the clients"
	t_done
fi
# In the full run without a pause between files.
LEASE=10 CUT=${CUT:-12} SIZE=$((1 << 19)) PAUSE=${FULL:+0}
S=/export/$FS/faults
opt=rw,insecure,no_root_squash,no_subtree_check
added=$STATE/exports.d/added.exports
net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
rm -f $STATE/state/nfs4-clients.db* # nobody is waited for whom a script before has left
server_start "$(standard_exports)" "[nfs4]
lease_time = $LEASE
grace_time = $LEASE"
rm -rf "$S"
mkdir "$S"

# ---- faults -----------------------------------------------------------------------------------
killed() {
	server_kill9
	sleep 1
	server_again
	goes_on
}
stopped() {
	local pid
	pid=$(server_pid)
	kill "$pid"
	wait_until 20 eval "! kill -0 $pid" || die "it does not stop"
	server_again
	goes_on
}
reloaded() {
	mkdir -p /export/added
	mountpoint -q /export/added || mount --bind "$S" /export/added
	echo "/export/added *($opt,fsid=70)" >"$added"
	server_reload
	client_mount one "$VERS" /export/added "" /mnt/one/added
	on one test -e "/mnt/one/added/one.3.1"
	on one umount /mnt/one/added
	rm "$added"
	server_reload
	fails_with "" client_mount one "$VERS" /export/added "" /mnt/one/added
	umount /export/added
	goes_on
}
# Held up for longer than the lease: nobody else wanted what the clients hold, so they keep it.
held_up() {
	local pid
	pid=$(server_pid)
	: >"$S/held"
	if [ "$VERS" != 3 ]; then
		file one h start "$(at "one.$VERS")/faults/held" rw
		file two h start "$(at "two.$VERS")/faults/held" rw
		file one h lock posix w 0 10
	fi
	kill -STOP "$pid"
	sleep $((LEASE + 3))
	kill -CONT "$pid"
	if [ "$VERS" != 3 ]; then
		refused busy two h lock posix w 0 10
		file one h write 0 kept
		file one h sync
		same "data" kept "$(cat "$S/held")"
		file one h stop
		file two h stop
	fi
	rm "$S/held"
	goes_on
}
# Both clients at once, the one for longer than the lease.
cut() {
	net_cut one
	net_cut two
	sleep 3
	net_heal two
	sleep $((CUT - 3))
	net_heal one
	goes_on
}
# small_disk: a file system of its own beside the others.
small_disk() {
	mkdir -p /export/small
	truncate -s 48M "/export/$FS/small.img"
	mkfs.ext4 -q -F "/export/$FS/small.img"
	mount -o loop "/export/$FS/small.img" /export/small
	echo "/export/small *($opt,fsid=71)" >"$added"
	server_reload
	client_mount one "$VERS" /export/small "" /mnt/one/small
}
small_gone() {
	on one umount /mnt/one/small
	rm "$added"
	server_reload
	umount /export/small
	rm "/export/$FS/small.img"
}
full() {
	local n=/mnt/one/small
	small_disk
	on one vm_prog vmio gen 7 4000000 $n/before
	fails_with "No space left" on one dd if=/dev/zero of=$n/fill bs=1M count=64 conv=fsync status=none
	fails_with "No space left" on one dd if=/dev/zero of=$n/direct bs=1M count=64 oflag=direct status=none
	goes_on
	on one drop_caches
	on one vm_prog vmio check 7 4000000 $n/before
	on one rm $n/fill $n/direct
	on one vm_prog vmio gen 8 8000000 $n/after
	vm_prog vmio check 8 8000000 /export/small/after
	small_gone
}
# A file system on which every change waits: nobody else does, and the changes are made as soon as it answers.
frozen() {
	local pid n=/mnt/one/small
	small_disk
	fsfreeze -f /export/small
	# shellcheck disable=SC2016 # The client's shell expands it.
	on one sh -c 'for i in $(seq 40); do echo $i >'$n'/$i & done; wait' &
	pid=$!
	sleep 2
	(goes_on) || {
		fsfreeze -u /export/small
		wait $pid
		small_gone
		die "the clients wait for a file system that they do not use"
	}
	kill -0 $pid || die "the frozen file system was written to"
	same "on the frozen file system" lost+found "$(ls /export/small)"
	fsfreeze -u /export/small
	wait $pid
	same "files behind it" 41 "$(ls /export/small | wc -l)"
	same "the last" 40 "$(cat /export/small/40)"
	small_gone
}

t_run "two clients at work" load_begin
t_run "the server is killed" killed
t_run "the server is stopped and started" stopped
t_run "the exports are read again" reloaded
t_run "the server is held up beyond the lease" held_up
t_run "the network is cut" cut
t_run "a full file system" full
t_run "a frozen file system" frozen
t_run "every byte is there" verified
load_end
rm -rf "$S"
server_stop
server_start "$(standard_exports)"
t_done
