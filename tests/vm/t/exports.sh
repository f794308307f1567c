#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Exports whose file systems come and go, and subvolumes of btrfs, as the Linux client sees them; and the tests of
# tests/net that mount, on this kernel.
. "$VMDIR/guest/lib.sh"
modprobe -a loop btrfs
vm_up
P=/mnt/p
D=/export/$FS/late_mount # a directory that becomes a mount point
added=$STATE/exports.d/added.exports
opt=rw,insecure,no_root_squash,no_subtree_check
export_only() { # LINE: beside the standard ones
	echo "$1" >"$added"
	server_reload
}
make_disk() { # FILE KIND
	[ -e "$1" ] || { truncate -s 160M "$1" && "mkfs.$2" -q "$1"; }
}

roots() { TMPDIR=/export/$FS RINGNFSD=$(ringnfsd_path) "$SOURCE/tests/net/export_roots.py"; }
followed() { TMPDIR=/export/$FS RINGNFSD=$(ringnfsd_path) "$SOURCE/tests/net/export_mounts.py"; }

subvolumes() {
	grep -qw btrfs /proc/filesystems || { echo "this kernel has no btrfs"; exit 77; }
	local at=/export/$FS/b n
	mkdir -p $at
	make_disk "/export/$FS/btrfs.img" btrfs
	mount -o loop "/export/$FS/btrfs.img" $at
	btrfs -q subvolume create $at/a
	btrfs -q subvolume create $at/c
	echo a >$at/a/f && echo c >$at/c/f && mkdir $at/a/dir $at/c/dir
	btrfs -q subvolume snapshot $at/a $at/snap
	export_only "$at *($opt)"
	nfs_mount "$VERS" "$PROTO" $at $P
	find $P >/run/found 2>&1 || die "find: $(cat /run/found)"
	grep -q loop /run/found && die "$(cat /run/found)"
	same "all is found" 10 "$(wc -l </run/found)"
	n=$(find $P -exec stat -c '%d %i' {} + | sort -u | wc -l)
	same "files told apart" 10 "$n"
	same "contents" "a a c" "$(echo $(cat $P/a/f $P/snap/f $P/c/f))"
	echo more >>$P/snap/f
	same "the origin of a snapshot" a "$(cat $P/a/f)"
	mv $P/a/f $P/c/dir/moved # copied, as between file systems
	same "moved" a "$(cat $at/c/dir/moved)"
	umount -R $P
	rm "$added"
	server_reload
	umount $at
}

late() {
	mkdir -p "$D"
	make_disk "/export/$FS/late.img" ext4
	export_only "$D *($opt)"
	nfs_mount "$VERS" "$PROTO" "$D" $P
	touch $P/before
	mount -o loop "/export/$FS/late.img" "$D"
	sleep 1
	touch $P/after 2>/run/why && die "written underneath"
	grep -qi stale /run/why || die "$(cat /run/why)"
	umount $P
	nfs_mount "$VERS" "$PROTO" "$D" $P
	touch $P/after
	[ -e "$D/after" ] || die "not on the disk"
	umount "$D" 2>/dev/null && die "umount of what is exported"
	umount -l "$D"
	sleep 1
	same "underneath" before "$(ls "$D")"
	ls $P >/dev/null 2>&1 && die "served after umount -l"
	umount -f $P || umount -l $P
	rm "$D/before"
}

waits() {
	local D=/run/late # in no other export: NFSv4 would find the directory there
	mkdir -p $D
	export_only "$D *($opt,mp)"
	fails_with "" nfs_mount "$VERS" "$PROTO" "$D" $P
	mount -o loop "/export/$FS/late.img" "$D"
	sleep 1
	nfs_mount "$VERS" "$PROTO" "$D" $P
	touch $P/here
	umount -l "$D"
	sleep 1
	(echo patient >$P/waited) &
	sleep 3
	kill -0 $! || die "did not wait"
	same "underneath" "" "$(ls "$D")"
	mount -o loop "/export/$FS/late.img" "$D"
	wait $! || die "the writer failed"
	same "what waited" patient "$(cat "$D/waited")"
	umount $P
	rm "$added"
	server_reload
	umount "$D"
}

[ "$VERS" != 3 ] || t_run "handles and roots" roots
[ "$VERS" != 3 ] || t_run "mounts that come and go" followed
t_run "subvolumes of btrfs" subvolumes
umount -R $P 2>/dev/null
t_run "a late mount" late
t_run "option mp" waits
t_done
