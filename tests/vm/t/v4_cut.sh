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
SIZE=$((8 << 20))

# One file after the other, so that there is always one under way, until the network is back.
writer() {
	local n=0
	until [ -e /run/cut.healed ]; do
		n=$((n + 1))
		on two vm_prog vmio gen $n $SIZE /mnt/two/cut/flight.$n || return
	done
	echo $n >/run/cut.files
}

network_cut() {
	local pid start n
	clients_mount
	rm -f /run/cut.healed
	file two c start /mnt/two/cut/c rwc
	[ "$VERS" = 3 ] || file two c lock posix w 0 10
	writer &
	pid=$!
	wait_until 60 eval "[ \"\$(stat -c %s $S/flight.2 2>/dev/null || echo 0)\" -gt 4000000 ]"
	net_cut two
	sleep "$CUT"
	kill -0 $pid || die "the writer did not wait"
	touch /run/cut.healed
	net_heal two
	start=$EPOCHREALTIME
	wait $pid
	t_note "cut for $CUT s, done $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s after it"
	on two drop_caches
	for n in $(seq "$(cat /run/cut.files)"); do
		on two vm_prog vmio check $n $SIZE /mnt/two/cut/flight.$n
		vm_prog vmio check $n $SIZE "$S/flight.$n"
	done
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
