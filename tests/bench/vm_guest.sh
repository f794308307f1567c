#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the virtual machine: this server beside the kernel's, on one ext4 image, by turns. Each measurement is a line
# "rate VERSION PROTOCOL ROUND SERVER METRIC VALUE"; higher is better. `vm-rdma` runs it, and sets BENCH_VERS, BENCH_PROTOS,
# BENCH_ROUNDS, BENCH_MIB, BENCH_FILES, BENCH_IOS (random reads or writes, locks) and BENCH_METRICS. Neither server delegates; BENCH_DELEGATIONS=1 lets both.
# BENCH_COSTS=1 adds lines "cost VERSION PROTOCOL ROUND SERVER METRIC" with the whole machine's context switches, the image's writes
# and flushes, and the client's calls with the sum of their round-trip times in ms, then how many there were of each.
VERSIONS=${BENCH_VERS:-3 4.2}
[ "$VERSIONS" = 3 ] || export KNFSD_V4=1
KNFSD_DELEGATIONS=${BENCH_DELEGATIONS:-0}
. "$VMDIR/guest/lib.sh"
ROUNDS=${BENCH_ROUNDS:-5} MIB=${BENCH_MIB:-32} FILES=${BENCH_FILES:-200} IOS=${BENCH_IOS:-800}
metrics=${BENCH_METRICS:-seqwrite seqread randread randwrite create read stat unlink list lock}

# measure_one METRIC DIR WORK: WORK is the server's own directory in it
measure_one() {
	case $1 in
	seqwrite) vm_prog vmbench "$1" "$MIB" "$3/file" ;;
	seqread) drop_caches; vm_prog vmbench "$1" "$MIB" "$3/file" ;;
	rand*)
		# seqread has dropped the server's cache after the first server's file was in it.
		cat "/export/ext4/${3##*/}/file" >/dev/null
		vm_prog vmbench "$1" "$IOS" "$3/file"
		;;
	create | stat | unlink) vm_prog vmbench "$1" $FILES "$3" ;;
	read) drop_caches; vm_prog vmbench "$1" $FILES "$3" ;;
	list) drop_caches; vm_prog vmbench "$1" "$2/big" ;;
	lock) vm_prog vmbench "$1" "$IOS" "$3/locked" ;;
	esac
}
# costs_so_far DIR: lines NAME NUMBER, counted since the machine started and DIR was mounted.
costs_so_far() {
	awk '/^ctxt/ { print "switches", $2 }' /proc/stat
	awk '{ print "writes", $5; print "flushes", $16 }' "/sys/class/block/$(basename "$(findmnt -no SOURCE /export/ext4)")/stat"
	awk -v dir="$1" '/^device/ { ours = $5 == dir }
		ours && NF == 10 && /^\t/ { n += $2; ms += $8; of[$1] = $2 }
		END { print "calls", n; print "ms", ms; for (op in of) print op, of[op] }' /proc/self/mountstats
}
# measure VERS PROTO ROUND SERVER METRIC: once.
measure() {
	local dir=/mnt/$4 rate before after
	before=$(costs_so_far $dir)
	rate=$(measure_one "$5" $dir $dir/w.$4) || die "$5 of $4, version $1, $2"
	after=$(costs_so_far $dir)
	echo "rate $* $rate"
	[ -z "${BENCH_COSTS:-}" ] || printf '%s\n' "$before" "$after" | awk -v what="$*" '
		$1 in first && $2 > first[$1] { said = said " " $1 " " $2 - first[$1] }
		{ first[$1] = $2 }
		END { print "cost " what said }'
}
mount_server() { # VERS PROTO SERVER
	ports_of "$3"
	# On a slow machine attributes would expire while a directory is listed, and only for the slower server.
	SERVER=$3 nfs_mount "$1" "$2" /export/ext4 "/mnt/$3" nosharecache,actimeo=60
}
# compare VERS PROTO: metric by metric one after the other, and each is first every other time.
compare() {
	local server round m order
	for server in $servers; do mount_server "$1" "$2" "$server" || die "$server: no mount of version $1 by $2"; done
	for ((round = 1; round <= ROUNDS; round++)); do
		order=$servers
		[ $((round % 2)) = 1 ] || order=$(echo "$servers" | awk '{ for (i = NF; i; i--) print $i }')
		for server in $servers; do mkdir -p "/mnt/$server/w.$server"; done
		for m in $metrics; do
			# NFSv3's locks are another protocol, which is not mounted here.
			[ "$m" != lock ] || [ "$1" != 3 ] || continue
			for server in $order; do measure "$1" "$2" "$round" "$server" "$m"; done
		done
		for server in $servers; do rm -r "/mnt/$server/w.$server"; done
	done
	for server in $servers; do umount "/mnt/$server"; done
}

net_up || die "no RDMA device"
mkdir -p $STATE /export/ext4/big
vm_prog dirstorm fill 10000 /export/ext4/big
exports="/export/ext4 *(rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1)"
RN_PORT=12049 RN_RDMA_PORT=22049
servers="knfsd ringnfsd"
knfsd_start "$exports"
delegations=no
[ "$KNFSD_DELEGATIONS" = 0 ] || delegations=yes
ringnfsd_start "$exports" "[nfs4]
delegations = $delegations"
for vers in $VERSIONS; do
	for proto in ${BENCH_PROTOS:-rdma}; do compare "$vers" "$proto"; done
done
