#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What `quickstart --vm` shows: ringnfsd serves ext4 over RDMA to the standard Linux client, files are copied, and the client's
# own statistics prove which way the data went.
. "$VMDIR/guest/lib.sh"

MB=${DEMO_MB:-64}
m=/mnt/demo

copy_seconds() { # FROM TO
	local start=$EPOCHREALTIME
	cp "$1" "$2" && sync "$2"
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }'
}

echo "== the server"
vm_up
sed -n 's/^/    /p' /share/ringnfsd.log

echo "== the client: mount -t nfs -o vers=3,proto=rdma,port=$RDMAPORT,mountproto=tcp,mountport=$MOUNTPORT,nolock $ADDR:/export/ext4 $m"
nfs_mount 3 rdma /export/ext4 $m || die "the mount failed"
grep " $m " /proc/mounts | sed 's/^/    /'

echo "== $MB MiB there and back"
head -c ${MB}M /dev/urandom >/run/demo.in
w=$(copy_seconds /run/demo.in $m/demo)
drop_caches
r=$(copy_seconds $m/demo /run/demo.out)
mkdir $m/tree && for i in $(seq 100); do echo "file $i" >$m/tree/$i; done
drop_caches
n=$(ls -l $m/tree | grep -c '^-')
cmp /run/demo.in /run/demo.out || die "the data differ"
cmp /run/demo.in /export/ext4/demo || die "the data on the server's disk differ"
awk -v mb="$MB" -v w="$w" -v r="$r" -v n="$n" 'BEGIN {
	printf "    written: %.1f MB/s, read: %.1f MB/s (an emulated machine: compare, do not quote)\n", mb * 1.048576 / w, mb * 1.048576 / r
	printf "    100 small files made, %d listed; every byte compared on both sides\n", n }'

echo "== the proof: the client's /proc/self/mountstats"
mount_stats $m | grep -E 'xprt:|opts:' | sed 's/^[[:space:]]*/    /'
for c in read-chunks write-chunks reply-chunks; do
	printf '    %-13s %s\n' $c "$(rdma_counter $m $c)"
done
echo "    operation: calls, transmissions, timeouts, errors"
op_stats $m | sed 's/^/    /'
PROTO=rdma assert_clean_stats $m || die "calls were retransmitted"
echo "== and the server's own counters (kill -USR1)"
kill -USR1 "$(server_pid)"
sleep 1
sed -n 's/^.* notice: \(rdma.*\)/    \1/p' /share/ringnfsd.log
umount $m
server_stop
echo "== done: RDMA Reads, Writes and Reply chunks, no call failed or sent twice"
