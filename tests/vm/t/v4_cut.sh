#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The network is cut for two minutes (CUT seconds) in the middle of work, with the usual lease: it is
# shorter than that, and yet nothing is lost, since nobody else wanted it.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
CUT=${CUT:-120}
vm_up
S=/export/$FS/cut
rm -rf "$S"
mkdir "$S"
SIZE=$((48 << 20))

network_cut() {
	local pid start
	clients_mount
	file two c start /mnt/two/cut/c rwc
	[ "$VERS" = 3 ] || file two c lock posix w 0 10
	on two vm_prog vmio gen 41 $SIZE /mnt/two/cut/flight &
	pid=$!
	wait_until 60 eval "[ \"\$(stat -c %s $S/flight 2>/dev/null || echo 0)\" -gt 4000000 ]"
	net_cut two
	sleep "$CUT"
	kill -0 $pid || die "the writer was through, or did not wait"
	net_heal two
	start=$EPOCHREALTIME
	wait $pid
	t_note "cut for $CUT s, done $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s after it"
	on two drop_caches
	on two vm_prog vmio check 41 $SIZE /mnt/two/cut/flight
	vm_prog vmio check 41 $SIZE "$S/flight"
	file two c write 0 still
	file two c sync
	same "data" still "$(cat "$S/c")"
	if [ "$VERS" != 3 ]; then
		file one c start /mnt/one/cut/c rw
		refused busy one c lock posix w 0 10
		file one c stop
	fi
	file two c stop
	clients_umount
}
t_run "the network is cut" network_cut
rm -rf "$S"
t_done
