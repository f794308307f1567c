#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the virtual machine: the kernel's server, this one, and mountfloor, by turns, on one ext4 image, with Linux's client (NFSv3 over RDMA).
# Each measurement is a line "floor ROUND SERVER METRIC RATE". `vm-floor` runs it, and sets BENCH_ROUNDS, BENCH_FILES, BENCH_IOS and BENCH_MIB.
. "$VMDIR/guest/lib.sh"
ROUNDS=${BENCH_ROUNDS:-5} FILES=${BENCH_FILES:-500} IOS=${BENCH_IOS:-2000} MIB=${BENCH_MIB:-16}
RN_PORT=12049 RN_RDMA_PORT=22049 FLOOR_PORT=25049

# mount_one SERVER: MOUNT of the floor is ringnfsd's.
mount_one() {
	case $1 in
	floor) ports_of ringnfsd; RDMAPORT=$FLOOR_PORT ;;
	*) ports_of "$1" ;;
	esac
	SERVER=$1 nfs_mount 3 rdma /export/ext4 "/mnt/$1" nosharecache,actimeo=60,noacl
}
# Files are made on the server's side, since the floor makes none.
make_files() { # DIR
	mkdir "$1"
	vm_prog vmbench create "$FILES" "$1" >/dev/null
	dd if=/dev/urandom of="$1/file" bs=1M count="$MIB" status=none
}
measure() { # SERVER METRIC DIR
	case $2 in
	randread) vm_prog vmbench randread "$IOS" "$3/file" ;;
	read) drop_caches; vm_prog vmbench read "$FILES" "$3" ;;
	*) vm_prog vmbench "$2" "$FILES" "$3" ;;
	esac
}

net_up || die "no RDMA device"
mkdir -p $STATE
exports="/export/ext4 *(rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1)"
knfsd_start "$exports"
ringnfsd_start "$exports"
ulimit -n 65536
"$BUILDDIR/tests/bench/mountfloor" "$ADDR" $FLOOR_PORT /export/ext4 >$STATE/floor.log 2>&1 &
floor=$!
until grep -q ready $STATE/floor.log; do kill -0 $floor || die "mountfloor: $(cat $STATE/floor.log)"; sleep 0.1; done
servers="knfsd ringnfsd floor"
for server in $servers; do mount_one $server || die "$server: no mount: $(cat $STATE/floor.log)"; done
for ((round = 1; round <= ROUNDS; round++)); do
	for server in $servers; do make_files "/export/ext4/$server.$round"; done
	for metric in randread stat read unlink; do
		for server in $servers; do
			rate=$(measure "$server" $metric "/mnt/$server/$server.$round") || die "$metric of $server: $(cat $STATE/floor.log)"
			echo "floor $round $server $metric $rate"
		done
	done
	servers=$(echo "$servers" | awk '{ print $2, $3, $1 }')
done
for server in $servers; do umount "/mnt/$server"; done
kill $floor
