# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Part of lib.sh: the servers, ringnfsd and the kernel's.
# Both serve the same exports(5) text on TCP port NFSPORT and RDMA port RDMAPORT; MOUNTPORT is
# where MOUNT answers. knfsd and ringnfsd may run side by side on different ports.
NFSPORT=2049 RDMAPORT=20049 MOUNTPORT=2049
ports_of() {
	case $1 in
	knfsd) NFSPORT=2049 RDMAPORT=20049 MOUNTPORT=20048 ;;
	ringnfsd) NFSPORT=${RN_PORT:-2049} RDMAPORT=${RN_RDMA_PORT:-20049} MOUNTPORT=${RN_PORT:-2049} ;;
	esac
}
ports_of "$SERVER"

tcp_listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
rdma_listens() { rdma resource show cm_id 2>/dev/null | grep -q "state LISTEN.*:$1\\b"; }
served() { tcp_listens "$NFSPORT" && { [ "$RDMA" = none ] || rdma_listens "$RDMAPORT"; }; }

knfsd_start() {
	ports_of knfsd
	modprobe nfsd && modprobe rpcrdma
	mount -t nfsd nfsd /proc/fs/nfsd
	mkdir -p /run/rpc_pipefs /var/lib/nfs
	mountpoint -q /var/lib/nfs || mount -t tmpfs nfsstate /var/lib/nfs
	mkdir -p /var/lib/nfs/{rpc_pipefs,sm,sm.bak,v4recovery,nfsdcld}
	touch /var/lib/nfs/{etab,rmtab,state}
	mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs p /run/rpc_pipefs
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	echo 1048576 >/proc/fs/nfsd/max_block_size
	echo "${KNFSD_DELEGATIONS:-0}" >/proc/sys/fs/leases-enable
	# It gives no delegations before lockd's grace period, too, has ended: here a multiple of nlm_timeout, by default 50 seconds.
	[ "${KNFSD_DELEGATIONS:-0}" = 0 ] || { echo 3 >/proc/sys/fs/nfs/nlm_timeout && echo 3 >/proc/sys/fs/nfs/nlm_grace_period; }
	tcp_listens 111 || rpcbind -w
	printf '%s\n' "$1" >/etc/exports
	# The guest's root cannot be exported, so NFSv4's root is /export.
	[ -z "${KNFSD_V4:-}" ] || echo '/export *(ro,no_subtree_check,insecure,fsid=0)' >>/etc/exports
	# Debian's has manage-gids, which ignores the groups that the client names.
	printf '[mountd]\nmanage-gids=n\n' >/etc/nfs.conf
	exportfs -ra
	if [ -n "${KNFSD_V4:-}" ]; then
		rpc.mountd --port 20048
		nfsdcld -p /run/rpc_pipefs
		rpc.nfsd -V 3 -V 4 -V 4.1 -V 4.2 8
		wait_until 3 sh -c "echo Y >/proc/fs/nfsd/v4_end_grace" # nfsdcld needs a moment
	else
		rpc.mountd --port 20048 --no-nfs-version 4 2>/dev/null || rpc.mountd --port 20048
		rpc.nfsd -V 3 -N 4 8
	fi
	[ "$RDMA" = none ] || echo "rdma 20049" >/proc/fs/nfsd/portlist
	echo knfsd >$STATE/kind
	wait_until 20 served || die "knfsd does not listen"
	[ "${KNFSD_DELEGATIONS:-0}" = 0 ] || sleep 3.5
}

ringnfsd_path() {
	local p
	for p in ${RINGNFSD:-} "$BUILDDIR/ringnfsd" "$BUILDDIR/daemon/ringnfsd"; do
		[ -x "$p" ] && { echo "$p"; return; }
	done
	return 1
}

# ringnfsd_launch: with the files of ringnfsd_start; used again after a kill.
ringnfsd_launch() {
	local daemon
	daemon=$(ringnfsd_path) || die "no ringnfsd in ${BUILDDIR:-nowhere}"
	# A file or folder of a mount that it serves must not come with it: its death would wait for itself.
	setsid env -C / "$daemon" --foreground --config $STATE/ringnfs.conf >>/share/ringnfsd.log 2>&1 </dev/null \
		5<&- 6<&- 7<&- 8<&- 9<&- &
	echo $! >$STATE/pid
	disown # or the shell reports its death
	wait_until 120 served && return
	tail -n 20 /share/ringnfsd.log >&2
	die "ringnfsd does not listen"
}

# ringnfsd_start EXPORTS [SETTINGS]: SETTINGS are further lines of ringnfs.conf, by section.
ringnfsd_start() {
	ports_of ringnfsd
	printf '%s\n' "$1" >$STATE/exports
	mkdir -p $STATE/state $STATE/exports.d
	cat >$STATE/ringnfs.conf <<-EOF
		[server]
		exports_file = $STATE/exports
		exports_dir = $STATE/exports.d
		state_dir = $STATE/state
		rpcbind = ${RN_RPCBIND:-no}
		[tcp]
		port = $NFSPORT
		[rdma]
		port = $RDMAPORT
		${2:-}
	EOF
	echo "${2:-}" >$STATE/settings
	echo ringnfsd >$STATE/kind
	ringnfsd_launch
}

server_start() {
	mkdir -p $STATE
	"${SERVER}_start" "$@"
}
# server_crash / server_again: the server is gone with all that it holds in memory, and back. The kernel's
# can only be stopped, which it takes as a restart all the same.
server_crash() { if [ "$SERVER" = knfsd ]; then rpc.nfsd 0; else server_kill9; fi; }
server_again() {
	[ "$SERVER" = knfsd ] || { ringnfsd_launch; return; }
	rpc.nfsd -V 3 -V 4 -V 4.1 -V 4.2 8
	[ "$RDMA" = none ] || echo "rdma 20049" >/proc/fs/nfsd/portlist
	wait_until 20 served
}
# server_with SETTINGS: ringnfsd with these further lines of ringnfs.conf; started anew if it is not so.
server_with() {
	[ "$SERVER" = ringnfsd ] || return 0
	[ "$(cat $STATE/settings)" != "$1" ] || return 0
	server_stop && ringnfsd_start "$(standard_exports)" "$1"
}
# server_anew: ringnfsd waits for nobody whom a script before has left (a client of 4.0 cannot say good-bye).
server_anew() {
	[ "$SERVER" = ringnfsd ] || return 0
	server_stop
	rm -f $STATE/state/nfs4-clients.db*
	ringnfsd_start "$(standard_exports)" "$(cat $STATE/settings)"
}
server_pid() { cat $STATE/pid; }
# server_counters: the lines that ringnfsd logs when it is asked, by SIGUSR1; that of what it holds is the last.
server_counters() {
	local lines
	lines=$(wc -l </share/ringnfsd.log)
	kill -USR1 "$(server_pid)"
	wait_until 30 eval "tail -n +$((lines + 1)) /share/ringnfsd.log | grep -a 'held:'" || die "no counters"
	tail -n +$((lines + 1)) /share/ringnfsd.log
}
# server_reload: back when ringnfsd has read keys and exports again; fails if it refuses them.
server_reload() { "$(ringnfsd_path)" --config $STATE/ringnfs.conf --reload; }
# server_restart: has the program run anew in its process, and says how that went: a line of its log.
server_restart() {
	local lines
	lines=$(wc -l </share/ringnfsd.log)
	kill -USR2 "$(server_pid)"
	wait_until 60 eval "tail -n +$((lines + 1)) /share/ringnfsd.log | grep -aq '\bready\b'" || die "it does not come back"
	tail -n +$((lines + 1)) /share/ringnfsd.log | grep -aE 'goes on from|could not be handed over'
}
# server_kill9: SIGKILL, and not back before the process is gone: rxe takes down its queue pairs first, for many seconds on a busy machine.
server_kill9() {
	local pid
	pid=$(server_pid)
	kill -9 "$pid"
	wait_until 120 eval "! kill -0 $pid"
}
server_alive() { [ "$(cat $STATE/kind 2>/dev/null)" != ringnfsd ] || kill -0 "$(server_pid)" 2>/dev/null; }
server_stop() {
	case $(cat $STATE/kind) in
	knfsd)
		rpc.nfsd 0
		exportfs -ua
		;;
	*)
		kill "$(server_pid)"
		wait_until 20 eval "! kill -0 $(server_pid)" || return 1
		;;
	esac
	rm $STATE/kind
}

# The exports that all tests use; one server with them serves the whole run.
standard_exports() {
	local fs id=1 opt=rw,sync,no_subtree_check,insecure${SEC:+,sec=sys:$SEC}
	for fs in ext4 xfs; do
		echo "/export/$fs *($opt,no_root_squash,fsid=$id)"
		echo "/export/$fs/exp/root *($opt,root_squash,fsid=$((id + 1)))"
		echo "/export/$fs/exp/all *($opt,all_squash,fsid=$((id + 2)))"
		echo "/export/$fs/exp/anon *($opt,all_squash,anonuid=4001,anongid=4002,fsid=$((id + 3)))"
		echo "/export/$fs/exp/ro *(${opt/rw/ro},no_root_squash,fsid=$((id + 4)))"
		mkdir -p /export/$fs/exp/{root,all,anon,ro}
		id=$((id + 10))
	done
}
# vm_up: network, RDMA and the server with the standard exports, unless they are up already.
vm_up() {
	net_up || die "no network or RDMA device"
	[ -e $STATE/kind ] || server_start "$(standard_exports)"
}
