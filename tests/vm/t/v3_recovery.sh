#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Locks of NFSv3 clients that outlive the server, and do not outlive the client: the status monitor (NSM) with Linux's.
# Needs --peers 2: a machine that serves by NLM cannot be a client of it, too.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "recovery of NFSv3's locks"
	t_skip "needs machines of their own for the clients"
	t_done
fi
export RN_RPCBIND=yes
GRACE=20
SETTINGS="[nfs4]
lease_time = 10
grace_time = $GRACE"
net_up || die "no network or RDMA device"
tcp_listens 111 || rpcbind -w
[ ! -e $STATE/kind ] || server_stop
rm -f $STATE/state/nlm-hosts $STATE/state/nfs4-clients.db*
mkdir -p $STATE
server_start "$(standard_exports)" "$SETTINGS"
S=/export/$FS/recovery3
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"
mount_client() { on "$1" eval "NFS_LOCK=lock nfs_mount 3 $PROTO /export/$FS /mnt/$1"; }
registered() { rpcinfo -p 127.0.0.1 | grep -q "$1"; }
clients_up
wait_until 20 registered 100021 || die "NLM is not registered"
wait_until 20 registered 100024 || die "the status monitor is not registered"
for c in one two; do
	statd_up $c
	mount_client $c || die "no mount"
done

hosts() { grep -c ^host $STATE/state/nlm-hosts; }

recorded() {
	both r
	file one r lock posix w 0 10
	same "hosts on record" 1 "$(hosts)"
	file two r lock posix w 10 10
	same "hosts on record" 2 "$(hosts)"
	neither r
}
# Both clients reclaim. A third range tells when grace is over: a new lock has to wait for that.
killed() {
	local start=$SECONDS
	both k
	file one k lock posix w 0 10
	file one k lock posix r 100 10
	file two k lock posix w 50 10
	server_crash
	server_again
	file two k lock posix w 200 10
	t_note "new locks after $((SECONDS - start)) s"
	busy two k lock posix w 0 10
	busy two k lock posix w 105 1
	busy one k lock posix w 50 10
	file one k write 0 reclaimed
	file one k sync
	same "data" reclaimed "$(head -c 9 "$S/k")"
	same "what is in the way" "w 0 10" "$(file two k test posix w 0 1)"
	file one k lock posix u 0 10
	file two k lock posix w 0 10
	neither k
}
# Locks that were reclaimed are reclaimed once more, the second time before all was reclaimed.
killed_twice() {
	both t
	file one t lock posix w 0 10
	file two t lock posix w 50 10
	server_crash
	server_again
	sleep 0.5
	server_crash
	server_again
	file one t lock posix w 200 10
	busy two t lock posix w 0 10
	busy one t lock posix w 50 10
	neither t
}
# The client's machine loses its power. Its locks stay, until it is back and says so.
rebooted() {
	both b
	file two b lock posix w 0 10
	busy one b lock posix w 0 10
	statd_keep two
	peer_die 2
	busy one b lock posix w 0 10
	peer_boot 2
	statd_kept two
	statd_up two
	busy one b lock posix w 0 10
	on two sm-notify
	wait_until 20 file one b lock posix w 0 10 || die "the locks of a client that restarted are still there"
	file one b stop
	mount_client two
	file two b start /mnt/two/recovery3/b rw
	file two b lock posix w 0 10
	file two b stop
}

t_run "hosts are on record" recorded
t_run "the server is killed" killed
t_run "the server is killed twice" killed_twice
t_run "a client restarts" rebooted
clients_umount
server_stop
rm -f $STATE/state/nlm-hosts
server_start "$(standard_exports)"
t_done
