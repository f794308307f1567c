#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Two RDMA devices, one of which is unplugged and comes back; IPv6; idle connections; polling of
# completions. Has a server of its own, with an idle limit of seconds.
. "$VMDIR/guest/lib.sh"
if [ "$RDMA" = none ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "RDMA devices"
	t_skip "needs ringnfsd and an RDMA device"
	t_done
fi
ulimit -l unlimited
net_up || die "no network or RDMA device"
mkdir -p $STATE
[ ! -e $STATE/kind ] || server_stop
ADDR2=10.9.1.1
ip link add dummy1 type dummy
ip link set dummy1 mtu 4500 up
ip addr add $ADDR2/24 dev dummy1
rdma link add "${RDMA}1" type "$RDMA" netdev dummy1 || die "no second device"
ringnfsd_start "$(standard_exports)" "idle_timeout = 4s
poll_usec = 40"
rm -rf /export/"$FS"/dev
mkdir /export/"$FS"/dev

mount_on() { # ADDRESS DIR
	mkdir -p "$2"
	timeout 60 mount -t nfs -o "vers=3,proto=rdma,port=$RDMAPORT,mountproto=tcp,mountport=$MOUNTPORT,nolock${3:+,$3}" \
		"$1:/export/$FS" "$2"
}
work() { # DIR SEED
	timeout 60 "$VMPROG/vmio" gen "$2" 700000 "$1/dev/f$2"
	drop_caches
	timeout 60 "$VMPROG/vmio" check "$2" 700000 "$1/dev/f$2"
}
# The server's queue pairs; the resource tracker names the thread that made them.
qps() { rdma resource show qp | grep -c "link ${1:-}.*type RC .*comm event-"; }

both_devices() {
	mount_on $ADDR /mnt/one
	mount_on $ADDR2 /mnt/two soft,timeo=50,retrans=1
	work /mnt/one 1
	work /mnt/two 2
}
t_run "two devices" both_devices

over_ipv6() {
	NFS_HOST=$ADDR6 nfs_mount 3 rdma6 "/export/$FS" /mnt/six
	work /mnt/six 3
	umount /mnt/six
}
t_run "IPv6" over_ipv6

unplug() {
	work /mnt/one 4 &
	local other=$!
	# Something is under way on the one that goes; what becomes of it is its client's affair.
	(for ((i = 30; i < 60; i++)); do timeout 5 dd if=/dev/zero of=/mnt/two/dev/f$i bs=64k count=20; done) \
		>/dev/null 2>&1 &
	wait_until 20 eval '[ "$(qps "${RDMA}1")" -ge 1 ]' || die "no connection on it"
	# Drivers without a way to take a device from its users wait until the server has noticed.
	rdma link delete "${RDMA}1" &
	local delete=$!
	wait_until 40 eval "! kill -0 $delete" || die "the device is still held"
	wait $other
	server_alive
	work /mnt/one 5
}
t_run "a device is unplugged, the other goes on" unplug

plug() {
	rdma link add "${RDMA}1" type "$RDMA" netdev dummy1
	umount -f -l /mnt/two
	wait_until 40 mount_on $ADDR2 /mnt/two || die "no mount on the new device"
	work /mnt/two 6
	umount /mnt/two
}
t_run "it is plugged in again" plug

new_address() {
	ip addr del $ADDR2/24 dev dummy1
	ip addr add 10.9.2.1/24 dev dummy1
	wait_until 40 mount_on 10.9.2.1 /mnt/two || die "no mount on the new address"
	work /mnt/two 7
	umount /mnt/two
}
t_run "its address changes" new_address

reaped() {
	[ "$(qps)" -ge 1 ] || work /mnt/one 8
	wait_until 20 eval '[ "$(qps)" -eq 0 ]' || die "$(qps) queue pairs are left"
	work /mnt/one 9
}
t_run "idle connections are reaped, and the client comes back" reaped

stopped() {
	umount /mnt/one
	server_stop
	! grep -E 'Sanitizer|runtime error' /share/ringnfsd.log
}
t_run "the server stops" stopped
t_done
