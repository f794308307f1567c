#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the virtual machine: what Linux's client does with and without delegations, COPY and CLONE, on this server and on the kernel's.
# Each measurement is a line "save ROUND SERVER WAY JOB times=N us=N bytes=N OPERATION=N...": all for so many files or times. Bytes
# are those of all calls and replies.
# SAVES_VERS, SAVES_PROTO, SAVES_ROUNDS, SAVES_N (files or times), SAVES_MIB, SAVES_JOBS and SAVEJOB (the program) come from `saves`.
: "${SAVES_VERS:=4.2}" "${SAVES_PROTO:=tcp}" "${SAVES_ROUNDS:=5}" "${SAVES_N:=1000}" "${SAVES_MIB:=256}"
: "${SAVES_JOBS:=reread rewrite overwrite stat copy clone}"
export KNFSD_V4=1
KNFSD_DELEGATIONS=1
. "$VMDIR/guest/lib.sh"

# times JOB WAY: files, or times, of a measurement.
times() {
	case $1-$2 in clone-with) echo 10 ;; copy-* | clone-*) echo 1 ;; *) echo "$SAVES_N" ;; esac
}
# prepared JOB: the files of a job, made by a local process. Nobody has been given a delegation of them before.
prepared() {
	local n=1
	rm -rf /export/ext4/saves /export/*/big.copy.*
	mkdir /export/ext4/saves
	[ "$1" != stat ] || n=$SAVES_N
	"$SAVEJOB" make "$n" /export/ext4/saves >/dev/null
}
# attributes JOB: mount options. A stat asks the server each time, if no delegation spares it.
attributes() {
	case $1 in stat) echo nosharecache,acregmin=0,acregmax=0,acdirmin=600,acdirmax=600 ;; *) echo nosharecache ;; esac
}
# run_job JOB WAY: by the mount; prints microseconds.
run_job() {
	local how=$1
	case $1 in
	stat) "$SAVEJOB" stat "$SAVES_N" $M/saves ;;
	copy | clone)
		[ "$2" = with ] || how=through
		"$SAVEJOB" $how "$(times "$@")" $M/big $M/big.copy
		;;
	*) "$SAVEJOB" "$1" "$SAVES_N" $M/saves/file.0 ;;
	esac
}
# counts: calls so far by name, and the bytes of all. Those that a timer sends are left out. With SAVES_COSTS=1 the milliseconds
# that the calls of each kind took, too.
counts() {
	mount_stats $M | awk -v costs="${SAVES_COSTS:-}" 'ops && $2 > 0 { sub(":", "", $1)
			if ($1 !~ /^(NULL|SEQUENCE|RENEW)$/) { print $1, $2; bytes += $5 + $6; if (costs) print $1 ".ms", $8 } }
		/per-op statistics/ { ops = 1 }
		END { print "bytes", bytes + 0 }' | sort
}
# settled: the same when nothing has been sent for a while: CLOSE goes out behind the application's back.
settled() {
	local before now
	now=$(counts)
	while [ "$now" != "${before:-}" ]; do
		before=$now
		sleep 0.5
		now=$(counts)
	done
	echo "$now"
}
# mount_of SERVER WAY JOB: a client that has nothing in its caches.
mount_of() {
	local fs=ext4
	[ "$3" != clone ] || fs=xfs
	case $1-$2 in
	ringnfsd-without) NFSPORT=13049 RDMAPORT=23049 ;;
	*) ports_of "$1" ;;
	esac
	SERVER=$1 nfs_mount "$SAVES_VERS" "$SAVES_PROTO" /export/$fs $M "$(attributes "$3")"
}
# measure ROUND SERVER WAY JOB
measure() {
	local us enable=1
	[ "$2-$3" != knfsd-without ] || enable=0
	echo $enable >/proc/sys/fs/leases-enable
	prepared "$4" || die "no files for $4"
	mount_of "$2" "$3" "$4" || die "$2: no mount for $4"
	drop_caches
	# The way to the files is not counted, nor are the opens of those whose attributes are asked for.
	case $4 in
	stat) "$SAVEJOB" hold "$SAVES_N" $M/saves >/dev/null ;;
	copy | clone) stat $M/big >/dev/null ;;
	*) stat $M/saves/file.0 >/dev/null ;;
	esac || die "$4 on $2"
	settled >$OUT/before
	us=$(run_job "$4" "$3") || die "$4 on $2, $3"
	settled >$OUT/after
	join -a 2 $OUT/before $OUT/after | awk -v what="$* times=$(times "$4" "$3") us=$us" '{ n = NF == 3 ? $3 - $2 : $2; if (n) said = said " " $1 "=" n }
		END { print "save", what said }'
	umount $M
	echo 1 >/proc/sys/fs/leases-enable
}

OUT=/run/saves M=/mnt/saves
mkdir -p $STATE $OUT
# The guest sees the host's files by 9p. What a job runs must not come from there, as caches are dropped before it.
cp "$SAVEJOB" $OUT/savejob
SAVEJOB=$OUT/savejob
net_up || die "no network"
for fs in ext4 xfs; do "$SAVEJOB" fill "$SAVES_MIB" /export/$fs/big >/dev/null || die "no file on $fs"; done
options=rw,sync,no_root_squash,no_subtree_check,insecure
exports="/export/ext4 *($options,fsid=1)
/export/xfs *($options,fsid=2)"
knfsd_start "$exports"
RN_PORT=12049 RN_RDMA_PORT=22049 ringnfsd_start "$exports"
STATE=$STATE.without
mkdir -p $STATE
RN_PORT=13049 RN_RDMA_PORT=23049 ringnfsd_start "$exports" "[nfs4]
delegations = no"
RN_PORT=12049 RN_RDMA_PORT=22049
forth="ringnfsd/with knfsd/with ringnfsd/without knfsd/without"
back="knfsd/without ringnfsd/without knfsd/with ringnfsd/with"
for ((round = 1; round <= SAVES_ROUNDS; round++)); do
	for j in $SAVES_JOBS; do
		[ $((round % 2)) = 1 ] && order=$forth || order=$back
		for w in $order; do measure $round "${w%/*}" "${w#*/}" "$j"; done
	done
done
