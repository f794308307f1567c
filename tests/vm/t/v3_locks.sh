#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Locks of NFSv3 clients (NLM): between two machines, with a client of NFSv4, with a process on the server.
# Needs --peers 2: a machine that serves by NLM cannot be a client of it, too.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "locks"
	t_skip "needs machines of their own for the clients"
	t_done
fi
rpcbind -w
RN_RPCBIND=yes vm_up
S=/export/$FS/locks3
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"
clients_up
for c in one two; do
	statd_up $c
	on $c eval "NFS_LOCK=lock nfs_mount 3 $PROTO /export/$FS /mnt/$c" || die "no mount"
done
wait_until 20 sh -c 'rpcinfo -p 127.0.0.1 | grep -q 100021'

# Datagrams: programs at the ports that rpcbind tells, and MOUNT. The client has another address of the server.
by_udp() {
	local p
	for p in "100005 3" "100021 1" "100021 3" "100021 4" "100011 1" "100011 2"; do
		on one eval "rpcinfo -u \$ADDR $p" || die "program $p does not answer"
	done
	on one eval "rpcinfo -u \$ADDR 100003 3" && die "NFS is served over UDP without being asked for"
	on one nfs_mount 3 "$PROTO" "/export/$FS" /mnt/udp mountproto=udp || die "no MOUNT over UDP"
	on one ls /mnt/udp/locks3 || die "nothing is mounted"
	on one umount /mnt/udp
	on one eval "showmount -e \$ADDR" | grep "/export/$FS" || die "no list of exports"
}


contention() {
	both c
	file one c lock posix w 0 10
	busy two c lock posix w 0 10
	file two c lock posix w 10 10
	busy one c lock posix r 0 0
	same "what is in the way" "w 0 10" "$(file two c test posix w 5 1)"
	file one c lock posix r 100 50
	file two c lock posix r 120 50
	busy one c lock posix w 100 50
	file one c lock posix w $((5 << 30)) 0
	busy two c lock posix r $((6 << 30)) 1
	neither c
}
splitting() {
	both s
	file one s lock posix w 0 100
	file one s lock posix u 40 20
	busy two s lock posix w 39 1
	file two s lock posix w 40 20
	busy one s lock posix w 0 100
	file two s lock posix u 0 0
	file one s lock posix w 0 100
	busy two s lock posix r 50 1
	neither s
}
# The process is gone, and so are its locks.
ended() {
	both e
	file one e lock posix w 0 0
	busy two e lock posix r 0 1
	file one e stop
	file two e lock posix w 0 0
	file one e start /mnt/one/locks3/e rw
	neither e
}
# The waiter is called when the lock is free. By itself a Linux client would ask after 30 seconds.
waiting() {
	local pid start
	both w
	file one w lock posix w 0 0
	file two w lock posix w 0 0 60000 &
	pid=$!
	sleep 2
	start=$SECONDS
	file one w lock posix u 0 0
	wait $pid
	[ $((SECONDS - start)) -lt 28 ] || die "the waiter was not called"
	t_note "granted after $((SECONDS - start)) s"
	busy one w lock posix r 0 1
	neither w
}
# The same for a local process, of whose unlock the kernel tells nothing.
waiting_local() {
	local pid start
	both l
	vm_prog vmfile start here "$S/l" rw
	vm_prog vmfile do here lock posix w 0 10
	file two l lock posix w 0 10 60000 &
	pid=$!
	sleep 3
	start=$SECONDS
	vm_prog vmfile do here lock posix u 0 10
	wait $pid
	[ $((SECONDS - start)) -lt 28 ] || die "the waiter was not called"
	t_note "granted after $((SECONDS - start)) s"
	fails_with busy vm_prog vmfile do here lock posix r 0 1
	vm_prog vmfile stop here
	neither l
}
# A waiter that gives up does not get the lock.
gives_up() {
	both g
	file one g lock posix w 0 0
	refused timeout two g lock posix w 0 0 1000
	file one g lock posix u 0 0
	file one g lock posix w 0 0
	neither g
}
# Nor does one that is killed.
killed() {
	local pid
	both d
	file one d lock posix w 0 0
	file two d lock posix w 0 0 60000 &
	pid=$!
	sleep 1
	on two sh -c 'pidof vmfile | xargs -r kill -9'
	wait $pid || true
	file one d lock posix u 0 0
	wait_until 20 file one d lock posix w 0 0 || die "the lock is with a process that is gone"
	file one d stop
}
# A client of NFSv4 on the server's machine, and a local process.
others() {
	[ "$KERNEL" != native ] || { echo 'this machine is no client'; exit 77; }
	both o
	nfs_mount 4.2 "$PROTO" "/export/$FS" /mnt/four
	vm_prog vmfile start four /mnt/four/locks3/o rw
	vm_prog vmfile start here "$S/o" rw
	file one o lock posix w 0 10
	vm_prog vmfile do four lock posix w 10 10
	vm_prog vmfile do here lock posix w 20 10
	busy two o lock posix r 5 1
	busy two o lock posix r 15 1
	busy two o lock posix r 25 1
	fails_with busy vm_prog vmfile do four lock posix r 0 1
	fails_with busy vm_prog vmfile do here lock posix r 0 1
	file one o lock posix u 0 10
	vm_prog vmfile do four lock posix w 0 10
	busy one o lock posix r 0 1
	vm_prog vmfile stop four
	vm_prog vmfile stop here
	file two o lock posix w 0 0
	neither o
	umount /mnt/four
}

# An export that is drained: a lock waits without an error, and is granted afterwards.
drained() {
	local pid
	both d
	file one d lock posix w 0 10
	! "$BUILDDIR/ringnfsctl" drain --timeout 0 || die "nothing is held"
	file two d lock posix w 20 10 &
	pid=$!
	sleep 3
	kill -0 $pid || die "it did not wait"
	file one d lock posix u 0 10
	"$BUILDDIR/ringnfsctl" drain --timeout 60
	"$BUILDDIR/ringnfsctl" drain --cancel
	wait $pid
	busy one d lock posix r 20 1
	neither d
}

t_run "MOUNT, locks and quotas over UDP" by_udp
t_run "contention" contention
t_run "splitting and merging" splitting
t_run "locks of what ended" ended
t_run "a waiter" waiting
t_run "a waiter for a local process" waiting_local
t_run "a waiter that gives up" gives_up
t_run "a waiter that is killed" killed
t_run "NFSv4 and a local process" others
t_run "an export that is drained" drained
clients_umount
t_done
