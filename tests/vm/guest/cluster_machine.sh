#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# One of two machines that run members nfs1 and nfs2 of a cluster on CephFS, as doc/guide/cluster.md sets them up. systemctl of tests/net stands for
# systemd, and calls this script for its mounts (UNIT_MOUNTS).
#   cluster_machine.sh setup CEPH-CONF
#   cluster_machine.sh mount|unmount MEMBER; run MEMBER COMMAND...
set -eEuo pipefail
trap 'echo "${0##*/}: line $LINENO: failed: $BASH_COMMAND" >&2' ERR
. "$VMDIR/guest/lib.sh"
CEPH_MOUNT="conf=${CEPH:-},name=mount,fs=cephfs,noatime"
MEMBERS="nfs1 nfs2"
address_of() { echo "$LAN.10${1#nfs}"; }

write_settings() { # MEMBER
	cat >"/etc/ringnfs/$1.conf" <<-EOF
		[server]
		state_dir = /srv/cluster/ringnfs/$1
		memory_max = 256M
		threads = 2
		[tcp]
		listen = $(address_of "$1")
		[rdma]
		listen = $(address_of "$1")
		[nlm]
		statd_port = 662
		[nfs4]
		lease_time = 20
		grace_time = 40
		[cluster]
		name = lab
		instance = $1
		path = /srv/cluster/ringnfs/common
		address = $(address_of "$1")
		backend = rados
		pool = nfs
		ceph_fs = cephfs
		ceph_conf = $CEPH
	EOF
}
# The packaged scripts, and keepalived.conf of the guide for this machine; with more patience, as to start a program takes long in user-mode Linux.
keepalived_setup() {
	local script
	mkdir -p /usr/libexec/ringnfs
	for script in keepalived-check keepalived-notify; do
		sed "s,@sysconfdir@,/etc,; s,@sbindir@/ringnfsd,$(ringnfsd_path),; s,@bindir@/ringnfsctl,$BUILDDIR/ringnfsctl,; s/KILL 2/KILL 5/" "$SOURCE/systemd/$script.in" >/usr/libexec/ringnfs/$script
		chmod 755 /usr/libexec/ringnfs/$script
	done
	local own=$VM_PEER other=$((3 - VM_PEER)) first=100 second=90
	[ "$own" = 1 ] || first=90 second=100
	sed "s/eth0/lan/; s/192\.0\.2\.1$/$LAN.1$own/; s/192\.0\.2\.2$/$LAN.1$other/; s,192\.0\.2\.1\([12]\)/,$LAN.10\1/,
		s/priority 100/priority first/; s/priority 90/priority $second/; s/priority first/priority $first/; s/interval 1/interval 2/; s/timeout 3/timeout 6/; s/fall 2/fall 3/" \
		"$SOURCE/doc/samples/keepalived-ringnfs.conf" >/etc/keepalived.conf
}
setup() {
	lan_up || return 1
	python3 -B "$VMDIR/guest/set_clock.py" $LAN.1
	rpcbind -w
	mkdir -p /etc/ringnfs /srv/cluster /mnt/cephfs /mnt/nfs1 /mnt/nfs2
	mount -t ceph :/ /mnt/cephfs -o "$CEPH_MOUNT"
	(umask 077 && mkdir -p /mnt/cephfs/data /mnt/cephfs/ringnfs/{common,nfs1,nfs2})
	chmod 777 /mnt/cephfs/data
	echo "/srv/cluster/data $LAN.0/24(rw,no_root_squash,insecure,no_subtree_check,fsid=1)" >/etc/exports
	for member in $MEMBERS; do write_settings "$member"; done
	keepalived_setup
	UNIT_MOUNTS=$0 RINGNFSD=$(ringnfsd_path) RINGNFSCTL=$BUILDDIR/ringnfsctl SETTINGS=/etc/ringnfs LOG=/share/units PATH=/run/bin:$PATH
	export UNIT_MOUNTS RINGNFSD RINGNFSCTL SETTINGS LOG PATH
	mkdir -p /run/bin && cp "$SOURCE/tests/net/systemctl" /run/bin/
	setsid keepalived --dont-fork --log-console --use-file /etc/keepalived.conf --vrrp </dev/null >>/share/keepalived.log 2>&1 &
}

command=$1
shift
case $command in
setup) setup ;;
mount) mount -t ceph :/ "/mnt/$1" -o "$CEPH_MOUNT,noshare,recover_session=no" ;;
unmount) umount -l "/mnt/$1" ;;
run) # as PrivateMounts= and BindPaths=
	member=$1
	shift
	exec unshare --mount --propagation slave sh -c "mount --bind /mnt/$member /srv/cluster"' && exec "$@"' sh "$@"
	;;
esac
