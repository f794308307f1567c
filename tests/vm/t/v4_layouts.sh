#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Linux's client with layouts of flexible files (pNFS): two members of a cluster serve one file system, at ports of their own. It gets layouts
# from the first, and reads and writes at the second by NFSv3; when that dies, at the first.
. "$VMDIR/guest/lib.sh"
case $SERVER/$VERS in
ringnfsd/4.1 | ringnfsd/4.2) ;;
*) t_begin layouts; t_skip "only ringnfsd has them, for clients of 4.1 and 4.2"; t_done ;;
esac
vm_up
PORT2=2060 RDMAPORT2=20060
FILES=16 SIZE=1500000
S=/export/$FS/layouts
NFS4="[nfs4]
lease_time = 10
grace_time = 10"
cluster() { printf '[cluster]\nname = lab\ninstance = %s\npath = /run/cluster\naddress = %s\ndead_time = 2\npnfs = yes\n' "$1" "$ADDR"; }
mkdir -p /run/cluster /run/second/state
chmod 700 /run/cluster
server_with "$NFS4
$(cluster one)"
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"

second_start() {
	standard_exports >/run/second/exports
	printf '[server]\nexports_file = %s\nexports_dir = %s\nstate_dir = %s\ncontrol_socket = /run/second/control\nrpcbind = no\n[tcp]\nport = %s\n[rdma]\nport = %s\n%s\n%s\n' \
		/run/second/exports /run/second/none /run/second/state $PORT2 $RDMAPORT2 "$NFS4" "$(cluster two)" >/run/second/conf
	setsid env -C / "$(ringnfsd_path)" --foreground --config /run/second/conf >>/share/second.log 2>&1 </dev/null &
	echo $! >/run/second/pid
	disown
	wait_until 60 tcp_listens $PORT2 || die "the second server does not listen"
}
second_stop() {
	kill "$1" "$(cat /run/second/pid)"
	wait_until 20 eval "! kill -0 $(cat /run/second/pid)"
}
# done_there WRITE|READ|COMMIT: calls of NFSv3 that the second server has answered.
done_there() {
	"$BUILDDIR/ringnfsctl" --socket /run/second/control stats --json | python3 -c 'import json, sys
print(sum(o["calls"] for o in json.load(sys.stdin)["operations"] if (o["version"], o["operation"]) == ("3", sys.argv[1])))' "$1"
}
names() { seq -f "$1%g" $FILES; }
write_all() { for f in $(names "$1"); do vm_prog vmio gen "${#f}" $SIZE "/mnt/t/layouts/$f" || return; done; }
check_all() { for f in $(names "$1"); do vm_prog vmio check "${#f}" $SIZE "$2/$f" || return; done; }

written() {
	write_all w
	sync
	[ "$(op_count /mnt/t LAYOUTGET)" -gt 0 ] || die "no LAYOUTGET"
	[ "$(op_count /mnt/t GETDEVICEINFO)" -gt 0 ] || die "no GETDEVICEINFO"
	[ "$(done_there WRITE)" -gt 0 ] || die "no WRITE at the second"
	[ "$(done_there COMMIT)" -gt 0 ] || die "no COMMIT at the second"
	check_all w "$S"
	t_note "LAYOUTGET $(op_count /mnt/t LAYOUTGET), LAYOUTRETURN $(op_count /mnt/t LAYOUTRETURN), LAYOUTCOMMIT $(op_count /mnt/t LAYOUTCOMMIT), at the second: WRITE $(done_there WRITE), COMMIT $(done_there COMMIT)"
}
read_back() {
	drop_caches
	check_all w /mnt/t/layouts
	[ "$(done_there READ)" -gt 0 ] || die "no READ at the second"
	"$BUILDDIR/ringnfsctl" --socket /run/second/control connections | grep -q "\\b$PROTO\\b" || die "no connection of $PROTO is kept"
	[ "$(op_count /mnt/t GETDEVICEINFO)" -le 2 ] || die "$(op_count /mnt/t GETDEVICEINFO) GETDEVICEINFO"
	t_note "READ at the second: $(done_there READ)"
}
# The owner's ids go with the calls there.
other_user() {
	local before
	before=$(done_there WRITE)
	setpriv --reuid 1000 --regid 1000 --clear-groups bash -c 'for i in {1..16}; do echo by 1000 >/mnt/t/layouts/u$i; done'
	sync
	[ "$(done_there WRITE)" -gt "$before" ] || die "no WRITE at the second"
	same "files" 16 "$(grep -l 'by 1000' "$S"/u* | wc -l)"
	same "owners" "1000 1000" "$(stat -c '%u %g' "$S"/u* | sort -u)"
	setpriv --reuid 1001 --regid 1001 --clear-groups cat /mnt/t/layouts/u1
	fails_with "Permission denied" setpriv --reuid 1001 --regid 1001 --clear-groups bash -c 'echo x >>/mnt/t/layouts/u2'
}
# Files are open, with layouts, when the second server is killed.
killed() {
	local before f pids=''
	write_all k
	for f in $(names k); do
		exec {fd}<>"/mnt/t/layouts/$f"
		pids="$pids $fd"
	done
	for fd in $pids; do printf 'before' >&"$fd"; done
	sync
	second_stop -KILL
	for fd in $pids; do printf ' AFTER' >&"$fd"; done
	sync
	for fd in $pids; do exec {fd}>&-; done
	for f in $(names k); do same "$f" "before AFTER" "$(head -c 12 "$S/$f")"; done
	drop_caches
	write_all a
	check_all a "$S"
	check_all a /mnt/t/layouts
}
again() {
	second_start
	wait_until 60 eval "vm_prog vmio gen 3 $SIZE /mnt/t/layouts/again\$RANDOM && sync && [ \$(done_there WRITE) -gt 0 ]" || die "no WRITE at the second after its restart"
}

second_start
mnt_test || die "no mount"
t_run "files are written at the other member" written
t_run "files are read at the other member" read_back
t_run "another user's" other_user
t_run "the other member is killed" killed
t_run "the other member is back" again
umnt_test
second_stop -TERM
server_with ""
t_done
