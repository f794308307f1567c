#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# TLS between machines: client one mounts by TLS, two does not. Locks of NFSv3, which Linux asks for without TLS, and delegations.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/tls.sh"
. "$VMDIR/guest/clients.sh"
E=/export/$FS
S=$E/tlstwo
OPT=rw,insecure,no_subtree_check,no_root_squash,nfs_only
if [ "$PEERS" != 2 ]; then
	t_begin "TLS between machines"
	t_skip "the clients need machines of their own"
	t_done
fi

start() {
	rm -rf "$S"
	mkdir -p "$S/any" "$S/tls"
	tls_files
	clients_up
	mkdir -p /share/peer.1/tls
	cp $C/ca.pem /share/peer.1/tls/
	on one tls_peer_up || exit 77
	pidof rpcbind || rpcbind -w
	rm -f $STATE/state/nfs4-clients.db* # nobody is waited for, so there are delegations
	RN_RPCBIND=yes ringnfsd_start "$S/any *($OPT,fsid=91)
$S/tls *($OPT,xprtsec=tls:mtls,fsid=92)" "$(tls_settings no)
[nfs4]
lease_time = 10
grace_time = 10"
	if [ "$VERS" = 3 ]; then
		statd_up one
		statd_up two
		wait_until 20 sh -c 'rpcinfo -p 127.0.0.1 | grep -q 100021'
	fi
	touch $C/two
}

# mounts EXPORT: at one by TLS, at two, if the export lets it, without.
mounts() {
	export NFS_LOCK=lock
	on one eval "NFS_LOCK=lock NFS_HOST=$TLS_HOST nfs_mount $VERS tcp $S/$1 /mnt/one xprtsec=tls"
	on one grep -q " /mnt/one .*xprtsec=tls" /proc/mounts
	[ "$1" = tls ] || on two eval "NFS_LOCK=lock nfs_mount $VERS tcp $S/$1 /mnt/two"
}

# Both clients' locks are known to each other, though one of them reads and writes by TLS.
locks() {
	mounts any
	: >"$S/any/l"
	file one l start /mnt/one/l rw
	file two l start /mnt/two/l rw
	file one l lock posix w 0 10
	refused busy two l lock posix w 0 10
	file two l lock posix w 10 10
	refused busy one l lock posix w 10 10
	file one l write 0 by_tls
	file one l stop
	file two l lock posix w 0 10 60000
	same "data" by_tls "$(file two l read 0 6)"
	file two l stop
	clients_umount
}
# lock_once CLIENT FILE: the error's name, or "locked".
lock_once() {
	on "$1" python3 -c 'import errno, fcntl, sys
try:
	fcntl.lockf(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
	print("locked")
except OSError as e:
	print(errno.errorcode[e.errno])' "$2"
}
# Where TLS must be, a lock that is asked for without it is refused, and nothing is locked. Data go on.
refused_locks() {
	[ "$VERS" = 3 ] || { echo "NFSv4's locks go by the session"; exit 77; }
	mounts tls
	: >"$S/tls/l"
	same "a lock by a plain call" EACCES "$(lock_once one /mnt/one/l)"
	vm_prog vmfile start tls.local "$S/tls/l" rw
	vm_prog vmfile do tls.local lock posix w 0 10
	vm_prog vmfile stop tls.local
	on one sh -c 'echo unlocked >/mnt/one/l'
	same "data" unlocked "$(cat "$S/tls/l")"
	client_umount one
}
# The recall goes by the session of the client that has the delegation: encrypted, so that nobody sees a callback on the wire.
callbacks() {
	local n
	case $VERS in 3 | 4.0) echo "no delegations by TLS"; exit 77 ;; esac
	calls_start 1
	mounts any
	echo before >"$S/any/f"
	same "data" before "$(on one cat /mnt/one/f)"
	n=$(on one op_count /mnt/one DELEGRETURN)
	on two sh -c 'echo after >/mnt/two/f'
	same "DELEGRETURNs" 1 "$(returned_since one "$n")"
	same "data behind the recall" after "$(on one cat /mnt/one/f)"
	same "callbacks that can be read" "" "$(calls_stop 1)"
	# That of the client without TLS can be read.
	calls_start 2
	echo before >"$S/any/g"
	on two cat /mnt/two/g /mnt/two/g >/dev/null
	on two cat /mnt/two/g >/dev/null
	on one sh -c 'echo after >/mnt/one/g'
	same "flavours and numbers of plain callbacks" "1 1" "$(calls_stop 2)"
	clients_umount
}

net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
rm -f $C/two
t_run "certificates, the agent and the server" start
[ -e $C/two ] || t_done
t_run "locks by TLS and without" locks
t_run "a lock where TLS must be" refused_locks
t_run "delegations and callbacks" callbacks
t_run "the server is there" server_alive
server_stop
t_done
