#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# This server beside the kernel's, in one machine, on one ext4 image, by turns; prints a table.
#   bench.sh       on the host: boots the machine and runs itself there (`make bench` does)
# BENCH_KERNEL, BENCH_RDMA, BENCH_ROUNDS, BENCH_MIB set the scene. All figures are rates, of which the
# median of the rounds is shown; a ratio over 1 means that ringnfsd is faster. A machine that
# is emulated in software says how the two compare in cycles spent, not how fast hardware is.
if [ -z "${VMDIR:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	exec "$here/run" --kernel "${BENCH_KERNEL:-6.1}" --rdma "${BENCH_RDMA:-rxe}" --timeout 1500 \
		--env BENCH_ROUNDS="${BENCH_ROUNDS:-3}" --env BENCH_MIB="${BENCH_MIB:-32}" \
		--env BENCH_OTHER="${BENCH_OTHER:-ringnfsd}" "$here/bench.sh"
fi

. "$VMDIR/guest/lib.sh"
ROUNDS=${BENCH_ROUNDS:-3} MIB=${BENCH_MIB:-32}
OUT=/run/bench
metrics="seqwrite seqread randread randwrite create stat unlink list"
declare -A text=(
	[seqwrite]="sequential write, 1 MiB, MiB/s" [seqread]="sequential read, 1 MiB, MiB/s"
	[randread]="random read, 4 KiB, /s" [randwrite]="random write, 4 KiB, /s"
	[create]="create 1 KiB files, /s" [stat]="open and stat, /s" [unlink]="unlink, /s"
	[list]="list 10,000 with attributes, /s")

put() { echo "$2" >>"$OUT/$1" || exit 1; }
# measure PROTO SERVER: each metric once.
measure() {
	local dir=/mnt/$2 pre=$1.$2 a b c
	mkdir -p $dir/w.$2
	put $pre.seqwrite "$(vm_prog vmbench seqwrite "$MIB" $dir/w.$2/file)"
	drop_caches
	put $pre.seqread "$(vm_prog vmbench seqread "$MIB" $dir/w.$2/file)"
	put $pre.randread "$(vm_prog vmbench randread 800 $dir/w.$2/file)"
	put $pre.randwrite "$(vm_prog vmbench randwrite 800 $dir/w.$2/file)"
	read -r a b c <<<"$(vm_prog vmbench small 200 $dir/w.$2)"
	put $pre.create "$a"
	put $pre.stat "$b"
	put $pre.unlink "$c"
	drop_caches
	put $pre.list "$(vm_prog vmbench list $dir/big)"
	rm -r $dir/w.$2
}
mount_server() {
	ports_of "$2"
	nfs_mount 3 "$1" /export/ext4 /mnt/$2 nosharecache
}
median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

net_up || die "no RDMA device"
mkdir -p $STATE $OUT /export/ext4/big
vm_prog dirstorm fill 10000 /export/ext4/big
exports="/export/ext4 *(rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1)"
RN_PORT=12049 RN_RDMA_PORT=22049
knfsd_start "$exports"
servers="knfsd ringnfsd"
if [ "${BENCH_OTHER:-ringnfsd}" = ringnfsd ]; then
	ringnfsd_start "$exports"
else
	servers=knfsd # to try the benchmark itself
fi
protos=tcp
[ "$RDMA" = none ] || protos="rdma tcp"
for proto in $protos; do
	for server in $servers; do mount_server $proto $server || die "$server: no mount by $proto"; done
	for ((round = 1; round <= ROUNDS; round++)); do
		# By turns, and each is first every other time.
		order=$servers
		[ $((round % 2)) = 1 ] || order=$(echo $servers | awk '{ for (i = NF; i; i--) print $i }')
		for server in $order; do measure $proto $server; done
	done
	for server in $servers; do umount /mnt/$server; done
done

echo "NFSv3 on ext4, kernel $(uname -r), $RDMA; median of $ROUNDS rounds; ratio = ringnfsd / knfsd"
printf '%-34s' ""
for proto in $protos; do printf ' | %-28s' "${proto^^}"; done
printf '\n%-34s' "all are rates: higher is better"
for proto in $protos; do printf ' | %9s %9s %8s' knfsd ringnfsd ratio; done
echo
for m in $metrics; do
	printf '%-34s' "${text[$m]}"
	for proto in $protos; do
		k=$(median $OUT/$proto.knfsd.$m)
		r=$(median $OUT/$proto.ringnfsd.$m 2>/dev/null)
		awk -v k="$k" -v r="${r:-0}" 'BEGIN { printf " | %9.1f %9.1f %8.2f", k, r, r / k }'
	done
	echo
done
