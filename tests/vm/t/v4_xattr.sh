#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Extended attributes of files and directories (RFC 8276), which the client has with 4.2 only.
. "$VMDIR/guest/lib.sh"
vm_up
# Each look asks the server, whose file system is changed beside it here.
mnt_test noac
D=/mnt/t/xattr S=/export/$FS/xattr
rm -rf $S
mkdir $S
chmod 777 $S

x() { vm_prog vmxattr "$@"; }
# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid 100 --clear-groups "$@"
}
none() { fails_with "No data available" x get "$@"; }

older() {
	touch $S/older
	x set $S/older user.a b
	fails_with "Operation not supported" x get $D/older user.a
	fails_with "Operation not supported" x set $D/older user.a c
	same "names" "" "$(x list $D/older)"
}
both_ways() {
	local f
	touch $S/file
	mkdir $S/dir
	for f in file dir; do
		none $D/$f user.a
		x set $D/$f user.a "by the client"
		same "$f, on the server" "by the client" "$(x get $S/$f user.a)"
		x set $S/$f user.a "by the server"
		same "$f, at the client" "by the server" "$(x get $D/$f user.a)"
		x set $D/$f user.empty ""
		same "names of $f" "user.a user.empty" "$(x list $D/$f | tr '\n' ' ' | sed 's/ $//')"
		same "an empty value" "" "$(x get $D/$f user.empty)"
		x remove $D/$f user.a
		none $S/$f user.a
		none $D/$f user.a
		fails_with "No data available" x remove $D/$f user.a
		same "names of $f, on the server" user.empty "$(x list $S/$f)"
	done
}
options() {
	touch $S/options
	fails_with "No data available" x set $D/options user.a 1 replace
	x set $D/options user.a 2 create
	fails_with "File exists" x set $D/options user.a 3 create
	same "after create" 2 "$(x get $S/options user.a)"
	x set $D/options user.a 4 replace
	same "after replace" 4 "$(x get $S/options user.a)"
}
longest_name() {
	local name
	name=user.$(printf '%0250d' 1)
	touch $S/name
	x set $D/name "$name" long
	same "on the server" long "$(x get $S/name "$name")"
	same "the list" "$name" "$(x list $D/name)"
	x remove $D/name "$name"
	same "the list after it" "" "$(x list $S/name)"
}
namespaces() {
	touch $S/spaces
	x set $S/spaces trusted.a secret
	x set $S/spaces user.trusted.a mine
	fails_with "Operation not supported" x get $D/spaces trusted.a
	fails_with "Operation not supported" x set $D/spaces trusted.a mine
	same "the user's" mine "$(x get $D/spaces user.trusted.a)"
	same "the list" user.trusted.a "$(x list $D/spaces)"
	same "on the server" secret "$(x get $S/spaces trusted.a)"
}
users() {
	touch $S/private $S/shown
	chown 1005:100 $S/private $S/shown
	chmod 600 $S/private
	chmod 644 $S/shown
	as 1005 "$VMPROG/vmxattr" set $D/private user.a mine
	same "the owner's" mine "$(as 1005 "$VMPROG/vmxattr" get $D/private user.a)"
	as 1005 "$VMPROG/vmxattr" set $D/shown user.a mine
	fails_with "Permission denied" as 1006 "$VMPROG/vmxattr" get $D/private user.a
	fails_with "Permission denied" as 1006 "$VMPROG/vmxattr" set $D/private user.a his
	fails_with "Permission denied" as 1006 "$VMPROG/vmxattr" remove $D/private user.a
	same "what all may read" mine "$(as 1006 "$VMPROG/vmxattr" get $D/shown user.a)"
	fails_with "Permission denied" as 1006 "$VMPROG/vmxattr" set $D/shown user.a his
	mkdir -m 1777 $S/sticky
	chmod 1777 $S/sticky
	fails_with "not permitted" as 1006 "$VMPROG/vmxattr" set $D/sticky user.a his
	same "on the server" mine "$(x get $S/private user.a)"
}
# What ext4 has no room for is one of its errors; XFS takes what the kernel takes.
values() {
	local n
	touch $S/values
	for n in 1 100 1000 3000; do
		x fill $D/values user.a $n $n
		x check $S/values user.a $n $n
		x fill $S/values user.a $n 7
		x check $D/values user.a $n 7
	done
	if [ "$FS" = ext4 ]; then
		fails_with "No space left" x fill $D/values user.a 65536 1
		x check $D/values user.a 3000 7
		return
	fi
	for n in 4096 20000 65535 65536; do
		x fill $D/values user.a $n $n
		x check $S/values user.a $n $n
		x fill $S/values user.a $n 8
		x check $D/values user.a $n 8
	done
}
# No binding of NFS to RDMA places values in chunks of their own: long calls and long replies carry them.
chunks() {
	local written replied
	[ "$PROTO" = rdma ] || { echo "over RDMA only"; exit 77; }
	touch $S/chunks
	x fill $S/chunks user.a 4000 3 # a reply of over 4 KiB
	written=$(rdma_counter /mnt/t write-chunks)
	replied=$(rdma_counter /mnt/t reply-chunks)
	x check $D/chunks user.a 4000 3
	same "Write chunks" "$written" "$(rdma_counter /mnt/t write-chunks)"
	[ "$(rdma_counter /mnt/t reply-chunks)" -gt "$replied" ] || die "no Reply chunk"
}
many() {
	local count=100 length=12
	# As many as the kernel can list, with the client's own names beside them.
	[ "$FS" = ext4 ] || { count=240 length=255; }
	touch $S/many
	x many $D/many $count $length
	x list $S/many >/run/xattr.server
	same "names on the server" $count "$(wc -l </run/xattr.server)"
	drop_caches
	x list $D/many >/run/xattr.client
	cmp /run/xattr.server /run/xattr.client
}
copies() {
	touch /run/xattr.source
	cp /run/xattr.source $S/source
	x set $S/source user.a "to be copied"
	cp --preserve=xattr $S/source $D/copy
	same "the copy's" "to be copied" "$(x get $S/copy user.a)"
}
# Both have been told the same, whoever changes it.
two_mounts() {
	nfs_mount "$VERS" "$PROTO" "/export/$FS" /mnt/t2 nosharecache,noac
	touch $S/shared
	x set $D/shared user.a 1
	same "the other mount" 1 "$(x get /mnt/t2/xattr/shared user.a)"
	x set /mnt/t2/xattr/shared user.a 2
	same "the first mount" 2 "$(x get $D/shared user.a)"
	x remove $D/shared user.a
	none /mnt/t2/xattr/shared user.a
	umount /mnt/t2
}

case $VERS in
4.2)
	t_run "set and shown on both sides" both_ways
	t_run "create and replace" options
	t_run "a name of 255 bytes" longest_name
	t_run "other namespaces" namespaces
	t_run "other users" users
	t_run "short and long values" values
	t_run "no chunks of their own" chunks
	t_run "many names" many
	t_run "a copy with its attributes" copies
	t_run "two mounts" two_mounts
	;;
*) t_run "what an older version answers" older ;;
esac
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $S
umnt_test
t_done
