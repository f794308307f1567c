#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# SELinux labels (RFC 7862 section 12.2.4) as the client shows and sets them. A client has them with 4.2 only, and only if it
# runs SELinux itself (run --selinux); without a policy no label decides anything.
. "$VMDIR/guest/lib.sh"
grep -q selinuxfs /proc/filesystems || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
vm_up
S=/export/$FS/labels D=/mnt/t added=$STATE/exports.d/labels.exports
rm -rf $S
mkdir $S
chmod 777 $S
echo "$S *(rw,insecure,no_root_squash,no_subtree_check,security_label)" >"$added"
server_reload
nfs_mount "$VERS" "$PROTO" $S $D noac
etc=system_u:object_r:etc_t:s0 tmp=system_u:object_r:tmp_t:s0
x() { vm_prog vmxattr "$@"; }
# Without asking for its length first, which Linux's client answers by "No such file or directory".
shown() { python3 -c 'import os, sys; print(os.getxattr(sys.argv[1], "security.selinux").decode())' "$1"; }

both_ways() {
	touch $S/file
	x set $S/file security.selinux $etc
	same "at the client" $etc "$(shown $D/file)"
	x set $D/file security.selinux $tmp
	same "on the server" $tmp "$(x get $S/file security.selinux)"
	x set $S/file security.selinux $etc
	same "the server's new one" $etc "$(shown $D/file)"
}
made_by_the_client() {
	echo text >$D/new
	mkdir $D/dir
	same "contents" text "$(cat $S/new)"
	x set $D/dir security.selinux $tmp
	same "the directory's label" $tmp "$(x get $S/dir security.selinux)"
}
without() {
	local at=/export/$FS/unlabelled
	touch $at
	x set $at security.selinux $etc
	nfs_mount "$VERS" "$PROTO" "/export/$FS" /mnt/t2
	fails_with Error shown /mnt/t2/unlabelled
	fails_with vmxattr x set /mnt/t2/unlabelled security.selinux $tmp
	umount /mnt/t2
	same "it stays" $etc "$(x get $at security.selinux)"
	rm $at
}

t_run "set and shown on both sides" both_ways
t_run "what the client makes" made_by_the_client
t_run "an export without the option" without
t_run "no call was sent twice" assert_clean_stats $D
umount $D
rm -rf $S "$added"
server_reload
t_done
