#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The program is run anew RESTARTS times (4) with all its state while two clients are at work, one of them compiles, and none notices: every byte is there, nothing is
# reclaimed, a lock is held all the time against another client and a local process, and by TCP no connection ends. Told is the longest call.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
. "$VMDIR/guest/load.sh"
if [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "the program run anew"
	t_skip "needs machines of their own for the clients"
	t_done
fi
RESTARTS=${RESTARTS:-${FULL:+40}}
RESTARTS=${RESTARTS:-4} SIZE=$((1 << 18)) PAUSE=0.1
S=/export/$FS/anew
export RN_RPCBIND=yes
net_up || die "no network or RDMA device"
tcp_listens 111 || rpcbind -w
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
rm -f $STATE/state/nfs4-clients.db* $STATE/state/nlm-hosts # nobody is waited for whom a script before has left
server_start "$(standard_exports)" "[nfs4]
lease_time = 10
grace_time = 10"
rm -rf "$S" /run/tries.*
mkdir "$S"
chmod 777 "$S"

# beat NAME: calls one after the other by the mount of that load; their times are in its log.
log_of() { echo "/share/peer.$(peer_of "${1%%.*}")/beats.$1"; } # as this machine has it
beat() {
	: >"$S/beat.$1"
	on "${1%%.*}" sh -c "setsid $VMDIR/guest/beat.py $(at "$1")/anew/beat.$1 /share/beats.$1 </dev/null >/dev/null 2>&1 & echo \$!" >"/run/beat.$1"
	wait_until 30 test -s "$(log_of "$1")"
}
beats() { on "${1%%.*}" kill -0 "$(cat "/run/beat.$1")"; }
# longest NAME: ms of the longest call, and of that in the middle of the longest ones, one for each restart.
longest() {
	awk '{ print $2 }' "$(log_of "$1")" | sort -rn | head -n "$RESTARTS" |
		awk '{ ms[NR] = $1 } END { printf "%d ms at most, %d in the middle", ms[1], ms[int((NR + 1) / 2)] }'
}
# tries WHO COMMAND...: to get the lock, again and again. Ends when it is not refused.
tries() {
	local who=$1 said n=0
	shift
	while said=$("$@" lock posix w 5 1 2>&1); [ "$said" = busy ]; do
		n=$((n + 1))
		echo $n >"/run/tries.$who.new"
		mv "/run/tries.$who.new" "/run/tries.$who"
		sleep 0.05
	done
	if [ -z "$said" ] && [ -e /run/load.stop ]; then
		touch "/run/tries.$who.got"
	else
		echo "$who: ${said:-has the lock}" >>/run/tries.bad
	fi
}
tried() { cat "/run/tries.$1" 2>/dev/null || echo 0; }
local_file() { vm_prog vmfile do local.held "$@"; }
# begun_anew NAME: how often its client has begun a client, a session, or a reclaim, and a connection.
begun_anew() { on "${1%%.*}" op_stats "$(at "$1")" | grep -E '^(EXCHANGE_ID|CREATE_SESSION|RECLAIM_COMPLETE|SETCLIENTID|SETCLIENTID_CONFIRM) ' | sort || true; }
made() { on "${1%%.*}" connects "$(at "$1")"; }

# The first client compiles a program by its mount of VERS, again and again.
compiles_log=/share/peer.1/compiled
compile() {
	(umask 0 && mkdir "$S/build")
	on one sh -c "setsid $VMDIR/guest/compile.sh $(at "one.$VERS")/anew/build /share/compiled </dev/null >/share/compiler 2>&1 & echo \$!" >/run/compiler
	wait_until 120 test -s $compiles_log
}
compiles() { on one kill -0 "$(cat /run/compiler)"; }

begin() {
	local name client dir
	load_begin
	for name in $loads; do beat "$name"; done
	compile
	(umask 0; : >"$S/held")
	for client in one two; do
		dir=$(at "$client.$VERS")
		if [ "$VERS" = 3 ]; then
			dir=/mnt/$client/held
			statd_up $client
			on $client eval "NFS_LOCK=lock nfs_mount 3 $PROTO /export/$FS $dir"
		fi
		file $client held start "$dir/anew/held" rw
	done
	vm_prog vmfile start local.held "$S/held" rw
	file one held lock posix w 0 10
	tries two file two held &
	tries local local_file &
}
restarted() {
	local i said slowest=0 name n
	declare -A before=() were=()
	for name in $loads; do before[$name]=$(begun_anew "$name") were[$name]=$(made "$name"); done
	for ((i = 0; i < RESTARTS; i++)); do
		said=$(server_restart)
		[[ $said =~ waited\ for\ ([0-9]+)\ ms ]] || die "$said"
		[ "${BASH_REMATCH[1]}" -le "$slowest" ] || slowest=${BASH_REMATCH[1]}
		get_on
		n=$(($(tried two) + $(tried local)))
		wait_until 60 eval "[ \$((\$(tried two) + \$(tried local))) -gt $n ] || [ -e /run/tries.bad ]" || die "nobody wants the lock"
		[ ! -e /run/tries.bad ] || die "$(cat /run/tries.bad)"
	done
	compiles || die "the compiler has failed: $(cat /share/peer.1/compiler)"
	for name in $loads; do
		beats "$name" || die "$name: a call has failed"
		same "clients, sessions and reclaims of $name" "${before[$name]}" "$(begun_anew "$name")"
		[ "$PROTO" = rdma ] || same "connections of $name" "${were[$name]}" "$(made "$name")"
		t_note "$name: $(longest "$name"), $(($(made "$name") - were[$name])) connections;"
	done
	t_note "the server has them wait for $slowest ms at most; $(cat $compiles_log) times compiled; $(server_counters | grep -aoE 'nfs4_delegations=[0-9]+' | tail -n 1)"
}
ended() {
	local client name
	touch /run/load.stop
	file one held lock posix u 0 10
	wait_until 60 eval "[ -e /run/tries.two.got ] || [ -e /run/tries.local.got ]" || die "nobody gets the lock that is free"
	vm_prog vmfile stop local.held
	for client in one two; do file $client held stop; done
	for name in $loads; do on "${name%%.*}" kill "$(cat "/run/beat.$name")"; done
	compiles || die "the compiler has failed"
	on one kill -- "-$(cat /run/compiler)"
	wait_until 60 eval "! on one kill -0 -- -$(cat /run/compiler)"
	verified
}

t_run "two clients at work, one with a lock" begin
t_run "the program is run anew $RESTARTS times" restarted
t_run "every byte is there" ended
load_end
[ "$VERS" != 3 ] || for c in one two; do on $c umount /mnt/$c/held; done
rm -rf "$S"
server_stop
RN_RPCBIND=no server_start "$(standard_exports)"
t_done
