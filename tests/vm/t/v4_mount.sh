#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Ways to mount: what is agreed on when nothing is said, several connections, both transports, many times;
# and what the server still holds after the last umount.
. "$VMDIR/guest/lib.sh"
if [ "$VERS" = 3 ]; then
	t_begin "mounts of NFSv4"
	t_skip "this is NFSv3"
	t_done
fi
vm_up
M=/mnt/m
mkdir -p $M "/export/$FS/mount"
where="$ADDR:$(v4_path "/export/$FS")"
option() { awk -v m=$M '$2 == m { print $4 }' /proc/mounts | tr , '\n' | sed -n "s/^$1=//p" | head -n 1; }
port() { case $1 in rdma) echo "$RDMAPORT" ;; *) echo "$NFSPORT" ;; esac; }
use() {
	echo "$1" >$M/mount/file
	same "data" "$1" "$(cat "/export/$FS/mount/file")"
}

negotiated() {
	mount -t nfs4 -o "proto=$PROTO,port=$(port "$PROTO")" "$where" $M
	same "version" 4.2 "$(option vers)"
	use negotiated
	umount $M
	mount -t nfs -o "proto=$PROTO,port=$(port "$PROTO")" "$where" $M
	same "version by mount -t nfs" 4.2 "$(option vers)"
	umount $M
}
asked() {
	mount -t nfs4 -o "vers=$VERS,proto=$PROTO,port=$(port "$PROTO")" "$where" $M
	same "version" "$VERS" "$(option vers)"
	same "transport" "$PROTO" "$(option proto)"
	same "rsize" 1048576 "$(option rsize)"
	same "wsize" 1048576 "$(option wsize)"
	same "name length" 255 "$(option namlen)"
	use asked
	umount $M
}
transports() {
	nfs_mount "$VERS" tcp "/export/$FS" $M
	use tcp
	if [ "$PROTO" = rdma ]; then
		nfs_mount "$VERS" rdma "/export/$FS" /mnt/m2
		same "data" tcp "$(cat /mnt/m2/mount/file)"
		umount /mnt/m2
	fi
	umount $M
	NFS_HOST=$ADDR6 nfs_mount "$VERS" "${PROTO}6" "/export/$FS" $M
	use ipv6
	umount $M
}
# A mount that meets the client of the one before, which goes in its own time, has that one's connections.
no_client() { ! grep -q ^v4 /proc/fs/nfsfs/servers; }
several_connections() {
	local c proto=$PROTO
	# Linux 6.1 takes nconnect= with NFSv4 for TCP only, 6.12 for RDMA, too.
	case $PROTO/$KERNEL in rdma/6.1) proto=tcp ;; esac
	t_note "by $proto"
	wait_until 30 no_client
	nfs_mount "$VERS" "$proto" "/export/$FS" $M nconnect=4
	for c in 1 2 3 4 5 6 7 8; do vm_prog vmio gen $c 300000 $M/mount/n$c & done
	wait
	drop_caches
	for c in 1 2 3 4 5 6 7 8; do vm_prog vmio check $c 300000 $M/mount/n$c; done
	[ "$(mount_stats $M | grep -c xprt:)" = 4 ] || die "$(mount_stats $M | grep -c xprt:) connections"
	[ "$(mount_stats $M | awk '$1 == "xprt:" && $9 + $10 > 2 { n++ } END { print n + 0 }')" -ge 2 ] ||
		die "the others are not used"
	assert_clean_stats $M
	rm $M/mount/n*
	umount $M
}
# Two mounts that share nothing but the client: what one locks the other cannot.
apart() {
	nfs_mount "$VERS" "$PROTO" "/export/$FS" $M nosharecache
	nfs_mount "$VERS" "$PROTO" "/export/$FS" /mnt/m2 nosharecache
	use apart
	vm_prog vmfile start a $M/mount/file rw
	vm_prog vmfile start b /mnt/m2/mount/file rw
	vm_prog vmfile do a lock posix w 0 10
	fails_with busy vm_prog vmfile do b lock posix r 0 1
	vm_prog vmfile do a lock posix u 0 10
	vm_prog vmfile do b lock posix w 0 1
	vm_prog vmfile stop a
	vm_prog vmfile stop b
	umount $M /mnt/m2
}
many_times() {
	local i
	for i in 1 2 3 4 5 6 7 8; do
		nfs_mount "$VERS" "$PROTO" "/export/$FS" $M
		vm_prog vmfile start c $M/mount/file rwc
		vm_prog vmfile do c lock posix w 0 10
		vm_prog vmfile do c write 0 "round$i"
		vm_prog vmfile stop c
		umount $M
		same "data" "round$i" "$(head -c 6 "/export/$FS/mount/file")"
	done
}
refused() {
	fails_with "" mount -t nfs4 -o "vers=4.7,proto=$PROTO,port=$(port "$PROTO")" "$where" $M
	fails_with "" nfs_mount "$VERS" "$PROTO" "/export/$FS/none" $M
	same "mounted" "" "$(grep " $M " /proc/mounts)"
	nfs_mount "$VERS" "$PROTO" "/export/$FS" $M ro
	fails_with "Read-only" touch $M/mount/file
	umount $M
}
# held: what the server says it holds of NFSv4's.
held() {
	server_counters | grep -a 'held:' | grep -oE 'nfs4_(clients|sessions|slots|owners|opens|locks)=[0-9]+' |
		sed 's/nfs4_//' | paste -sd ' '
}
number() { sed -nE "s/.*\b$1=([0-9]+).*/\1/p" <<<"$2"; }
nothing_left() {
	[ "$SERVER" = ringnfsd ] || { echo "ringnfsd tells what it holds"; exit 77; }
	local before during w
	# State of earlier 4.0 mounts may be left until their lease ends: 4.0 cannot destroy a client.
	before=$(held)
	nfs_mount "$VERS" "$PROTO" "/export/$FS" $M
	vm_prog vmfile start h $M/mount/file rw
	vm_prog vmfile do h lock posix w 0 10
	during=$(held)
	same "opens and locks" "$(($(number opens "$before") + 1)) $(($(number locks "$before") + 1))" \
		"$(number opens "$during") $(number locks "$during")"
	vm_prog vmfile stop h
	umount $M
	for w in opens locks sessions; do
		if [ $w/$VERS = sessions/4.0 ]; then continue; fi
		wait_until 60 eval "[ \$(number $w \"\$(held)\") = $(number $w "$before") ]" || die "before: $before, after: $(held)"
	done
	t_note "$(held)"
}

# called_back: the client of 4.0 answers the probe of the address that it gave.
probes() { grep -ac "the probe to client .*: answered" /share/ringnfsd.log || true; }
more_probes() { [ "$(probes)" -gt "$1" ]; }
called_back() {
	[ "$SERVER/$VERS" = ringnfsd/4.0 ] || { echo "ringnfsd calls clients of 4.0 at an address of theirs"; exit 77; }
	local host before
	server_with "[server]
log_level = debug"
	for host in "$ADDR" "$ADDR6"; do
		wait_until 30 no_client
		before=$(probes)
		NFS_HOST=$host nfs_mount 4.0 "$([ "$host" = "$ADDR6" ] && echo tcp6 || echo tcp)" "/export/$FS" $M
		wait_until 20 more_probes "$before" || die "no answer to a callback from $host"
		umount $M
	done
	server_with ""
}

t_run "nothing said" negotiated
t_run "this version" asked
t_run "transports" transports
t_run "four connections" several_connections
t_run "two mounts apart" apart
t_run "eight mounts one after the other" many_times
t_run "what is refused" refused
t_run "what the server holds" nothing_left
t_run "a call to the client" called_back
umount /mnt/m2 $M 2>/dev/null
rm -rf "/export/$FS/mount"
t_done
