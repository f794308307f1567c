#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The network is cut in the middle of work: in the full run for two minutes (CUT seconds) with the usual lease, else for 40 s. The lease is
# shorter than that, and yet nothing is lost, since nobody else wanted it. All versions (or VERSIONS) are
# at work at once, each with a mount of its own at the client that is cut off.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
CUT=${CUT:-${FULL:+120}}
CUT=${CUT:-40}
VERSIONS=${VERSIONS:-3 4.0 4.1 4.2}
vm_up
[ "$CUT" -ge 120 ] || server_with "[nfs4]
lease_time = $((CUT / 2))"
S=/export/$FS/cut
rm -rf "$S" /run/cut.*
mkdir "$S"
SIZE=$((8 << 20))

# One file after the other, so that there is always one under way, until the network is back.
writer() { # VERSION
	local n=0
	until [ -e /run/cut.healed ]; do
		n=$((n + 1))
		on two vm_prog vmio gen $n $SIZE "/mnt/two.$1/cut/$1.$n" || return
	done
	echo $n >"/run/cut.files.$1"
}
# under_way VERSION: its second file is being written.
under_way() { [ "$(stat -c %s "$S/$1.2" 2>/dev/null || echo 0)" -gt 2000000 ]; }

ended() { # PID...
	local pid
	for pid; do ! kill -0 "$pid" 2>/dev/null || return 1; done
}

network_cut() {
	local v pids=() pid start
	clients_up
	client_mount one 4.2 "/export/$FS"
	for v in $VERSIONS; do
		client_mount two "$v" "/export/$FS" "" "/mnt/two.$v"
		file two "c.$v" start "/mnt/two.$v/cut/c.$v" rwc
		[ "$v" = 3 ] || file two "c.$v" lock posix w 0 10
	done
	for v in $VERSIONS; do
		writer "$v" &
		pids+=($!)
	done
	for v in $VERSIONS; do wait_until 120 under_way "$v" || die "v$v does not get on"; done
	net_cut two
	sleep "$CUT"
	for pid in "${pids[@]}"; do kill -0 "$pid" || die "a writer did not wait"; done
	touch /run/cut.healed
	net_heal two
	start=$EPOCHREALTIME
	wait_until 300 ended "${pids[@]}" || {
		"$BUILDDIR/ringnfsctl" calls 2>&1 | head -n 4
		"$BUILDDIR/ringnfsctl" connections 2>&1 | head -n 5
		# The queue pairs of connection requests, which are in RTS.
		rdma resource show qp | grep GSI
		on two rdma resource show qp | grep GSI
		die "after 300 s a client does not go on"
	}
	wait "${pids[@]}" # for the last one's status; the others' show in what they leave
	t_note "cut for $CUT s, done $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s after it"
	on two drop_caches
}
# Checks the files and locks of VERS after the cut.
survived() {
	local n
	for n in $(seq "$(cat "/run/cut.files.$VERS")"); do
		on two vm_prog vmio check "$n" $SIZE "/mnt/two.$VERS/cut/$VERS.$n"
		vm_prog vmio check "$n" $SIZE "$S/$VERS.$n"
	done
	file two "c.$VERS" write 0 still
	file two "c.$VERS" sync
	same "data" still "$(cat "$S/c.$VERS")"
	if [ "$VERS" != 3 ]; then
		file one "c.$VERS" start "/mnt/one/cut/c.$VERS" rw
		refused busy one "c.$VERS" lock posix w 0 10
		file one "c.$VERS" stop
	fi
	file two "c.$VERS" stop
}
# connections_two: how many client two has at the server.
connections_two() { "$BUILDDIR/ringnfsctl" connections | grep -c '^10\.9\.12\.2.* rdma '; }
# The server's answer is lost, and its end of the connection gives up, while the client has nothing to send. When the network is back it
# is told: by itself it would look after ten minutes, as it is mounted.
answer_lost() {
	local pid n
	client_mount two 3 "/export/$FS" nosharecache,timeo=6000 /mnt/two.late
	fsfreeze -f "/export/$FS"
	on two sh -c 'echo late >/mnt/two.late/cut/late' &
	pid=$!
	wait_until 30 eval "\"$BUILDDIR/ringnfsctl\" calls | grep -q 10.9.12.2" || die "no call"
	n=$(connections_two)
	net_cut two
	fsfreeze -u "/export/$FS"
	wait_until 120 eval '[ "$(connections_two)" -lt "$n" ]' || die "the connection does not end"
	net_heal two
	wait_until 120 ended $pid || die "the client waits"
	wait $pid
	on two umount /mnt/two.late
	same "data" late "$(cat "$S/late")"
}
t_run "the network is cut" network_cut
for VERS in $VERSIONS; do
	t_run "all is there after the network was cut" survived
done
# Over TCP and iWARP the answer is sent until it arrives.
[ "$RDMA/$PROTO/$PEERS/$SERVER" != rxe/rdma/2/ringnfsd ] || t_run "an answer is lost" answer_lost
# A test that failed may have left files open.
for c in one two; do on $c sh -c 'pidof vmfile vmio | xargs -r kill -9'; done
for v in $VERSIONS; do on two timeout 60 umount "/mnt/two.$v"; done
client_umount one
server_with ""
rm -rf "$S"
t_done
