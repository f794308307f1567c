#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the virtual machine: nfsload over RDMA on the kernel's server, on this one, and on verbsfloor, by turns, on one ext4 image. Each measurement is a
# line "floor ROUND SERVER JOB LINE-OF-NFSLOAD". `vm-floor` runs it, and sets BENCH_ROUNDS and BENCH_JOBS, words JOB:CALLS-AT-A-TIME.
. "$VMDIR/guest/lib.sh"
ROUNDS=${BENCH_ROUNDS:-5} FLOOR_PORT=25049 FILES=/export/ext4/load
RN_PORT=12049 RN_RDMA_PORT=22049

# load SERVER JOB CALLS: nfsload's line. verbsfloor looks at no handle, so ringnfsd gives those.
load() {
	local rdma
	case $1 in
	verbs) ports_of ringnfsd; rdma=$FLOOR_PORT ;;
	*) ports_of "$1"; rdma=$RDMAPORT ;;
	esac
	"$BUILDDIR/tests/bench/nfsload" --host "$ADDR" --port "$NFSPORT" --mount-port "$MOUNTPORT" --rdma-port "$rdma" \
		--calls "$3" --warmup 1 --seconds "${BENCH_SECONDS:-3}" "$2" $FILES
}

net_up || die "no RDMA device"
mkdir -p $STATE $FILES
exports="/export/ext4 *(rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1)"
knfsd_start "$exports"
ringnfsd_start "$exports"
servers="knfsd ringnfsd verbs"
for server in knfsd ringnfsd; do load $server read 1 >/dev/null || die "$server: nfsload"; done
"$BUILDDIR/tests/bench/verbsfloor" "$ADDR" $FLOOR_PORT $FILES/data.0 >$STATE/floor.log 2>&1 &
floor=$!
until grep -q ready $STATE/floor.log; do kill -0 $floor || die "verbsfloor: $(cat $STATE/floor.log)"; sleep 0.1; done
for ((round = 1; round <= ROUNDS; round++)); do
	for job in ${BENCH_JOBS:-null:1 getattr:1 getattr:8 read:1 read:8}; do
		for server in $servers; do
			line=$(load "$server" "${job%:*}" "${job#*:}") || die "$job of $server"
			echo "floor $round $server $job $line"
		done
	done
	servers=$(echo "$servers" | awk '{ print $2, $3, $1 }')
done
kill $floor
