# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Functions that the test scripts in the guest share. A script sources this file first:
#     . "$VMDIR/guest/lib.sh"
# Settings, from the environment:
#   RDMA      rxe, siw or none: the software RDMA device of this machine
#   PROTO     rdma or tcp: how the tests mount (default: rdma if there is a device)
#   VERS      3, 4.0, 4.1 or 4.2: the version they mount with (default 3)
#   FS        ext4 or xfs: which export they use (default ext4)
#   SEC       flavour that the tests mount with, and that exports take beside AUTH_SYS (default: none)
#   SERVER    ringnfsd or knfsd: who serves (default ringnfsd)
#   KNFSD_V4  set: knfsd serves NFSv4, too (so it does when VERS is 4.x)
#   RINGNFSD  the daemon (default: BUILDDIR/ringnfsd, BUILDDIR/daemon/ringnfsd)
# Everything runs in one guest: the client reaches the server at ADDR over a dummy device.
RDMA=${RDMA:-none}
SERVER=${SERVER:-ringnfsd}
FS=${FS:-ext4}
VERS=${VERS:-3}
[ "$VERS" = 3 ] || KNFSD_V4=1
if [ -z "${PROTO:-}" ]; then
	PROTO=rdma
	[ "$RDMA" != none ] || PROTO=tcp
fi
ADDR=${VM_PEER:+10.9.1$VM_PEER.1} # as the server is called on this machine
ADDR=${ADDR:-10.9.0.1}
ADDR6=fd09::1
STATE=/run/vm-server
export RDMA SERVER FS PROTO VERS KNFSD_V4

# ---- a small test framework -------------------------------------------------------------------
# Each result is one line: "ok NAME", "FAIL NAME: reason", "skip NAME: reason"; t_done prints
# "N passed, N failed, N skipped" and exits accordingly.
t_passed=0 t_failed=0 t_skipped=0 t_name='' t_said=''
t_tag() { echo "$RDMA/$PROTO/v$VERS/$FS"; }
t_begin() { t_name=$1; t_start=$EPOCHREALTIME; }
t_seconds() { awk -v a="$t_start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }'; }
t_ok() { t_passed=$((t_passed + 1)); echo "ok [$(t_tag)] $t_name ($(t_seconds) s${t_said:+; $t_said})"; }
# t_note TEXT: what a test has measured, for the line that says it passed.
t_note() { echo "$*" >>/run/t.note; }
t_fail() { t_failed=$((t_failed + 1)); echo "FAIL [$(t_tag)] $t_name: $*"; }
t_skip() { t_skipped=$((t_skipped + 1)); echo "skip [$(t_tag)] $t_name: $*"; }
t_done() {
	echo "$t_passed passed, $t_failed failed, $t_skipped skipped"
	[ $t_failed -eq 0 ]
	exit
}

# t_run NAME COMMAND...: one test. The command runs in a subshell under `set -e`, so that it fails
# at its first failing line; exit status 77 is a skip. Its output is shown when it fails.
t_run() {
	local log=/run/t.log.$BASHPID rc
	t_begin "$1"
	shift
	rm -f /run/t.note
	(
		set -eE
		trap 'echo "line $LINENO: $BASH_COMMAND" >&2' ERR
		"$@"
	) >$log 2>&1
	rc=$?
	t_said=$(cat /run/t.note 2>/dev/null)
	case $rc in
	0) t_ok ;;
	77) t_skip "$(tail -n 1 $log)" ;;
	*)
		t_fail "$(tail -n 1 $log)"
		tail -n 15 $log | sed 's/^/    | /'
		;;
	esac
}

die() { echo "$*" >&2; exit 1; }
# same WHAT EXPECTED GOT
same() { [ "$2" = "$3" ] || die "$1: expected '$2', got '$3'"; }
# fails_with TEXT COMMAND...: the command must fail and say TEXT.
fails_with() {
	local text=$1 out
	shift
	if out=$("$@" 2>&1); then die "succeeded but should not: $*"; fi
	case $out in *"$text"*) ;; *) die "$*: expected '$text', got '$out'" ;; esac
}
# wait_until SECONDS COMMAND...: until the command succeeds.
wait_until() {
	local end=$((SECONDS + $1))
	shift
	until ("$@") >/dev/null 2>&1; do # a function that dies has only failed this time
		[ $SECONDS -lt $end ] || return 1
		sleep 0.1
	done
}

# ---- network and RDMA -------------------------------------------------------------------------
# net_up: the dummy device with the addresses, and the RDMA device on it if one is asked for.
net_up() {
	local m
	[ ! -e /sys/class/net/dummy0 ] || return 0
	modprobe dummy numdummies=0
	ip link add dummy0 type dummy || ip link add dummy0 type bridge # a machine without modules
	ip link set dummy0 mtu 4500 up
	ip addr add $ADDR/24 dev dummy0
	ip addr add $ADDR6/64 dev dummy0 nodad
	for m in 1 2; do
		[ "$m" -gt "${PEERS:-0}" ] || { name_links $m 01 peer$m control$m && link_up peer$m 10.9.1$m.1 &&
			link_up control$m 10.9.2$m.1 && link_cuttable peer$m && rdma_up peer$m "$RDMA-peer$m"; } || return 1
	done
	rdma_up dummy0 "${RDMA}0"
}
# name_links N END NAME CONTROL: the devices that join this machine and machine N; the runner gave them their
# addresses.
name_links() {
	ip link set "$(link_of "52:54:00:00:0$1:$2")" name "$3" && ip link set "$(link_of "52:54:00:01:0$1:$2")" name "$4"
}
link_of() { basename "$(dirname "$(grep -l "$1" /sys/class/net/*/address)")"; }
link_up() { # DEVICE ADDRESS
	# The devices of user-mode Linux have their MTU for good, 9000.
	ip link set "$1" mtu 4500 2>/dev/null
	ip link set "$1" up && ip addr add "$2/24" dev "$1"
}
# peer_net_up: the same on such a machine, where the one for NFS is called nfs0.
peer_net_up() {
	name_links "$VM_PEER" 02 nfs0 control && link_up nfs0 "10.9.1$VM_PEER.2" &&
		link_up control "10.9.2$VM_PEER.2" && link_cuttable nfs0 && rdma_up nfs0 "$RDMA-nfs0"
}
# link_cuttable DEVICE [NAMESPACE]: before the first packet, so that link_loss only has to change a number. A device that is given another
# queue refuses packets for a moment. rxe, since Linux 6.10, takes that for an error of the queue pair, and never gets the one out of it
# by which all connections are made: the device then answers no connection request until it is removed.
link_cuttable() {
	modprobe sch_netem || true
	tc ${2:+-n "$2"} qdisc add dev "$1" root netem limit $LINK_QUEUE || true # a machine without netem
}
LINK_QUEUE=100000 # packets: a full queue would be such an error, too
# link_loss DEVICE PERCENT [NAMESPACE]: the device loses so many of the packets that it sends. Without netem it is down instead.
link_loss() {
	tc ${3:+-n "$3"} qdisc change dev "$1" root netem loss "$2%" limit $LINK_QUEUE && return
	if [ "$2" = 0 ]; then ip ${3:+-n "$3"} link set "$1" up; else ip ${3:+-n "$3"} link set "$1" down; fi
}
# lan_up: on the network of all guests (tests/vm/run --ceph), where this machine is LAN_ADDR.
LAN=10.9.30 LAN_ADDR=10.9.30.1${VM_PEER:-0}
lan_up() {
	ip link set "$(link_of "52:54:00:02:00:0${VM_PEER:-0}")" name lan && link_up lan $LAN_ADDR && rdma_up lan "$RDMA-lan"
}
rdma_up() { # NETWORK-DEVICE NAME
	local m
	[ "$RDMA" != none ] || return 0
	modprobe -a crc32_generic crc32c_generic 2>/dev/null
	case $RDMA in
	rxe) modprobe rdma_rxe ;;
	siw) modprobe siw ;;
	esac || return 1
	rdma link add "$2" type "$RDMA" netdev "$1" || return 1
	for m in rdma_ucm ib_uverbs rpcrdma; do modprobe $m || return 1; done
}

CALLPORT=4444 # of a machine beside this one
. "$VMDIR/guest/servers.sh"

# ---- the client -------------------------------------------------------------------------------
# v4_path EXPORT: its path in NFSv4's name space. The guest's root cannot be exported by the kernel's
# server, whose NFSv4 root is /export.
v4_path() {
	local p=$1
	[ "$SERVER" != knfsd ] || p=${p#/export}
	echo "${p:-/}"
}
# nfs_mount VERS PROTO EXPORT DIR [OPTIONS]: from NFS_HOST, or else ADDR; NFS_RUN is put before the command.
nfs_mount() {
	local vers=$1 proto=$2 export=$3 dir=$4 opt="vers=$1,proto=$2" host=${NFS_HOST:-$ADDR}
	case $proto in
	rdma*) opt=$opt,port=$RDMAPORT ;;
	*) opt=$opt,port=$NFSPORT ;;
	esac
	if [ "$vers" = 3 ]; then
		case $host in *:*) opt=$opt,mountproto=tcp6 ;; *) opt=$opt,mountproto=tcp ;; esac
		opt=$opt,mountport=$MOUNTPORT,${NFS_LOCK:-nolock}
	else
		export=$(v4_path "$export")
	fi
	mkdir -p "$dir"
	timeout 60 ${NFS_RUN:-} mount -t nfs -o "$opt${SEC:+,sec=$SEC}${5:+,$5}" "${host/#fd*/[$host]}:$export" "$dir"
}
# mnt_test [OPTIONS]: the export of this run at /mnt/t.
mnt_test() { nfs_mount "$VERS" "$PROTO" "/export/$FS" /mnt/t "$@"; }
umnt_test() { umount /mnt/t; }

# drop_caches: of client and server, which share one kernel.
drop_caches() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
}
sum() { sha256sum <"$1" | cut -d' ' -f1; }

# mount_stats DIR: that mount's part of /proc/self/mountstats.
mount_stats() {
	awk -v d="$1" '$1 == "device" { on = $5 == d } on' /proc/self/mountstats
}
# rdma_counter DIR read-chunks|write-chunks|reply-chunks|bad-replies|bad-xids
rdma_counter() {
	local n
	case $2 in
	sends) n=6 ;; bad-xids) n=8 ;; read-chunks) n=11 ;; write-chunks) n=12 ;; reply-chunks) n=13 ;;
	bad-replies) n=20 ;; *) die "no counter $2" ;;
	esac
	mount_stats "$1" | awk -v n=$n '$1 == "xprt:" && $2 == "rdma" { s += $(n + 2) } END { print s + 0 }'
}
# connects DIR: how often the mount's connections were made.
connects() { mount_stats "$1" | awk '$1 == "xprt:" { n += $5 } END { print n + 0 }'; }
# op_stats DIR: lines "OP operations transmissions major-timeouts errors", of operations used.
op_stats() {
	mount_stats "$1" | awk 'ops && $2 > 0 { sub(":", "", $1); print $1, $2, $3, $4, ($10 == "" ? 0 : $10) }
		/per-op statistics/ { ops = 1 }'
}
op_count() { op_stats "$1" | awk -v o="$2" '$1 == o { n = $2 } END { print n + 0 }'; }
# assert_clean_stats DIR: nothing was sent twice and nothing timed out.
assert_clean_stats() {
	local bad
	bad=$(op_stats "$1" | awk '$3 != $2 || $4 != 0')
	[ -z "$bad" ] || die "retransmitted or timed out (op ops transmissions timeouts errors): $bad"
	[ "$PROTO" != rdma ] || same "replies that match no call" 0 "$(rdma_counter "$1" bad-xids)"
}

vm_prog() {
	local prog=$VMPROG/$1
	shift
	"$prog" "$@"
}
