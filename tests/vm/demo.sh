#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# `quickstart --vm`: ringnfsd serves ext4 over RDMA to the standard Linux client, with NFSv4.2 as the README mounts it,
# then with NFSv3. Files are copied, and the client's own statistics show which way the data went. The kernel's
# server then does the same, to compare with.
# shellcheck source=/dev/null
. "$VMDIR/guest/lib.sh"

MB=${DEMO_MB:-32}
m=/mnt/demo
declare -A seen # SERVER/VERSION/what: a figure

seconds() { # COMMAND...
	local start=$EPOCHREALTIME
	"$@" >&2 || return
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }'
}
copy() { cp "$1" "$2" && sync "$2"; }
small_files() { local i; mkdir $m/tree && for i in {1..50}; do echo "file $i" >$m/tree/"$i"; done; }
rate() { awk -v mb="$MB" -v s="$1" 'BEGIN { printf "%.1f", mb * 1.048576 / s }'; }

# work SERVER VERSION: the copies, every byte compared on both sides.
work() {
	local w r n
	w=$(seconds copy /run/demo.in $m/demo) || die "the copy failed"
	drop_caches
	r=$(seconds copy $m/demo /run/demo.out) || die "the copy back failed"
	n=$(seconds small_files) || die "small files cannot be made"
	cmp /run/demo.in /run/demo.out || die "the data differ"
	cmp /run/demo.in /export/ext4/demo || die "the data on the server's disk differ"
	[ "$(find /export/ext4/tree -type f | wc -l)" = 50 ] || die "files are missing on the server's disk"
	seen[$1/$2/write]=$(rate "$w") seen[$1/$2/read]=$(rate "$r") seen[$1/$2/small]=$n
	rm -r /run/demo.out $m/demo $m/tree
}

# The client's counters of this mount (nfsstat(8), mountstats(8)).
proof() {
	local n
	echo "    the client's own counters, from its /proc/self/mountstats:"
	n=$(rdma_counter $m sends)
	echo "      xprt: rdma, $n Sends: messages to the server, one for each call"
	echo "      $(rdma_counter $m read-chunks) Read segments: pieces of the client's memory that the server was offered to fetch"
	echo "        (data of WRITE; the server counts these as chunks, of which one may have several segments)"
	echo "      $(rdma_counter $m write-chunks) Write segments: pieces of its memory that the server was offered to put data of READ into"
	echo "      $(rdma_counter $m reply-chunks) Reply chunks: memory offered for a reply that is too long for a message, as of a long directory (used: the server's count)"
	echo "      operation: calls, sent (more than calls: again), timed out, answered by an error"
	op_stats $m | sed 's/^/        /'
	echo "        (errors of LOOKUP, ACCESS and OPEN are files that are not there yet, ENOENT: cp looks before it creates)"
	PROTO=rdma assert_clean_stats $m || die "calls were retransmitted"
}
show_counters() {
	echo "    the server's counters, after kill -USR1 (all its mounts so far):"
	server_counters | sed -n 's/^.* notice: \(rdma.*\)/      \1/p'
	echo "      (invalidations: replies that also took back the key to the client's memory, which spares it a step;"
	echo "       sq waits: replies that waited for room in a send queue; ERR_VERS, ERR_CHUNK: malformed calls)"
}

# session SERVER VERSION [OPTIONS]: mounts, works, shows.
session() {
	local options="${3:+$3,}proto=rdma,port=$RDMAPORT" path=/export/ext4
	[ "$2" = 3 ] || path=$(v4_path $path)
	echo "== $1, NFSv$2: mount -t nfs -o $options $ADDR:$path $m"
	nfs_mount "$2" rdma /export/ext4 $m || die "the mount failed"
	grep " $m " /proc/mounts | sed 's/^/    /'
	work "$1" "$2"
	[ "$1" != ringnfsd ] || { proof; show_counters; }
	umount $m
}
both_versions() { # SERVER
	session "$1" 4.2
	ports_of "$1"
	session "$1" 3 "vers=3,mountproto=tcp,mountport=$MOUNTPORT,nolock"
}

head -c "${MB}M" /dev/urandom >/run/demo.in
echo "== ringnfsd starts"
vm_up
sed -n 's/^/    /p' /share/ringnfsd.log
both_versions ringnfsd
server_stop
SERVER=knfsd KNFSD_V4=1
echo "== the kernel's server takes its place"
server_start "$(standard_exports)" || die "the kernel's server does not start"
both_versions knfsd
server_stop

echo "== $MB MiB written and synced, read back; 50 small files made (an emulated machine: compare, do not quote)"
printf '    %-10s %-8s %12s %12s %14s\n' "" "" "write MB/s" "read MB/s" "small files, s"
for v in 4.2 3; do
	for s in ringnfsd knfsd; do
		printf '    %-10s NFSv%-4s %12s %12s %14s\n' $s $v "${seen[$s/$v/write]}" "${seen[$s/$v/read]}" "${seen[$s/$v/small]}"
	done
done
echo "== done: every byte compared on both sides, no call was sent twice"
