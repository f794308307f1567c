#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Delegations: what the client leaves out while it has one, and who gets it back: another client, another version of NFS, a local
# process; over a restart of the server, and from a client that is cut off. Those to write: what others see of the file meanwhile.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
case $VERS/$PROTO in
3/* | 4.0/rdma)
	t_begin "delegations"
	t_skip "NFSv3 has none, and clients of 4.0 are called back by TCP only"
	t_done
	;;
esac
LEASE=10
vm_up
server_with "[nfs4]
lease_time = $LEASE
grace_time = $LEASE"
server_anew # no delegations are given during a grace period
S=/export/$FS/deleg
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"
added=$STATE/exports.d/deleg.exports
echo "$S *(rw,sync,no_subtree_check,insecure,no_root_squash,nfs_only,fsid=91${SEC:+,sec=$SEC})" >"$added"
server_reload
clients_up
# Attributes of directories are believed for an hour, those of files for a second: so it is the delegation that spares questions.
cached=acregmin=1,acregmax=1,acdirmin=3600,acdirmax=3600
client_mount one "$VERS" "$S" $cached || die "no mount"
client_mount two "$VERS" "$S" $cached || die "no mount"
one=/mnt/one two=/mnt/two

ops() { on one op_count $one "$1"; }
# quiet WHAT COMMAND...: the command sends neither OPEN nor CLOSE, and asks for no attributes.
quiet() {
	local what=$1 o c g a
	shift
	o=$(ops OPEN) c=$(ops CLOSE) g=$(ops GETATTR) a=$(ops ACCESS)
	"$@"
	same "$what: OPENs, CLOSEs, GETATTRs, ACCESSes" "0 0 0 0" \
		"$(($(ops OPEN) - o)) $(($(ops CLOSE) - c)) $(($(ops GETATTR) - g)) $(($(ops ACCESS) - a))"
}
reads() { # CLIENT NAME TEXT
	same "$1 reads $2" "$3" "$(on "$1" cat "/mnt/$1/$2")"
}
writes() { # CLIENT NAME TEXT
	on "$1" sh -c "echo '$3' >/mnt/$1/$2"
}
# delegated NAME: a file that client one has read, and keeps. No client made it: the maker would have a delegation to write, and
# once that is recalled nobody gets one for a while.
delegated() {
	[ -z "${SEC:-}" ] || warm
	delegated_at_once "$1"
}
delegated_at_once() {
	echo before >"$S/$1"
	reads one "$1" before
	reads one "$1" before
	sleep 1.1
	quiet "$1 again" reads one "$1" before
}
# Until client one is given delegations. Under Kerberos the path to it needs a while after a mount or a restart: with a lease as short as
# here, the first try to call a client of 4.0 may come too late.
warm() {
	local try
	for ((try = 1; try <= 20; try++)); do
		(delegated_at_once "warm.$EPOCHREALTIME") >/dev/null 2>&1 && return
	done
	die "no delegation in $try tries"
}
# The client also returns by itself what it has not used for a while.
returned() { # NAME COMMAND...: the command gets the delegation back.
	local n=-1
	# What was recalled before has come back.
	until [ "$n" = "$(ops DELEGRETURN)" ]; do
		n=$(ops DELEGRETURN)
		sleep 0.5
	done
	"${@:2}"
	[ "$(returned_since one "$n")" -ge 1 ] || die "no DELEGRETURN for $1"
}

granted() {
	local i
	delegated granted
	for i in 1 2 3; do quiet "the same file, time $i" reads one granted before; done
	file one g start $one/granted r
	quiet "beside an open" reads one granted before
	file one g stop
}
to_the_other() {
	delegated other
	returned other writes two other after
	reads one other after
}
# The other client changes it in each way that is no OPEN.
changed() {
	local how
	for how in "chmod 600" "truncate -s 3" "touch -d 2001-01-01" "ln -T" "mv -T" "rm"; do
		delegated "c.${how%% *}"
		case $how in
		ln* | mv*) returned "$how" on two sh -c "$how $two/c.${how%% *} $two/to.${how%% *}" ;;
		*) returned "$how" on two sh -c "$how $two/c.${how%% *}" ;;
		esac
	done
	sleep 1.1
	reads one c.truncate bef
	same "mode" 600 "$(on one stat -c %a $one/c.chmod)"
}
by_v3() {
	delegated v3
	client_mount two 3 "$S" nolock /mnt/three
	returned v3 on two sh -c 'echo three >/mnt/three/v3'
	on two umount /mnt/three
	reads one v3 three
}
# Files that are open at the client, by OPENs that it has not sent: it claims them, and reads on.
still_open() {
	delegated open
	file one o start $one/open r
	file one o2 start $one/open r
	returned open writes two open after
	sleep 1.1
	same "by the first" after "$(file one o read 0 5)"
	same "by the second" after "$(file one o2 read 0 5)"
	file one o stop
	file one o2 stop
	reads one open after
}
# Readers do not take it away from each other.
shared() {
	delegated shared
	reads two shared before
	reads two shared before
	quiet "beside another reader" reads one shared before
}
# A client that writes itself keeps what it has read.
own_write() {
	delegated own
	writes one own mine
	reads one own mine
	reads two own mine
}
restarted() {
	delegated over
	file one r start $one/over r
	server_kill9
	ringnfsd_launch
	same "data" before "$(file one r read 0 6)"
	wait_until 60 eval "[ \"\$(on one cat $one/over)\" = before ]"
	returned over writes two over after
	sleep 1.1
	same "what it reads" after "$(file one r read 0 5)"
	file one r stop
}
# The holder is cut off: its delegation goes within two leases.
cut_off() {
	local start=$SECONDS
	echo before >"$S/cut"
	reads two cut before
	reads two cut before
	net_cut two
	writes one cut after
	t_note "taken after $((SECONDS - start)) s"
	net_heal two
	wait_until 120 eval "[ \"\$(on two cat $two/cut)\" = after ]" || die "two reads $(on two cat $two/cut)"
}

# A file that a client writes: further opens and closes are its own, and each close has written the data.
to_write() {
	local i o c
	on one sh -c "echo 1 >>$one/wr"
	o=$(ops OPEN) c=$(ops CLOSE)
	for i in 2 3 4; do on one sh -c "echo $i >>$one/wr"; done
	same "OPENs, CLOSEs" "0 0" "$(($(ops OPEN) - o)) $(($(ops CLOSE) - c))"
	same "on the server" "1 2 3 4 " "$(tr '\n' ' ' <"$S/wr")"
	returned wr reads two wr $'1\n2\n3\n4'
	returned_not wr2 writes one wr2 mine
	same "the other's" mine "$(on two cat $two/wr2)"
}
returned_not() { # NAME COMMAND...: nobody gets the delegation back for that
	local n
	n=$(ops DELEGRETURN)
	"${@:2}"
	same "DELEGRETURNs for $1" 0 "$(($(ops DELEGRETURN) - n))"
}
sees() { same "size that $1 sees" "$3" "$(on "$1" stat -c %s "/mnt/$1/$2")"; }
# The other sees the size that the file has at its writer, which goes on; and the data once it opens the file.
sizes() {
	file one w start $one/sz wc
	file one w write 0 hello
	sleep 1.1
	t_note "on the server: $(stat -c %s "$S/sz")" # 0, if the client has not written by itself
	returned_not sz sees two sz 5
	file one w write 5 and_on
	sleep 1.1
	returned_not sz sees two sz 11
	file one w truncate 7
	sleep 1.1
	returned_not sz sees two sz 7
	returned sz reads two sz helloan
	file one w write 7 D
	file one w stop
	sleep 1.1
	reads two sz helloanD
}
# Locks that the writer holds by itself go to the server with the recall.
locked() {
	file one l start $one/lk rwc
	file one l lock posix w 0 0
	returned lk file two l start $two/lk rw
	refused busy two l lock posix w 0 0
	file one l stop
	file two l lock posix w 0 0 60000
	file two l stop
}
write_restarted() {
	file one w start $one/wo rwc
	file one w write 0 before
	server_kill9
	ringnfsd_launch
	file one w write 0 after
	file one w sync
	reads two wo aftere
	file one w stop
}

# Below an export that local processes change, too: who opens a file there to write waits for the client.
local_writer() {
	local L=/export/$FS/deleg_local l=/mnt/local/deleg_local o n
	rm -rf "$L"
	mkdir "$L"
	echo before >"$L/f"
	client_mount one "$VERS" "/export/$FS" $cached /mnt/local
	same "data" before "$(on one cat $l/f)"
	same "data" before "$(on one cat $l/f)" # the owner of the first OPEN by 4.0 is not confirmed yet
	o=$(on one op_count /mnt/local OPEN)
	sleep 1.1
	same "data again" before "$(on one cat $l/f)"
	same "OPENs" 0 "$(($(on one op_count /mnt/local OPEN) - o))"
	n=$(on one op_count /mnt/local DELEGRETURN)
	echo after >"$L/f"
	same "DELEGRETURNs" 1 "$(returned_since one "$n" /mnt/local)"
	sleep 1.1
	same "data of the local process" after "$(on one cat $l/f)"
	on one umount /mnt/local
}

# The same of a file that the client has open to write: a local process that reads it waits. The client still has the file open
# afterwards, and may keep what it has neither synced nor closed: on a recall Linux's client does not write that back.
local_reader() {
	local L=/export/$FS/deleg_local l=/mnt/local/deleg_local n
	rm -rf "$L"
	mkdir "$L"
	echo before >"$L/f"
	client_mount one "$VERS" "/export/$FS" $cached /mnt/local
	file one w start $l/f rw
	file one w write 0 synced
	file one w sync
	file one w write 0 after!
	n=$(on one op_count /mnt/local DELEGRETURN)
	t_note "a local process reads $(cat "$L/f")"
	same "DELEGRETURNs" 1 "$(returned_since one "$n" /mnt/local)"
	file one w stop
	same "data after the close" after! "$(cat "$L/f")"
	echo local >"$L/f"
	sleep 1.1
	same "data of the local process" local "$(on one cat $l/f)"
	on one umount /mnt/local
}

t_run "a file that is opened again" granted
t_run "two readers" shared
t_run "recalled by another client's open" to_the_other
t_run "recalled by changes" changed
t_run "recalled by NFSv3" by_v3
t_run "recalled while it is open" still_open
t_run "one's own changes" own_write
t_run "recalled by a local process" local_writer
if [ "$VERS" != 4.0 ]; then
	t_run "recalled by a local process that reads" local_reader
	t_run "a file that is written again" to_write
	t_run "sizes of a file that is being written" sizes
	t_run "locks of its writer" locked
	t_run "its writer, over a restart" write_restarted
fi
t_run "over a restart" restarted
t_run "a holder that is cut off" cut_off
on one umount $one
on two umount $two
rm "$added"
server_with ""
t_done
