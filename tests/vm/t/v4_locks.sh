#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Byte-range locks of two clients, and of a process on the server.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ]; then
	t_begin "locks"
	t_skip "NFSv3 has its own protocol for them"
	t_done
fi
vm_up
S=/export/$FS/locks
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"
clients_mount || die "no mounts"

# both NAME: it is open at both clients, by the same name.

# contention KIND: what conflicts and what does not.
contention() {
	local k=$1
	both "c.$k"
	file one "c.$k" lock "$k" w 0 10
	busy two "c.$k" lock "$k" w 0 10
	busy two "c.$k" lock "$k" r 9 1
	file two "c.$k" lock "$k" w 10 10
	busy one "c.$k" lock "$k" r 0 0
	same "what is in the way" "w 0 10" "$(file two "c.$k" test "$k" w 5 1)"
	same "nothing is in the way" free "$(file two "c.$k" test "$k" w 20 100)"
	# Readers share; none of them can become a writer.
	file one "c.$k" lock "$k" r 100 50
	file two "c.$k" lock "$k" r 120 50
	busy one "c.$k" lock "$k" w 100 50
	file one "c.$k" lock "$k" w 100 20
	busy two "c.$k" lock "$k" r 119 1
	file one "c.$k" lock "$k" r 100 20
	file two "c.$k" lock "$k" r 119 1
	# Far away, and to the end of the file wherever that will be.
	file one "c.$k" lock "$k" w 9223372036854775000 100
	busy two "c.$k" lock "$k" r 9223372036854775050 1
	file two "c.$k" lock "$k" w $((5 << 30)) 4096
	file one "c.$k" lock "$k" u 9223372036854775000 100
	file two "c.$k" lock "$k" w $((6 << 30)) 0
	busy one "c.$k" lock "$k" w 9223372036854775806 1
	neither "c.$k"
}
# splitting KIND
splitting() {
	local k=$1
	both "s.$k"
	file one "s.$k" lock "$k" w 0 100
	file one "s.$k" lock "$k" u 40 20
	busy two "s.$k" lock "$k" w 39 1
	busy two "s.$k" lock "$k" w 60 1
	file two "s.$k" lock "$k" w 40 20
	busy one "s.$k" lock "$k" w 0 100
	same "the hole" "w 40 20" "$(file one "s.$k" test "$k" r 0 1000)"
	file two "s.$k" lock "$k" u 0 0
	# A part becomes weaker, and strong again by a lock over all of it.
	file one "s.$k" lock "$k" r 10 10
	file two "s.$k" lock "$k" r 12 4
	busy two "s.$k" lock "$k" r 9 2
	busy one "s.$k" lock "$k" w 0 100
	file two "s.$k" lock "$k" u 12 4
	file one "s.$k" lock "$k" w 0 100
	same "merged" "w 0 100" "$(file two "s.$k" test "$k" r 50 1)"
	# Many pieces: each second byte.
	for i in 1 3 5 7 9 11 13 15; do file one "s.$k" lock "$k" u $i 1; done
	for i in 1 3 5 7 9 11 13 15; do file two "s.$k" lock "$k" w $i 1; done
	busy two "s.$k" lock "$k" w 8 1
	busy one "s.$k" lock "$k" w 7 1
	file one "s.$k" lock "$k" u 0 0
	file two "s.$k" lock "$k" w 0 100
	neither "s.$k"
}
# waiting KIND: a waiter gets it after it was given back, another goes away with nothing.
waiting() {
	local k=$1 pid
	both "w.$k"
	file one "w.$k" lock "$k" w 0 0
	refused timeout two "w.$k" lock "$k" w 0 0 300
	file two "w.$k" lock "$k" w 0 0 60000 &
	pid=$!
	sleep 1
	kill -0 $pid
	file one "w.$k" lock "$k" u 0 0
	wait $pid
	busy one "w.$k" lock "$k" r 0 1
	neither "w.$k"
}
# told KIND: from 4.1 on the server tells a waiter when the lock is free (CB_NOTIFY_LOCK). So it asks twice, however long it
# waits. A client that expects no word asks after 1 and 2 seconds more; one that expects it and gets none, after 30.
told() {
	local k=$1 pid before since=$SECONDS
	both "t.$k"
	file one "t.$k" lock "$k" w 0 0
	before=$(on two op_count /mnt/two LOCK)
	file two "t.$k" lock "$k" w 0 0 29000 &
	pid=$!
	sleep 3
	file one "t.$k" lock "$k" u 0 0
	wait $pid || die "no lock after $((SECONDS - since)) s, and $(($(on two op_count /mnt/two LOCK) - before)) LOCKs"
	same "LOCKs that the waiter sent" 2 "$(($(on two op_count /mnt/two LOCK) - before))"
	neither "t.$k"
}
# A process that ends, or closes the file, leaves no locks behind.
ended() {
	both ended
	file one ended lock posix w 0 10
	file one ended lock ofd w 20 10
	busy two ended lock posix w 5 1
	file one ended stop
	file two ended lock posix w 0 100
	file two ended reopen # POSIX: any close of the file gives them back
	file one ended start /mnt/one/locks/ended rw
	file one ended lock posix w 0 100
	neither ended
}
flocks() {
	both f
	file one f lock flock r 0 0
	file two f lock flock r 0 0
	busy one f lock flock w 0 0
	file two f lock flock u 0 0
	file one f lock flock w 0 0
	busy two f lock flock r 0 0
	# Over NFS it is a lock on all bytes.
	busy two f lock posix w 17 1
	file one f lock flock u 0 0
	file two f lock posix r 17 1
	busy one f lock flock w 0 0
	neither f
}
# Two descriptors of one client are two owners; so are a process and a descriptor of another.
owners() {
	both o
	file one o2 start /mnt/one/locks/o rw
	file one o lock ofd w 0 10
	busy one o2 lock ofd w 5 1
	busy two o lock ofd w 5 1
	busy one o2 lock posix w 5 1
	file one o2 lock posix w 10 5
	busy two o lock posix r 14 1
	file one o2 stop
	file two o lock posix r 14 1
	neither o
}
# Data written under a lock by one client are read under it by the other.
counters() {
	local n=12 k pid
	for k in posix ofd flock; do
		: >"$S/count.$k"
		on one vm_prog vmfile counter "/mnt/one/locks/count.$k" $n $k &
		pid=$!
		on two vm_prog vmfile counter "/mnt/two/locks/count.$k" $n $k
		wait $pid
		same "both counted by $k" "$(printf %010d $((2 * n)))" "$(cat "$S/count.$k")"
	done
}
# A local process, by either kind of lock, and both ways.
local_process() {
	local k
	both l
	vm_prog vmfile start l "$S/l" rw
	for k in posix ofd; do
		file one l lock $k w 0 10
		file two l lock posix r 20 10
		refused_here busy l lock $k r 5 1
		refused_here busy l lock $k w 25 1
		vm_prog vmfile do l lock $k r 22 1
		vm_prog vmfile do l lock $k w 100 10
		busy one l lock $k r 105 1
		same "what the client sees" "w 100 10" "$(file two l test posix r 90 30)"
		vm_prog vmfile do l lock $k u 0 0
		file one l lock $k w 100 10
		file one l lock $k u 0 0
		file two l lock posix u 0 0
		vm_prog vmfile do l lock $k w 0 0
		busy one l lock $k r 0 1
		vm_prog vmfile do l lock $k u 0 0
	done
	neither l
	vm_prog vmfile do l lock posix w 0 0
	vm_prog vmfile stop l
}
refused_here() {
	local text=$1 out
	shift
	if out=$(vm_prog vmfile do "$@"); then die "succeeded but should not: $*"; fi
	same "$*" "$text" "$out"
}
# A read-only descriptor takes read locks, a write-only one write locks.
modes() {
	: >"$S/m"
	file one m start /mnt/one/locks/m r
	file two m start /mnt/two/locks/m w
	file one m lock posix r 0 10
	busy two m lock posix w 0 10
	refused "Bad file descriptor" one m lock posix w 20 1
	file one m lock posix u 0 10
	file two m lock posix w 0 10
	neither m
}

for k in posix ofd; do
	t_run "contention, $k" contention $k
	t_run "splitting and merging, $k" splitting $k
done
for k in posix ofd flock; do t_run "a waiter, $k" waiting $k; done
[ "$VERS" = 4.0 ] || for k in posix flock; do t_run "a waiter is told, $k" told $k; done
t_run "flock" flocks
t_run "owners" owners
t_run "locks of what ended" ended
t_run "open modes" modes
t_run "a counter under locks" counters
t_run "a local process on the server" local_process
clients_umount
t_done
