#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# This server beside the kernel's, in one machine, on one ext4 image, by turns; prints a table for each version of NFS.
#   bench.sh       on the host: boots the machine and runs itself there (`make bench` does)
# BENCH_KERNEL, BENCH_RDMA, BENCH_VERS, BENCH_PROTOS, BENCH_ROUNDS, BENCH_MIB, BENCH_FILES and BENCH_METRICS set the
# scene. All figures are rates, of which the median of the rounds is shown; a ratio over 1 means that ringnfsd is faster. A machine
# that is emulated in software says how the two compare in cycles spent, not how fast hardware is. Neither server
# delegates; BENCH_DELEGATIONS=1 lets them, where they can. BENCH_EACH=1 shows each figure when it is there.
if [ -z "${VMDIR:-}" ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	for v in VERS PROTOS ROUNDS MIB FILES METRICS DELEGATIONS EACH OTHER; do
		name=BENCH_$v
		[ -z "${!name:-}" ] || set -- "$@" --env "$name=${!name}"
	done
	exec ${BENCH_RUN:-"$here/run"} --cpus 2 --kernel "${BENCH_KERNEL:-6.1}" --rdma "${BENCH_RDMA:-rxe}" --timeout 2400 "$@" "$here/bench.sh"
fi

VERSIONS=${BENCH_VERS:-3 4.2}
[ "$VERSIONS" = 3 ] || export KNFSD_V4=1
KNFSD_DELEGATIONS=${BENCH_DELEGATIONS:-0}
. "$VMDIR/guest/lib.sh"
ROUNDS=${BENCH_ROUNDS:-2} MIB=${BENCH_MIB:-32} FILES=${BENCH_FILES:-200}
OUT=/run/bench
metrics=${BENCH_METRICS:-seqwrite seqread randread randwrite create read stat unlink list lock}
declare -A text=(
	[seqwrite]="sequential write, 1 MiB, MiB/s" [seqread]="sequential read, 1 MiB, MiB/s"
	[randread]="random read, 4 KiB, /s" [randwrite]="random write, 4 KiB, /s"
	[create]="create 1 KiB files, /s" [read]="open, read, close, /s"
	[stat]="attributes of a file, /s" [unlink]="unlink, /s"
	[list]="list 10,000 with attributes, /s" [lock]="lock and unlock, /s")

# measure_one METRIC DIR WORK: WORK is the server's own directory in it
measure_one() {
	case $1 in
	seqwrite) vm_prog vmbench "$1" "$MIB" "$3/file" ;;
	seqread) drop_caches; vm_prog vmbench "$1" "$MIB" "$3/file" ;;
	rand*) vm_prog vmbench "$1" 800 "$3/file" ;;
	create | stat | unlink) vm_prog vmbench "$1" $FILES "$3" ;;
	read) drop_caches; vm_prog vmbench "$1" $FILES "$3" ;;
	list) drop_caches; vm_prog vmbench "$1" "$2/big" ;;
	lock) vm_prog vmbench "$1" 400 "$3/locked" ;;
	esac
}
# measure VERS PROTO SERVER METRIC: once.
measure() {
	local dir=/mnt/$3 rate
	rate=$(measure_one "$4" $dir $dir/w.$3) || die "$4 of $3, version $1, $2"
	echo "$rate" >>"$OUT/$1.$2.$3.$4"
	[ -z "${BENCH_EACH:-}" ] || echo "$1 $2 $3 $4 $rate"
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
			for server in $order; do measure "$1" "$2" "$server" "$m"; done
		done
		for server in $servers; do rm -r "/mnt/$server/w.$server"; done
	done
	for server in $servers; do umount "/mnt/$server"; done
}
median() { sort -g "$1" 2>/dev/null | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }
# ratio KNFSD RINGNFSD: files of rates, round by round; the geometric mean of the ratios.
ratio() { paste "$1" "$2" | awk '{ s += log($2 / $1) } END { printf "%.2f", exp(s / NR) }'; }
table() { # VERS
	local proto m k r
	echo "NFSv$1 on ext4, kernel $(uname -r), $RDMA; median of $ROUNDS rounds; ratio = ringnfsd / knfsd, mean of the rounds"
	printf '%-34s' ""
	for proto in $protos; do printf ' | %-28s' "${proto^^}"; done
	printf '\n%-34s' "all are rates: higher is better"
	for proto in $protos; do printf ' | %9s %9s %8s' knfsd ringnfsd ratio; done
	echo
	for m in $metrics; do
		ls $OUT/$1.*.$m >/dev/null 2>&1 || continue
		printf '%-34s' "${text[$m]}"
		for proto in $protos; do
			k=$OUT/$1.$proto.knfsd.$m r=$OUT/$1.$proto.ringnfsd.$m
			printf ' | %9.1f %9.1f %8s' "$(median "$k")" "$(median "$r")" "$(ratio "$k" "$r" 2>/dev/null)"
		done
		echo
	done
}

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
protos=${BENCH_PROTOS:-$protos}
for vers in $VERSIONS; do
	for proto in $protos; do compare "$vers" "$proto"; done
	table "$vers"
done
