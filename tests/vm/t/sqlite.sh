#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Two clients on one SQLite database: its locks, its journals, and what remains of a transaction whose process or whose server dies. The
# database is whole at the end, for both clients and on the server. A log (WAL) needs memory that its users share, so it is for
# the processes of one client; another one can have the database afterwards.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ] && { [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; }; then
	t_begin "SQLite"
	t_skip "locks of NFSv3 need machines of their own for the clients"
	t_done
fi
settings="[nfs4]
lease_time = 10
grace_time = 10"
if [ "$VERS" = 3 ]; then
	tcp_listens 111 || rpcbind -w
	[ ! -e $STATE/kind ] || server_stop
	export RN_RPCBIND=yes
	vm_up
	server_with "$settings"
	clients_up
	for c in one two; do
		statd_up $c
		on $c eval "NFS_LOCK=lock nfs_mount 3 $PROTO /export/$FS /mnt/$c" || die "no mount"
	done
	wait_until 20 sh -c 'rpcinfo -p 127.0.0.1 | grep -q 100021'
else
	vm_up
	server_with "$settings"
	server_anew
	clients_mount || die "no mount"
fi
S=/export/$FS/sqlite
rm -rf "$S"
mkdir "$S"
N=${N:-25}

bank() { # CLIENT VERB FILE ARGUMENT...
	on "$1" python3 -B "$VMDIR/guest/bank.py" "$2" "/mnt/$1/sqlite/$3" "${@:4}"
}
whole() { # FILE MODE ROWS: for both, and on the server.
	local c
	for c in one two; do bank $c check "$@"; done
	python3 -B "$VMDIR/guest/bank.py" check "$S/$1" "${@:2}"
}
# together FILE MODE [COMMAND...]: both clients, with two processes each, which the command disturbs.
together() {
	local c i pids=()
	for c in one two; do
		for i in a b; do
			bank $c work "$1" "$2" $c$i "$N" &
			pids+=($!)
		done
	done
	[ $# -lt 3 ] || { sleep 1; "${@:3}"; }
	for i in "${pids[@]}"; do wait "$i" || die "a client failed"; done
}
journal() { # MODE
	bank one make "$1" "$1"
	together "$1" "$1"
	whole "$1" "$1" $((4 * N))
}
# hang CLIENT FILE MODE: a process that is in the middle of a transaction. hang_ends CLIENT: it dies.
hang() {
	on "$1" sh -c "rm -f /dev/shm/hang
		exec python3 -B $VMDIR/guest/bank.py hang /mnt/$1/sqlite/$2 $3 >/dev/shm/hang 2>&1 & echo \$! >/dev/shm/hang.pid"
	wait_until 60 on "$1" grep -q there /dev/shm/hang || die "no transaction"
}
hang_ends() { on "$1" sh -c 'kill -9 $(cat /dev/shm/hang.pid)'; }
# A process that dies in the middle leaves a journal, which the other client plays back.
hot_journal() {
	bank one make hot delete
	bank one work hot delete first "$N"
	hang one hot delete
	[ -e "$S/hot-journal" ] || die "no journal"
	hang_ends one
	bank two work hot delete second "$N"
	whole hot delete $((2 * N))
	[ ! -e "$S/hot-journal" ] || die "the journal is still there"
}
# Processes of one client share the log; when they are gone the other has the database, then the first one again.
log() {
	local i pids=()
	bank one make wal wal
	for i in a b c; do
		bank one work wal wal one$i "$N" &
		pids+=($!)
	done
	for i in "${pids[@]}"; do wait "$i" || die "a process failed"; done
	bank two check wal wal $((3 * N))
	bank two work wal wal two "$N"
	whole wal wal $((4 * N))
}
# Without shared memory a process keeps what it has locked until it ends. The other client is told that, and comes after it.
exclusive() {
	bank one make ex wal-exclusive
	hang one ex wal-exclusive
	fails_with "database is locked" bank two check ex delete 0
	hang_ends one
	bank one work ex wal-exclusive first "$N"
	bank two work ex wal-exclusive second "$N"
	bank one work ex wal-exclusive third "$N"
	whole ex wal-exclusive $((3 * N))
}
# Both are at work when the server dies and comes back.
restarted() {
	bank one make again delete
	together again delete eval "server_crash && server_again"
	whole again delete $((4 * N))
}

for mode in delete truncate persist; do t_run "journal mode $mode" journal $mode; done
t_run "a journal left behind" hot_journal
t_run "a log" log
t_run "a log without shared memory" exclusive
t_run "the server restarts" restarted
clients_umount
rm -rf "$S"
t_done
