#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the virtual machine: servers are restarted while Linux's client is at work with them, by NFSv3 and 4.2. Lines "restart SERVER WAY VERSION
# LONGEST MIDDLE FAILED STATE", the ms of the longest call, and of that in the middle of the longest ones, one for each restart; 1 if a call has
# failed; how often the client began its client, session or reclaims anew; and "lock SERVER WAY MS...": how long a new lock took that was
# asked for as the server was there again. None gives delegations, as knfsd_start has it: clients that may reclaim some hold up others' WRITEs. RESTARTS, RESTARTS_LOADS and BENCH_GANESHA come from `restarts`.
export KNFSD_V4=1 RN_PORT=12049 RN_RDMA_PORT=22049
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
: "${RESTARTS:=5}" "${RESTARTS_LOADS:=knfsd:stop ganesha:stop ringnfsd:stop ringnfsd:restart}"
GANESHA_PORT=13049 ROOT=${BENCH_GANESHA:-}
OUT=/run/restarts
EXPORT="/export/ext4 *(rw,sync,no_root_squash,no_subtree_check,insecure,fsid=1)"

ganesha_launch() {
	setsid env LD_LIBRARY_PATH="$ROOT/usr/lib/x86_64-linux-gnu:$ROOT/usr/lib/ganesha" "$ROOT/usr/bin/ganesha.nfsd" -F -f $OUT/ganesha.conf \
		-L $OUT/ganesha.log -p $OUT/ganesha.pid </dev/null >/dev/null 2>&1 &
	echo $! >$OUT/ganesha
	disown
	wait_until 60 tcp_listens $GANESHA_PORT || die "ganesha does not listen: $(tail -n 3 $OUT/ganesha.log)"
}
# Leases and grace as knfsd_start has them: 10 s.
ganesha_start() {
	mkdir -p $OUT/recovery
	tcp_listens 111 || rpcbind -w
	cat >$OUT/ganesha.conf <<-EOF
		NFS_CORE_PARAM {
			NFS_Port = $GANESHA_PORT; MNT_Port = 13048; Rquota_Port = 13050; Protocols = 3, 4;
			Enable_NLM = false; Enable_RQUOTA = false; Enable_UDP = false;
			Plugins_Dir = $ROOT/usr/lib/x86_64-linux-gnu/ganesha;
		}
		NFSv4 { Lease_Lifetime = 10; Grace_Period = 10; RecoveryRoot = $OUT/recovery; Only_Numeric_Owners = true; }
		LOG { Default_Log_Level = WARN; }
		EXPORT { Export_Id = 1; Path = /export/ext4; Pseudo = /export/ext4; Access_Type = RW; Squash = No_Root_Squash; SecType = sys;
			FSAL { Name = VFS; } }
	EOF
	ganesha_launch
	NFSPORT=$GANESHA_PORT MOUNTPORT=13048
}
ganesha_end() {
	kill "$(cat $OUT/ganesha)"
	wait_until 60 eval "! kill -0 $(cat $OUT/ganesha)" 2>/dev/null
}
# anew SERVER WAY: as its administrator would.
anew() {
	case $1:$2 in
	ringnfsd:restart) server_restart ;;
	ringnfsd:stop)
		server_stop
		echo ringnfsd >$STATE/kind
		ringnfsd_launch
		;;
	knfsd:stop) server_crash && server_again ;;
	ganesha:stop) ganesha_end && ganesha_launch ;;
	esac >/dev/null
}
begun() { op_stats "$1" | awk '/^(EXCHANGE_ID|CREATE_SESSION|RECLAIM_COMPLETE|SETCLIENTID) / { n += $2 } END { print n + 0 }'; }
beat() {
	: >"/export/ext4/beat.$1"
	setsid "$VMDIR/guest/beat.py" "/mnt/$1/beat.$1" "$OUT/beats.$1" </dev/null >/dev/null 2>&1 &
	echo $! >"$OUT/pid.$1"
	disown
	wait_until 30 test -s "$OUT/beats.$1" || die "$1: no beat"
}
beats() { kill -0 "$(cat "$OUT/pid.$1")" 2>/dev/null; }
lines_of() { wc -l <"$OUT/beats.$1"; }
# answered VERSION N: that one has had more answers than that.
answered() { [ "$(lines_of "$1")" -gt "$2" ] || ! beats "$1"; }
longest() {
	awk '{ print $2 }' "$OUT/beats.$1" | sort -rn | head -n "$RESTARTS" |
		awk '{ ms[NR] = $1 } END { print ms[1] + 0, ms[int((NR + 1) / 2)] + 0 }'
}
new_lock() { # NUMBER
	local start=$EPOCHREALTIME
	vm_prog vmfile start new "/mnt/4.2/new.$1" rwc
	vm_prog vmfile "do" new lock posix w 0 10
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf " %.0f", (b - a) * 1000 }' >>$OUT/locks
	vm_prog vmfile stop new
}
measure() { # SERVER WAY
	local v i n anew
	SERVER=$1
	rm -f $OUT/beats.* $OUT/locks
	case $1 in
	ganesha) ganesha_start ;;
	ringnfsd) server_start "$EXPORT" "[nfs4]
delegations = no
lease_time = 10
grace_time = 10" ;;
	*) server_start "$EXPORT" ;;
	esac
	for v in 3 4.2; do nfs_mount $v tcp /export/ext4 "/mnt/$v" nosharecache || die "$1: no mount of version $v"; done
	vm_prog vmfile start held /mnt/4.2/held rwc
	vm_prog vmfile "do" held lock posix w 0 10
	for v in 3 4.2; do beat $v; done
	anew=$(begun /mnt/4.2)
	for ((i = 0; i < RESTARTS; i++)); do
		anew "$1" "$2"
		new_lock $i
		for v in 3 4.2; do
			n=$(lines_of $v)
			wait_until 120 answered $v $((n + 20))
		done
	done
	echo "restart $1 $2 3 $(longest 3) $(beats 3 && echo 0 || echo 1) 0"
	echo "restart $1 $2 4.2 $(longest 4.2) $(beats 4.2 && echo 0 || echo 1) $(($(begun /mnt/4.2) - anew))"
	echo "lock $1 $2$(cat $OUT/locks)"
	vm_prog vmfile stop held
	for v in 3 4.2; do
		! beats $v || kill "$(cat "$OUT/pid.$v")"
		wait_until 60 eval "! beats $v"
		umount "/mnt/$v"
	done
	if [ "$1" = ganesha ]; then ganesha_end; else server_stop; fi
}

mkdir -p $STATE $OUT
net_up || die "no network"
for load in $RESTARTS_LOADS; do measure "${load%:*}" "${load#*:}"; done
