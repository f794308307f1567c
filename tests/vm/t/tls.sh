#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# RPC-with-TLS (RFC 9289) with the Linux client, which has xprtsec= from 6.5 on, and its handshake agent tlshd.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/tls.sh"
E=/export/$FS
M=/mnt/tls
OPT=rw,insecure,no_subtree_check,no_root_squash

exports() {
	echo "$E *($OPT,fsid=91)"
	echo "$E/exp/tls *($OPT,xprtsec=tls:mtls,fsid=92)"
	echo "$E/exp/mtls *($OPT,xprtsec=mtls,fsid=93)"
}

start() {
	tls_possible
	mkdir -p $E/exp/tls $E/exp/mtls
	tls_files
	# Of another CA, for the server's own key.
	openssl req -x509 -key $C/server.key -out $C/stranger.pem -days 2 -subj "/CN=$TLS_HOST" -addext "subjectAltName=DNS:$TLS_HOST" 2>/dev/null
	agent_start ""
	rm -f $STATE/state/nfs4-clients.db* # nobody is waited for, so there are delegations
	ringnfsd_start "$(exports)" "$(tls_settings no)"
	touch $C/ready
}

# m XPRTSEC [EXPORT]
m() { NFS_HOST=$TLS_HOST nfs_mount "$VERS" tcp "$E${2:+/$2}" $M "${1:+xprtsec=$1}"; }

data() {
	dd if=/dev/urandom of=$M/data bs=256k count=64 status=none
	same "data on the server" "$(sum $M/data)" "$(sum "$E/${1:-}/data")"
	umount $M
	m "$2" "$1"
	same "data at the client" "$(sum $M/data)" "$(sum "$E/${1:-}/data")"
	assert_clean_stats $M
	for i in $(seq 50); do echo "$i" >"$M/f$i"; done
	same "names" 50 "$(ls $M | grep -c '^f')"
	rm $M/f*
	rm $M/data
	umount $M
}

by_tls() {
	m tls exp/tls
	grep -q " $M .*xprtsec=tls" /proc/mounts || die "$(grep $M /proc/mounts)"
	data exp/tls tls
}
refused() {
	fails_with "" m "" exp/tls
	fails_with "" m "" exp/mtls
	fails_with "" m tls exp/mtls
	m ""
	umount $M
}
mutual() {
	agent_start "x509.certificate=$C/client.pem
x509.private_key=$C/client.key"
	m mtls exp/mtls
	data exp/mtls mtls
}
# The client's own sessions are the kernel's too, in both directions; the server's only send.
by_kernel() {
	local sent received
	server_stop
	ringnfsd_start "$(exports)" "$(tls_settings yes)"
	m tls exp/tls
	data exp/tls tls
	sent=$(awk '$1 == "TlsTxSw" { print $2 }' /proc/net/tls_stat)
	received=$(awk '$1 == "TlsRxSw" { print $2 }' /proc/net/tls_stat)
	t_note "sessions of the kernel that send: $sent, that receive: $received"
	[ "$sent" -gt "$received" ] || die "the server's sessions are not the kernel's: $sent, $received"
}
# Pages of files go to the kernel's sessions.
by_pipes() { TMPDIR=/export/$FS RINGNFSD=$(ringnfsd_path) python3 -B "$SOURCE/tests/net/tls_kernel.py"; }
hold() { vm_prog vmfile "$@"; }
# A lock that a client has under TLS is its own again when the server comes back. The server's own processes see it.
locks() {
	local out
	[ "$VERS" != 3 ] || { echo "mounted with nolock"; exit 77; }
	m tls exp/tls
	: >$M/lock
	hold start tls.client $M/lock rw
	hold start tls.local $E/exp/tls/lock rw
	hold do tls.client lock posix w 0 10
	server_crash
	server_again
	hold do tls.client lock posix w 20 10 # a new one: not before the grace period has ended
	if out=$(hold do tls.local lock posix w 5 1); then die "another got the lock: $out"; fi
	same "the lock, as another sees it" busy "$out"
	hold do tls.local lock posix w 40 1
	hold do tls.client write 0 reclaimed
	hold do tls.client sync
	same "data under the lock" reclaimed "$(head -c 9 $E/exp/tls/lock)"
	hold stop tls.client
	hold stop tls.local
	rm $M/lock
	umount $M
}
# A recall goes over the client's session, and so by TLS. A client of 4.0 would be called over a connection of its own, which would
# be plain: it gets no delegation.
callbacks() {
	local opens returns F=$E/exp/tls/recalled
	[ "$VERS" != 3 ] || { echo "NFSv3 has none"; exit 77; }
	m tls exp/tls
	echo before >$F
	same "data" before "$(cat $M/recalled)"
	same "data" before "$(cat $M/recalled)"
	opens=$(op_count $M OPEN)
	same "data again" before "$(cat $M/recalled)"
	opens=$(($(op_count $M OPEN) - opens))
	returns=$(op_count $M DELEGRETURN)
	echo after >$F
	same "data behind the recall" after "$(cat $M/recalled)"
	returns=$(($(op_count $M DELEGRETURN) - returns))
	case $VERS in
	4.0) same "OPENs, DELEGRETURNs" "1 0" "$opens $returns" ;;
	*) same "OPENs, DELEGRETURNs" "0 1" "$opens $returns" ;;
	esac
	umount $M
}
# rekeyed OUTCOME: of a call behind a change of keys.
rekeyed() {
	local how
	m tls exp/tls
	for how in k K; do
		same "calls before and behind $how" "answered $1" \
			"$(PYTHONPATH=$SOURCE/tests/net python3 -B "$VMDIR/guest/rekey.py" "$NFSPORT" $how)"
	done
	echo "beside it" >$M/rekeyed
	same "the mount" "beside it" "$(cat $E/exp/tls/rekeyed)"
	umount $M
}
reload() {
	local before
	before=$(grep -c "$1" /share/ringnfsd.log || :)
	server_reload
	wait_until 30 eval "[ \"\$(grep -c '$1' /share/ringnfsd.log)\" -gt $before ]"
}
# The mounted client keeps its session. New sessions have the new certificate, which this client does not trust.
new_certificate() {
	m tls exp/tls
	echo one >$M/renewed
	cp $C/server.pem $C/kept.pem
	echo nonsense >$C/server.pem
	reload "the old TLS certificate stays in use"
	umount $M
	m tls exp/tls
	cp $C/stranger.pem $C/server.pem
	reload "the TLS certificate was read again"
	echo two >>$M/renewed
	drop_caches
	same "content at the mounted client" "one two" "$(tr '\n' ' ' <$M/renewed | sed 's/ $//')"
	umount $M
	fails_with "" m tls exp/tls
	cp $C/kept.pem $C/server.pem
	reload "the TLS certificate was read again"
	m tls exp/tls
	same "content at a new mount" "one two" "$(tr '\n' ' ' <$M/renewed | sed 's/ $//')"
	rm $M/renewed
	umount $M
}
# A client comes back after a restart of the server.
restart() {
	m tls
	echo before >$M/restart
	server_crash
	server_again
	echo after >>$M/restart
	same "content" "before after" "$(tr '\n' ' ' <$E/restart | sed 's/ $//')"
	umount $M
}

net_up || die "no network"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE $M
rm -f $C/ready
t_run "certificates, the agent and the server" start
[ -e $C/ready ] || t_done
t_run "data by TLS" by_tls
t_run "exports refuse less" refused
t_run "data by mutual TLS" mutual
t_run "delegations and callbacks" callbacks
t_run "a change of keys" rekeyed answered
t_run "the server is killed and starts again" restart
t_run "a lock outlives the server" locks
t_run "certificates are replaced under a mounted client" new_certificate
t_run "data, encrypted by the kernel" by_kernel
t_run "pages of files, encrypted by the kernel" by_pipes
t_run "delegations and callbacks, with kernel TLS" callbacks
t_run "a change of keys, with kernel TLS" rekeyed closed
t_run "the server is killed and starts again, with kernel TLS" restart
t_run "a lock outlives the server, with kernel TLS" locks
t_run "certificates are replaced, with kernel TLS" new_certificate
t_run "the server is there" server_alive
server_stop
agent_stop
t_done
