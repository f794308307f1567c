#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The server is stopped and started, as systemctl does, while a client writes: it comes back by itself. Told is how long that takes,
# which is the client's choice: over RDMA it tries again at times of its own, and nobody keeps the port open meanwhile.
. "$VMDIR/guest/lib.sh"
vm_up
if [ "$SERVER" != ringnfsd ]; then
	t_begin "reconnect"
	t_skip "the kernel's server is not restarted like this"
	t_done
fi
server_anew
mnt_test
D=/mnt/t/reconnect BEATS=/run/beats
mkdir -p $D

# The first call that was answered after that time.
beat_after() { awk -v t="$1" '$1 > t { print; exit }' $BEATS; }
has_beat_after() { [ -n "$(beat_after "$1")" ]; }
between() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.1f", (b > a) ? b - a : 0 }'; }

start_beating() {
	: >$D/file
	"$VMDIR/guest/beat.py" $D/file $BEATS &
	beater=$!
	wait_until 30 test -s $BEATS
}
# What was answered goes on to be so after a moment.
goes_on() {
	kill -0 $beater || die "the client's program has failed"
	wait_until 30 has_beat_after "$EPOCHREALTIME"
}

away_for() { # SECONDS
	local pid stopped gone ready next
	start_beating
	pid=$(server_pid) stopped=$EPOCHREALTIME
	kill "$pid"
	wait_until 60 eval "! kill -0 $pid"
	gone=$EPOCHREALTIME
	sleep "$1"
	ringnfsd_launch
	ready=$EPOCHREALTIME
	wait_until 180 has_beat_after "$gone" || die "no call was answered for 180 s"
	next=$(beat_after "$gone")
	goes_on
	kill $beater
	t_note "stopped in $(between "$stopped" "$gone") s, ready $(between "$gone" "$ready") s later; next answer $(between "$ready" "$next") s after that," \
		"$(between "$stopped" "$next") s after the stop"
	same "data" "$(printf 'beat%.0s' {1..1024})" "$(cat /export/"$FS"/reconnect/file)"
}

for pause in 0 2 6 15; do
	t_run "the server is away for $pause s" away_for $pause
done
rm -rf $D
umnt_test
t_done
