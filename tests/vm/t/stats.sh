#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The client's own statistics prove how the data went, and that nothing failed or was sent twice.
. "$VMDIR/guest/lib.sh"
vm_up
D=/mnt/t/stats S=/export/$FS/stats
rm -rf $S
mkdir $S
mnt_test

work() {
	local i
	vm_prog vmio gen 3 5000000 $D/f
	mkdir $D/d
	for i in {1..20}; do echo $i >$D/d/$i; done
	ln -s "$(head -c 900 /dev/zero | tr '\0' l)" $D/link
	drop_caches
	vm_prog vmio check 3 5000000 $D/f
	ls -l $D/d >/dev/null
	readlink $D/link >/dev/null
}
used() {
	local op ops="CREATE MKDIR"
	[ "$VERS" = 3 ] || ops="OPEN CREATE"
	# Since Linux 6.19 an OPEN may bring a delegation in the place of an open (RFC 9754), which is returned instead.
	[ "$VERS" = 3 ] || [ "$(($(op_count /mnt/t CLOSE) + $(op_count /mnt/t DELEGRETURN)))" -gt 0 ] || die "nothing was closed"
	for op in READ WRITE COMMIT $ops SYMLINK READLINK LOOKUP GETATTR ACCESS; do
		[ "$(op_count /mnt/t $op)" -gt 0 ] || die "no $op was sent"
	done
	[ "$(($(op_count /mnt/t READDIR) + $(op_count /mnt/t READDIRPLUS)))" -gt 0 ]
	op_stats /mnt/t
}
chunks() {
	local c
	for c in read-chunks write-chunks reply-chunks; do
		echo "$c: $(rdma_counter /mnt/t $c)"
		[ "$(rdma_counter /mnt/t $c)" -gt 0 ] || die "no $c"
	done
	same "replies with a bad header" 0 "$(rdma_counter /mnt/t bad-replies)"
}
# The server's sizes, and the protocol, as the client sees them.
negotiated() {
	local opts
	opts=$(awk '$2 == "/mnt/t" { print $4 }' /proc/mounts)
	case $opts in *rsize=1048576,wsize=1048576*) ;; *) die "not 1 MiB: $opts" ;; esac
	case $opts in *proto=$PROTO,*) ;; *) die "not $PROTO: $opts" ;; esac
}
ipv6() {
	[ -z "${SEC:-}" ] || { echo "the server's key is that of its name"; exit 77; }
	NFS_HOST=$ADDR6 nfs_mount "$VERS" "${PROTO}6" "/export/$FS" /mnt/t2
	vm_prog vmio check 3 5000000 /mnt/t2/stats/f
	assert_clean_stats /mnt/t2
	umount /mnt/t2
}
failed_calls() {
	local bad
	# Looking up what does not exist yet is an ordinary error.
	bad=$(op_stats /mnt/t | awk '$5 != 0 && $1 != "LOOKUP"')
	[ -z "$bad" ] || die "calls failed: $bad"
}

t_run "sizes and protocol" negotiated
t_run "work" work
t_run "operations were sent" used
[ "$PROTO" != rdma ] || t_run "RDMA Reads, RDMA Writes and Reply chunks were used" chunks
t_run "IPv6" ipv6
t_run "no call failed" failed_calls
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $D
umnt_test
t_done
