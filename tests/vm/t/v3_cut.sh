#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Locks of NFSv3 clients whose network is cut: of the client that holds one, of the one that waits, and of one that unlocks
# meanwhile. And very many locks (MANY) of one client, reclaimed after a crash of the server.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "NFSv3's locks over a network that is cut"
	t_skip "needs machines of their own for the clients"
	t_done
fi
CUT=${CUT:-8}
# In the full run, by TCP, with the time to reclaim so many one after the other.
if [ -n "${FULL:-}" ] && [ "$RDMA" = none ]; then : "${MANY:=10000}" "${GRACE:=180}"; fi
MANY=${MANY:-1000}
export RN_RPCBIND=yes
SETTINGS="[nfs4]
lease_time = 10
grace_time = ${GRACE:-15}"
net_up || die "no network or RDMA device"
tcp_listens 111 || rpcbind -w
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
server_start "$(standard_exports)" "$SETTINGS"
S=/export/$FS/cut3
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"
registered() { rpcinfo -p 127.0.0.1 | grep -q "$1"; }
clients_up
wait_until 20 registered 100021 || die "NLM is not registered"
for c in one two; do
	statd_up $c
	on $c eval "NFS_LOCK=lock nfs_mount 3 $PROTO /export/$FS /mnt/$c" || die "no mount"
done


# The lock of a client that is cut off stays, and is given to the waiter when it is unlocked.
holder() {
	local pid start
	both h
	file one h lock posix w 0 10
	net_cut one
	file two h lock posix w 0 10 120000 &
	pid=$!
	sleep "$CUT"
	kill -0 $pid || die "it did not wait"
	net_heal one
	file one h lock posix u 0 10
	start=$SECONDS
	wait $pid
	t_note "granted $((SECONDS - start)) s after the unlock"
	busy one h lock posix r 0 1
	neither h
}
# The lock of a waiter that is cut off when it is granted is kept for it.
waiter() {
	local pid start
	both w
	file one w lock posix w 0 10
	file two w lock posix w 0 10 120000 &
	pid=$!
	sleep 2
	net_cut two
	sleep 1
	file one w lock posix u 0 10
	sleep "$CUT"
	busy one w lock posix w 0 10
	net_heal two
	start=$SECONDS
	wait $pid
	t_note "granted $((SECONDS - start)) s after the cut"
	busy one w lock posix r 0 1
	file two w lock posix u 0 10
	file one w lock posix w 0 10
	neither w
}
# An unlock that cannot be sent is sent later.
unlock() {
	local pid
	both u
	file two u lock posix w 0 10
	net_cut two
	file two u lock posix u 0 10 &
	pid=$!
	sleep "$CUT"
	busy one u lock posix w 0 10
	net_heal two
	wait $pid
	wait_until 60 file one u lock posix w 0 10 || die "the unlock did not come"
	neither u
}
held() { on two python3 "$VMDIR/guest/many_locks.py" /mnt/two/cut3/many "$MANY" check; }
all_held() { [ "$(held)" -ge 100 ]; }
many() {
	local start=$SECONDS pid
	: >"$S/many"
	on one python3 "$VMDIR/guest/many_locks.py" /mnt/one/cut3/many "$MANY" &
	pid=$!
	wait_until 600 on one test -e /run/many.taken || die "they are not taken"
	t_note "$MANY locks in $((SECONDS - start)) s"
	all_held || die "only $(held) of 100 are held"
	server_crash
	server_again
	# A lock that has to wait for the end of grace.
	file two many start /mnt/two/cut3/many rw
	file two many lock posix w $((4 * MANY)) 1
	all_held || die "only $(held) of 100 were reclaimed"
	file two many stop
	on one rm /run/many.taken
	wait $pid
	same "held at the end" 0 "$(held)"
}

t_run "the holder is cut off" holder
t_run "the waiter is cut off" waiter
t_run "an unlock is cut off" unlock
t_run "very many locks and a crash" many
clients_umount
server_stop
rm -f $STATE/state/nlm-hosts
server_start "$(standard_exports)"
t_done
