#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Opens and locks of a client whose export a reload removes: the file system can be unmounted, others
# have what was locked, I/O fails, nobody asks again and again, and when the export is back the client goes on.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "revocation"
	t_skip "of ringnfsd's opens of NFSv4"
	t_done
fi
vm_up
P=/mnt/p
G=/export/gone
added=$STATE/exports.d/gone.exports
modprobe loop
mkdir -p $G
truncate -s 32M /run/gone.img
mkfs.ext4 -q /run/gone.img

# exports_are LINE: beside the standard ones; in force when it returns.
exports_are() {
	echo "$1" >"$added"
	server_reload
}
there() {
	mountpoint -q $G || mount -o loop /run/gone.img $G
	exports_are "$G *(${1:-rw},no_root_squash,fsid=79)"
}
# calls: how many the server has been sent, of all versions and transports.
calls() { server_counters | grep -E ' (tcp|rdma): ' | grep -oE '[0-9]+ calls' | awk '{ s += $1 } END { print s }'; }
# quiet: no more than a few calls a second.
quiet() {
	local a b
	a=$(calls)
	sleep 5
	b=$(calls)
	[ "$b" -gt 10 ] || die "no counters"
	t_note "$1: $(((b - a) / 5)) calls a second"
	[ $((b - a)) -lt 50 ] || die "$1: $((b - a)) calls in 5 s"
}
open_and_lock() {
	there
	nfs_mount "$VERS" "$PROTO" $G $P
	echo before >$G/file
	chmod 666 $G/file
	file one f start $P/file rw
	file one f lock posix w 0 10
	file one f write 0 written
	file one f sync
	vm_prog vmfile start local $G/file rw
	same "a local process" busy "$(vm_prog vmfile do local lock posix w 0 10)"
}
close_all() {
	file one f stop
	umount $P
}

# The export goes, the file system is unmounted, both come back.
gone() {
	open_and_lock
	exports_are ""
	vm_prog vmfile do local lock posix w 0 10
	vm_prog vmfile stop local
	umount $G || { sleep 0.5; umount $G; } || die "$(ls -l /proc/"$(server_pid)"/fd)"
	same "loop devices" "" "$(losetup -a)"
	t_note "$(file one f write 0 lost 2>/dev/null; file one f sync 2>/dev/null)"
	! file one f sync || ! file one f read 0 4 || die "I/O goes on"
	quiet "gone"
	! timeout 20 cat $P/file || die "what is gone can be read"
	! timeout 20 sh -c "echo x >$P/new" || die "there can be a new file"
	quiet "after asking"
	there
	same "data" written "$(timeout 30 cat $P/file)"
	echo after >$P/new
	same "new data" after "$(cat $G/new)"
	file one g start $P/file rw
	file one g lock posix w 0 10
	vm_prog vmfile start local $G/file rw
	same "a local process" busy "$(vm_prog vmfile do local lock posix w 0 10)"
	vm_prog vmfile stop local
	file one g write 0 again
	file one g sync
	same "through a new open" again "$(head -c 5 $G/file)"
	quiet "back"
	file one g stop
	close_all
	umount $G || { sleep 0.5; exports_are ""; umount $G; }
}
# Nobody notices before it is back.
and_back() {
	open_and_lock
	vm_prog vmfile stop local
	exports_are ""
	there
	t_note "write: $(file one f write 0 second 2>/dev/null; file one f sync 2>/dev/null)"
	quiet "gone for a moment"
	timeout 30 cat $P/file >/dev/null
	close_all
	exports_are ""
	umount $G
}
# Options that change take nothing away; a client that may only read cannot write, and later can.
options() {
	open_and_lock
	there ro
	same "still locked" busy "$(vm_prog vmfile do local lock posix w 0 10)"
	file one f write 0 refused || true
	! file one f sync || die "it can be written"
	same "still locked" busy "$(vm_prog vmfile do local lock posix w 0 10)"
	there rw,async
	file one f write 0 allowed || file one f write 0 allowed
	file one f sync
	same "data" allowed "$(cat $G/file)"
	same "still locked" busy "$(vm_prog vmfile do local lock posix w 0 10)"
	vm_prog vmfile stop local
	close_all
	exports_are ""
	umount $G
}
# The export is withdrawn from this client, while another one goes on.
not_for_one() {
	clients_up
	open_and_lock
	vm_prog vmfile stop local
	client_mount two "$VERS" $G
	file two f start /mnt/two/file rw
	same "for two" busy "$(file two f lock posix w 5 10)"
	exports_are "$G $TWO_ADDR(rw,no_root_squash,fsid=79)"
	file two f lock posix w 5 10
	file two f write 0 two
	file two f sync
	file one f write 0 one 2>/dev/null || true
	! file one f sync || ! file one f read 0 1 || die "I/O goes on"
	quiet "not for this one"
	same "data" two "$(head -c 3 $G/file)"
	file two f stop
	client_umount two
	close_all
	exports_are ""
	umount $G
}

# clean: after a test that failed, too.
clean() {
	pidof vmfile | xargs -r kill -9
	umount -l $P /mnt/two 2>/dev/null
	exports_are ""
	umount $G 2>/dev/null
	true
}
t_run "the export is gone" gone
clean
t_run "gone for a moment" and_back
clean
t_run "other options" options
clean
t_run "not for one client any more" not_for_one
clean
rm -f "$added"
t_done
