#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The name space of NFSv4: from its root through directories that are no export's into exports, which lie
# within each other, come and go, and are not for everybody.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ]; then
	t_begin "name space"
	t_skip "NFSv3 mounts exports only"
	t_done
fi
vm_up
P=/mnt/p
E=$P/$FS # the export, as walked to
added=$STATE/exports.d/added.exports

needs_ringnfsd() { [ "$SERVER" = ringnfsd ] || { echo "knfsd's exports of one file system are one"; exit 77; }; }
mnt_p() { nfs_mount "$VERS" "$PROTO" "${1:-/export}" $P "${2:-actimeo=1}"; }
umnt_p() { umount -R $P; }
dev() { stat -c %d "$1"; }
# mounts: those at and under P, as /proc/self/mountinfo has them.
mounts() { awk -v p=$P '$5 == p || index($5, p "/") == 1 { print $5 }' /proc/self/mountinfo | sort; }

walk() {
	mnt_p
	same "mounts before" $P "$(mounts)"
	same "names" "ext4 xfs" "$(echo $(ls $P))"
	same "the server's file" "$(cat "/export/$FS/walk")" "$(cat "$E/walk")"
	same "mounts after" "$P $E" "$(echo $(mounts))"
	[ "$(dev $P)" != "$(dev "$E")" ] || die "one file system"
	[ "$(dev "$P/ext4")" != "$(dev "$P/xfs")" ] || die "ext4 and xfs are one"
	same "names through .." "ext4 xfs" "$(echo $(ls "$E/.."))"
	same "inode" "$(stat -c %i "/export/$FS")" "$(stat -c %i "$E")"
	echo new >"$E/walk2"
	same "written" new "$(cat "/export/$FS/walk2")"
	rm "$E/walk2"
	df $P >/dev/null
	same "space" "$(stat -f -c %S "/export/$FS")" "$(stat -f -c %S "$E" | sed 's/1048576/4096/')"
	umnt_p
}
deep() {
	mnt_p "/export/$FS/exp"
	ls $P >/dev/null
	umount $P
	fails_with "" mnt_p "/export/nothing"
	fails_with "" mnt_p "/export/$FS/walk/deeper"
}
root() {
	mnt_p /
	if [ "$SERVER" = knfsd ]; then
		same "names" "ext4 xfs" "$(echo $(ls $P))"
	else
		same "names" export "$(echo $(ls $P))"
		same "names below" "ext4 xfs" "$(echo $(ls $P/export))"
		same "data" "$(cat "/export/$FS/walk")" "$(cat "$P/export/$FS/walk")"
		[ "$(stat -c %i $P)" != "$(stat -c %i $P/export)" ]
		same "links" 3 "$(stat -c %h $P)"
		same "kind" directory "$(stat -c %F $P/export)"
	fi
	umnt_p
}
read_only() {
	local c
	mnt_p
	for c in "touch $P/new" "mkdir $P/new" "ln -s x $P/new" "mknod $P/new p" "rmdir $P/ext4" "mv $P/ext4 $P/new" "chmod 777 $P"; do
		! eval "$c" 2>/dev/null || die "succeeded but should not: $c"
	done
	same "names" "ext4 xfs" "$(echo $(ls $P))"
	[ -e "/export/$FS/walk" ]
	umnt_p
}
# Exports within an export: entered on the way, with what holds there.
nested() {
	needs_ringnfsd
	chmod 777 "/export/$FS/exp/root"
	rm -f "/export/$FS/exp/root/"*
	mnt_p
	touch "$E/exp/root/mine"
	same "root is nobody there" 65534:65534 "$(stat -c %u:%g "/export/$FS/exp/root/mine")"
	touch "$E/exp/mine"
	same "and root beside it" 0:0 "$(stat -c %u:%g "/export/$FS/exp/mine")"
	fails_with "Read-only" touch "$E/exp/ro/x"
	[ "$(dev "$E/exp")" != "$(dev "$E/exp/root")" ] || die "no boundary"
	[ "$(dev "$E/exp/ro")" != "$(dev "$E/exp/root")" ] || die "two exports are one"
	same "mounts" "$E/exp/ro $E/exp/root" "$(echo $(mounts | grep -E 'ro$|root$'))"
	same "names through .." "all anon mine ro root" "$(echo $(ls "$E/exp/root/.."))"
	rm "$E/exp/mine"
	# Not over the boundary, and the boundary itself stays.
	fails_with "cross-device link" ln "$E/walk" "$E/exp/root/walk"
	fails_with "" rmdir "$E/exp/ro"
	[ -d "/export/$FS/exp/ro" ]
	umnt_p
}
# The identity of the directory under the boundary, as READDIR tells it: what the server's disk says.
mounted_on() {
	needs_ringnfsd
	mnt_p
	same "inode by listing" "$(stat -c %i "/export/$FS/exp/root")" \
		"$(ls -ia "$E/exp" | awk '$2 == "root" { print $1 }')"
	umnt_p
}
come_and_go() {
	needs_ringnfsd
	mkdir -p "/export/$FS/late"
	echo late >"/export/$FS/late/file"
	mnt_p
	same "data before" late "$(cat "$E/late/file")"
	same "mounts" "$P $E" "$(echo $(mounts))"
	umnt_p
	mnt_p
	ls $P >/dev/null
	mkdir -p /export/new
	mountpoint -q /export/new || mount --bind "/export/$FS/late" /export/new
	echo "/export/new *(rw,no_root_squash,fsid=77)" >"$added"
	server_reload
	same "names" "ext4 new xfs" "$(echo $(ls $P))"
	same "data" late "$(cat $P/new/file)"
	echo written >$P/new/file
	exec 5<$P/new/file
	rm "$added"
	server_reload
	! timeout 20 cat <&5 >/dev/null 2>&1 || echo "from the cache"
	exec 5<&-
	# Linux 6.1 asks what has become of its open, in the background. If the mount goes at that moment, as it does
	# with the next look at it, its kernel ends in a BUG ("Busy inodes after unmount").
	sleep 2
	drop_caches
	! timeout 20 cat $P/new/file >/dev/null 2>&1 || die "an export that is gone can be read"
	umount -l $P/new 2>/dev/null || true # the client may have seen to it
	same "names" "ext4 xfs" "$(echo $(ls $P))"
	same "data" "$(cat "/export/$FS/walk")" "$(cat "$E/walk")"
	umnt_p
	umount /export/new
	rmdir /export/new
}
# Each sees what is exported to it, and the way there.
visible() {
	needs_ringnfsd
	mkdir -p "/export/$FS/for/two"
	echo two >"/export/$FS/for/two/file"
	mkdir -p /export/dir/sub
	mountpoint -q /export/dir/sub || mount --bind "/export/$FS/for/two" /export/dir/sub
	echo "/export/dir/sub $TWO_ADDR(rw,no_root_squash,fsid=78)" >"$added"
	server_reload
	clients_up
	client_mount two "$VERS" /export
	mnt_p
	same "names for two" "dir ext4 xfs" "$(echo $(ls /mnt/two))"
	same "data for two" two "$(cat /mnt/two/dir/sub/file)"
	same "names for the other" "ext4 xfs" "$(echo $(ls $P))"
	fails_with "No such file" ls $P/dir
	fails_with "" nfs_mount "$VERS" "$PROTO" /export/dir/sub /mnt/no
	umnt_p
	umount -R /mnt/two
	rm "$added"
	server_reload
	umount /export/dir/sub
	rm -r /export/dir
}
security() {
	mnt_p /export sec=sys
	cat "$E/walk" >/dev/null
	same "flavour" sec=sys "$(awk -v p="$E" '$2 == p { print $4 }' /proc/mounts | grep -o 'sec=[a-z]*')"
	umnt_p
}

echo "on the way" >"/export/$FS/walk"
t_run "walking into exports" walk
t_run "a directory within an export, and nothing" deep
t_run "the root" root
t_run "nothing can be changed there" read_only
t_run "exports within exports" nested
t_run "what boundaries lie on" mounted_on
t_run "exports come and go" come_and_go
t_run "exports for one client only" visible
t_run "security flavour" security
umount -R $P 2>/dev/null
t_done
