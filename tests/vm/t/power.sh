#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Power cuts: the server's machine loses what its disks had not been told to flush, boots again, and everything
# that was acknowledged to this client is there; the client goes on by itself.
# CUTS says how often (default 5), SWAP=1 mounts NFSv4.2 by TCP and NFSv3 by the other transport.
# Needs tests/vm/run --peers 1 --cut-disks. The journal and the disks' logs stay in the share: power/states.py makes
# many more cuts of them.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
JOURNAL=/share/journal STOP=/run/power.stop CUTS=${CUTS:-5}
NFS_HOST=10.9.11.2
v4=$PROTO v3=tcp
[ -z "${SWAP:-}" ] || v4=tcp v3=$PROTO
PY="python3 $VMDIR/power"
VERS=4.2

folders=() control=()
for fs in ext4 xfs; do
	folders+=(v3$fs=/cut/$fs/data/v3$fs v4$fs=/cut/$fs/data/v4$fs)
	control+=(async$fs=/cut/$fs/async)
done

server() { peer_run 1 bash "$VMDIR/guest/cut_server.sh" "$@"; }
acks() { grep -c "^\[\"ack\", \"$1\"" $JOURNAL || true; }
everybody_beyond() { # FILE: each worker has more acknowledged than FILE says
	local who n
	while read -r who n; do [ "$(acks "$who")" -gt "$n" ] || return 1; done <"$1"
}
count_acks() { for w in "${folders[@]}"; do echo "${w%%=*} $(acks "${w%%=*}")"; done; }

start() {
	net_up
	mkdir -p $STATE
	: >$JOURNAL
	peer_boot 1
	server mount
	server serve
	local fs
	for fs in ext4 xfs; do
		nfs_mount 3 $v3 /cut/$fs/data /mnt/v3$fs
		nfs_mount 4.2 $v4 /cut/$fs/data /mnt/v4$fs
		nfs_mount 4.2 $v4 /cut/$fs/async /mnt/async$fs
		mkdir /mnt/v3$fs/v3$fs /mnt/v4$fs/v4$fs
	done
}
load() {
	local args=() fs
	for fs in ext4 xfs; do
		args+=(v3$fs=/mnt/v3$fs/v3$fs v4$fs=/mnt/v4$fs/v4$fs async$fs=/mnt/async$fs)
	done
	exec $PY/load.py $JOURNAL $STOP "${SEED:-1}" "${args[@]}"
}
# cut N: the machine dies, boots, and is compared with the journal before anybody is served.
cut() {
	local lost status=0
	count_acks >/run/acks
	wait_until 300 everybody_beyond /run/acks
	sleep "0.$((RANDOM % 10))"
	: >$STATE/peer.1.dead
	ask_runner 1 cut
	wait_until 20 [ ! -e /share/peer.1/cut ]
	sleep 0.5
	cp $JOURNAL /share/peer.1/journal
	peer_boot 1
	server mount
	peer_run 1 $PY/verify.py /share/journal "${folders[@]}" >/run/verify || status=1
	lost=$(peer_run 1 $PY/verify.py /share/journal --lost "${control[@]}" | tail -n 1)
	echo "$lost" >>/run/lost
	t_note "$(tail -n 1 /run/verify); async: $lost"
	server serve
	count_acks >/run/acks
	wait_until 300 everybody_beyond /run/acks || die "somebody does not go on: $(cat /run/acks) now $(count_acks)"
	[ $status = 0 ] || { cat /run/verify; return 1; }
}
# The lock that a client had before the cuts is its own.
locks() {
	local fs
	for fs in ext4 xfs; do
		wait_until 30 server locked /cut/$fs/data/v4$fs/lock || die "the lock on $fs is gone"
	done
}
# Shows that the test can see losses: the export that does not wait for the disk has lost something.
control() { grep -v ', 0 differences' /run/lost; }
finish() {
	touch $STOP
	wait_until 300 eval "! kill -0 $load" || die "it does not end"
	[ ! -s /run/load.out ] || { cat /run/load.out; return 1; }
	local args=() fs
	for fs in ext4 xfs; do args+=(v3$fs=/mnt/v3$fs/v3$fs v4$fs=/mnt/v4$fs/v4$fs); done
	$PY/verify.py $JOURNAL "${args[@]}"
}

t_run "start" start
load >/run/load.out 2>&1 &
load=$!
for ((n = 1; n <= CUTS; n++)); do t_run "power cut $n" cut; done
t_run "locks outlive power cuts" locks
t_run "an export that does not wait for the disk does lose data" control
t_run "the client has gone on by itself" finish
for m in /mnt/*; do timeout 20 umount "$m"; done
t_done
