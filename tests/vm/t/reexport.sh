#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# An NFS mount that is exported again, by a second server in this machine (doc/design/exports.md, "NFS mounts"): with signed handles it is
# not served, and the log says why; with handle_mac = no a mount of ringnfsd can be.
. "$VMDIR/guest/lib.sh"
if [ "$SERVER" != ringnfsd ]; then
	t_begin "an NFS mount that is exported again"
	t_skip "the second server is ringnfsd"
	t_done
fi
vm_up
server_anew
S=/export/$FS/again
rm -rf "$S"
mkdir "$S"
AGAIN=/run/vm-again PORT=2149 LOG=/share/again.log # of the second server
mkdir -p $AGAIN/state $AGAIN/none
nfs_mount "$VERS" "$PROTO" "/export/$FS/again" /mnt/behind || die "no mount"

second_starts() { # SETTINGS-OF-VFS
	echo "/mnt/behind *(rw,sync,no_subtree_check,insecure,no_root_squash,fsid=77)" >$AGAIN/exports
	cat >$AGAIN/ringnfs.conf <<-EOF
		[server]
		exports_file = $AGAIN/exports
		exports_dir = $AGAIN/none
		state_dir = $AGAIN/state
		control_socket =
		rpcbind = no
		[tcp]
		port = $PORT
		[rdma]
		enabled = no
		[vfs]
		$1
	EOF
	setsid env -C / "$(ringnfsd_path)" --foreground --config $AGAIN/ringnfs.conf >>$LOG 2>&1 </dev/null &
	echo $! >$AGAIN/pid
	disown
	wait_until 60 tcp_listens $PORT || die "no second server: $(tail -n 5 $LOG)"
}
second_ends() {
	local pid
	pid=$(cat $AGAIN/pid)
	kill "${1:--TERM}" "$pid"
	wait_until 60 eval "! kill -0 $pid"
}
front() { NFSPORT=$PORT MOUNTPORT=$PORT nfs_mount "$1" tcp /mnt/behind /mnt/front; }

signed() {
	: >$LOG
	second_starts ""
	wait_until 20 grep "NFS mounts cannot be exported again" $LOG || die "$(cat $LOG)"
	fails_with "mount" front 4.2
	second_ends
}
files() {
	vm_prog vmio gen 5 3000000 /mnt/front/data
	drop_caches
	vm_prog vmio check 5 3000000 "$S/data"
	vm_prog vmio check 5 3000000 /mnt/front/data
	mv /mnt/front/data /mnt/front/moved
	ln /mnt/front/moved /mnt/front/link
	same "names" "link moved" "$(cd "$S" && echo *)"
	same "links" 2 "$(stat -c %h /mnt/front/link)"
}
# A lock of a client is one on the mount, which local processes there meet.
locks() {
	vm_prog vmfile start front /mnt/front/moved rw
	vm_prog vmfile start behind /mnt/behind/moved rw
	vm_prog vmfile do front lock posix w 0 10
	if vm_prog vmfile do behind lock posix w 0 10; then die "a local process has the lock, too"; fi
	vm_prog vmfile do front lock posix u 0 10
	vm_prog vmfile do behind lock posix w 0 10
	vm_prog vmfile stop front
	vm_prog vmfile stop behind
}
# The second server has the file open, so the mount keeps a name for it, and the directory is not empty for a while.
removed() {
	mkdir /mnt/front/dir
	echo text >/mnt/front/dir/open
	vm_prog vmfile start open /mnt/front/dir/open rw
	rm /mnt/front/dir/open
	same "data of a removed file" text "$(vm_prog vmfile do open read 0 4)"
	vm_prog vmfile stop open
	wait_until 60 rmdir /mnt/front/dir || die "left: $(ls -A "$S/dir")"
}
restarted() {
	echo before >/mnt/front/kept
	second_ends -KILL
	second_starts "handle_mac = no"
	drop_caches
	same "data by the old handle" before "$(timeout 120 cat /mnt/front/kept)"
	timeout 120 sh -c 'echo after >/mnt/front/kept'
	same "data behind both" after "$(cat "$S/kept")"
}
# Calls for what is behind wait while the first server is gone; what the second has itself is answered.
away() {
	local reader
	drop_caches
	server_crash
	timeout 120 cat /mnt/front/kept >/run/again.out &
	reader=$!
	NFSPORT=$PORT nfs_mount 4.2 tcp / /mnt/second
	[ -d /mnt/second/mnt ]
	umount /mnt/second
	kill -0 $reader || die "read while nobody had the file: $(cat /run/again.out)"
	server_again
	wait $reader
	same "data after the outage" after "$(cat /run/again.out)"
}

t_run "signed handles are too long, and the log says so" signed
second_starts "handle_mac = no"
if front "$VERS"; then
	t_run "data and names" files
	[ "$VERS" = 3 ] || t_run "locks" locks
	t_run "a file that is open and removed" removed
	t_run "the second server restarts" restarted
	t_run "the first server is away" away
	umount -f /mnt/front || umount -l /mnt/front
else
	t_begin "a mount of the mount"
	t_fail "$(tail -n 5 $LOG)"
fi
second_ends
umount /mnt/behind
rm -rf "$S"
t_done
