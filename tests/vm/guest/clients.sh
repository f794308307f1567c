# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Two NFS clients, "one" and "two", each with its mount at /mnt/one and /mnt/two of its machine. With
# PEERS=2 they are two machines of their own, beside that of the server (tests/vm/run --peers 2);
# otherwise one is this machine, and two a network name space in it with a host name of its own, which
# to Linux and to the server is another client, over TCP only.
#   on CLIENT COMMAND...       runs the command (also a function of lib.sh) where that client is
#   file CLIENT NAME COMMAND.. vmfile there: "start FILE FLAGS", "stop", or what `vmfile do` takes
# Source it after lib.sh.
PEERS=${PEERS:-0}
TWO_NS=two TWO_ADDR=10.9.20.2 TWO_GATE=10.9.20.1

peer_of() { case $1 in one) echo 1 ;; two) echo 2 ;; esac; }

# peer_run N COMMAND...: output and status are the command's, which is a program, a builtin or a function of
# lib.sh.
peer_run() {
	local n=$1 shell=()
	shift
	if [ "$1" = vm_prog ]; then
		set -- "$VMPROG/$2" "${@:3}" # quicker than by way of the shell
	elif [ "$1" = eval ] || declare -F "$1" >/dev/null; then
		shell=(bash -c '. "$VMDIR/guest/lib.sh"; set +e; "$@"' peer)
		[ -z "${KRB_REALM:-}" ] || shell[2]=". \"\$VMDIR/guest/kerberos.sh\"; ${shell[2]}"
		[ -z "${TLS_HOST:-}" ] || shell[2]=". \"\$VMDIR/guest/tls.sh\"; ${shell[2]}"
	fi
	# shellcheck disable=SC2153 # lib.sh sets them.
	"$VMPROG/vmcall" 10.9.2$n.2 "$CALLPORT" "$STATE/peer.$n.dead" \
		VERS="$VERS" FS="$FS" PROTO="$PROTO" SERVER="$SERVER" SEC="${SEC:-}" NFS_HOST="${NFS_HOST:-}" "${shell[@]}" "$@"
}
# ask_runner N boot|cut: by a file, which the runner may have removed before the call that makes it has ended.
ask_runner() { { : >"/share/peer.$1/$2"; } 2>/dev/null || true; }
# peer_boot N...: the machines are started, for the first time or again.
peer_boot() {
	local n
	for n; do
		rm -f "$STATE/peer.$n.dead" "/share/peer.$n/up"
		ask_runner $n boot
	done
	for n; do wait_until 300 [ -e "/share/peer.$n/up" ] || die "peer $n does not come up"; done
}
# peer_die N: at once, as by a power failure.
peer_die() {
	touch "$STATE/peer.$1.dead"
	peer_run "$1" sh -c '[ -e /dev/port ] || echo o >/proc/sysrq-trigger
		printf "\021" | dd of=/dev/port bs=1 seek=244 conv=notrunc status=none' 2>/dev/null || true
}

# clients_up: before the first use; does nothing when they are there.
clients_up() {
	if [ "$PEERS" = 2 ]; then
		[ -e /share/peer.1/up ] || peer_boot 1 2
	else
		name_space_up
	fi
}
name_space_up() {
	[ ! -e /run/netns/$TWO_NS ] || return 0
	modprobe -a veth nfsv4 nfsv3
	ip netns add $TWO_NS
	ip link add tovm type veth peer name totwo netns $TWO_NS
	link_cuttable tovm
	link_cuttable totwo $TWO_NS
	ip addr add $TWO_GATE/24 dev tovm
	ip link set tovm up
	ip -n $TWO_NS addr add $TWO_ADDR/24 dev totwo
	ip -n $TWO_NS link set totwo up
	ip -n $TWO_NS link set lo up
	ip -n $TWO_NS route add default via $TWO_GATE
	ip netns exec $TWO_NS sh -c 'echo client-two >/sys/fs/nfs/net/nfs_client/identifier'
}

on() {
	local client=$1
	shift
	if [ "$PEERS" = 2 ]; then
		peer_run "$(peer_of "$client")" "$@"
	else
		"$@"
	fi
}
# returned_since CLIENT N [DIR]: how many delegations the client has returned by its mount (/mnt/CLIENT) since it had counted N; 0 after half a
# minute without one. It counts when the server's answer has come to it, by when another client may have gone on.
returned_since() {
	local dir=${3:-/mnt/$1}
	wait_until 30 eval "[ \"\$(on $1 op_count $dir DELEGRETURN)\" -gt $2 ]" || true
	echo $(($(on "$1" op_count "$dir" DELEGRETURN) - $2))
}
# client_mount CLIENT VERS EXPORT [OPTIONS [DIR]]: at /mnt/CLIENT.
client_mount() {
	local proto=$PROTO dir=${5:-/mnt/$1}
	if [ "$PEERS" = 2 ]; then
		on "$1" nfs_mount "$2" "$proto" "$3" "$dir" "${4:-}"
	elif [ "$1" = two ]; then
		NFS_RUN="nsenter --net=/run/netns/$TWO_NS unshare --uts --" nfs_mount "$2" tcp "$3" "$dir" "${4:-}"
	else
		nfs_mount "$2" "$proto" "$3" "$dir" "${4:-}"
	fi
}
# statd_up CLIENT: what locking by NFSv3 needs on a machine, of which peer_die loses all but what statd_kept restores.
statd_up() {
	on "$1" sh -c 'mountpoint -q /var/lib/nfs || mount -t tmpfs t /var/lib/nfs
		mkdir -p /var/lib/nfs/sm /var/lib/nfs/sm.bak && chown -R statd /var/lib/nfs
		pidof rpcbind || rpcbind -w
		pidof rpc.statd || rpc.statd --no-notify' >/dev/null
}
# statd_keep / statd_kept CLIENT: the monitor's files, as a disk keeps them.
statd_keep() { on "$1" tar -C /var/lib/nfs -cf /share/statd.tar .; }
statd_kept() { on "$1" sh -c 'mount -t tmpfs t /var/lib/nfs && tar -C /var/lib/nfs -xf /share/statd.tar'; }
client_umount() { on "$1" timeout 60 umount "/mnt/$1"; }
# clients_mount / clients_umount: both, with VERS and the export of this run.
clients_mount() {
	clients_up && client_mount one "$VERS" "/export/$FS" "${1:-}" && client_mount two "$VERS" "/export/$FS" "${1:-}"
}
# A test that failed may have left a file open.
clients_umount() {
	local c
	for c in one two; do
		on $c sh -c 'pidof vmfile | xargs -r kill -9'
		client_umount $c
	done
}

file() {
	local client=$1 name=$2
	shift 2
	case $1 in
	start) on "$client" vm_prog vmfile start "$client.$name" "$2" "$3" ;;
	stop) on "$client" vm_prog vmfile stop "$client.$name" ;;
	*) on "$client" vm_prog vmfile do "$client.$name" "$@" ;;
	esac
}
# refused TEXT CLIENT NAME COMMAND...: that fails with TEXT.
refused() {
	local text=$1 out
	shift
	if out=$(file "$@"); then die "succeeded but should not: $*"; fi
	same "$*" "$text" "$out"
}
busy() { refused busy "$@"; }
# both / neither NAME: both clients open the empty file NAME of the server's folder $S, which they have below their mounts, and close it.
both() {
	(umask 0; : >"$S/$1")
	file one "$1" start "/mnt/one/${S##*/}/$1" rw
	file two "$1" start "/mnt/two/${S##*/}/$1" rw
}
neither() { file one "$1" stop; file two "$1" stop; }
# since TIME: seconds from then on. at_most WHAT SECONDS MOST: fails beyond.
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }
at_most() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a <= b) }' || die "$1: $2 s"; }

# net_cut / net_heal CLIENT: nothing gets through to or from it. In one machine only two can be cut off.
net_cut() { net_loss "$1" 100; }
net_heal() { net_loss "$1" 0; }
net_loss() { # CLIENT PERCENT
	if [ "$PEERS" = 2 ]; then
		link_loss "peer$(peer_of "$1")" "$2"
		on "$1" link_loss nfs0 "$2"
	else
		link_loss tovm "$2"
		link_loss totwo "$2" $TWO_NS
	fi
}

# calls_start / calls_stop N: calls to machine N by TCP are counted. Prints lines "FLAVOUR CALLS" of those of NFSv4 callbacks.
calls_start() {
	rm -f /run/calls.$1
	setsid python3 -B "$VMDIR/guest/callbacks.py" "peer$1" /run/calls.$1 </dev/null >/run/calls.log.$1 2>&1 &
	echo $! >/run/calls.pid.$1
	disown
	wait_until 20 test -e /run/calls.$1 || die "calls are not counted: $(cat /run/calls.log.$1)"
}
calls_stop() {
	kill "$(cat /run/calls.pid.$1)"
	wait_until 20 eval "! kill -0 $(cat /run/calls.pid.$1)"
	cat /run/calls.$1
}
