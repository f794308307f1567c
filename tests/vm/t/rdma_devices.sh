#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Several RDMA devices: one that comes after the server's start is served; one that goes takes its own
# connections with it and nothing else; when it is back, and when its address is another, clients go on.
. "$VMDIR/guest/lib.sh"
[ "$RDMA" != none ] || { t_begin "RDMA devices"; t_skip "no RDMA in this configuration"; t_done; }
[ "$PROTO" = rdma ] || { t_begin "RDMA devices"; t_skip "not for TCP mounts"; t_done; }
vm_up

ADDR2=10.9.1.1
second_up() { # [ADDRESS]
	[ -e /sys/class/net/dummy1 ] || {
		ip link add dummy1 type dummy
		ip link set dummy1 mtu 4500 up
	}
	ip addr flush dev dummy1 scope global
	ip addr add "${1:-$ADDR2}"/24 dev dummy1
	[ -e "/sys/class/infiniband/${RDMA}1" ] || rdma link add "${RDMA}1" type "$RDMA" netdev dummy1
}

hotplug() {
	second_up
	mnt_test
	NFS_HOST=$ADDR2 nfs_mount 3 rdma "/export/$FS" /mnt/2
	head -c 300000 /dev/urandom >/mnt/t/by-first
	cmp /mnt/t/by-first /mnt/2/by-first
	head -c 300000 /dev/urandom >/mnt/2/by-second
	cmp /mnt/t/by-second /mnt/2/by-second
}

removal() {
	local writer
	(for i in $(seq 40); do head -c 200000 /dev/urandom >"/mnt/t/during.$i" || exit 1; done) &
	writer=$!
	rdma link delete "${RDMA}1"
	wait $writer || die "the other device's client failed"
	server_alive || die "the daemon died"
	[ "$(ls /mnt/t/during.* | wc -l)" = 40 ]
	assert_clean_stats /mnt/t
}

comes_back() {
	second_up
	# The client notices on its next call, and connects again.
	timeout 120 cat /mnt/2/by-second >/run/second || die "the client does not come back"
	cmp /run/second /mnt/t/by-second
	umount /mnt/2
}

new_address() {
	second_up 10.9.2.1
	NFS_HOST=10.9.2.1 nfs_mount 3 rdma "/export/$FS" /mnt/3
	cmp /mnt/3/by-first /mnt/t/by-first
	umount /mnt/3
}

t_run "a device added later is served" hotplug
t_run "a device removed while others work" removal
t_run "its clients go on when it is back" comes_back
t_run "a new address" new_address
rm -f /mnt/t/by-* /mnt/t/during.*
umnt_test
t_done
