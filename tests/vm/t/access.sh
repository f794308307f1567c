#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Permissions: modes, groups, ACLs on the server, squashing, read-only exports.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/access S=/export/$FS/access
rm -rf $S
mkdir $D
chmod 777 $D

# as UID GID[,GROUP...] COMMAND...
as() {
	local uid=$1 gids=$2 gid=${2%%,*}
	shift 2
	if [ "$gid" = "$gids" ]; then
		setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"
	else
		setpriv --reuid "$uid" --regid "$gid" --groups "${gids#*,}" "$@"
	fi
}
owner_of() { stat -c %u:%g "$1"; }
denied() { fails_with "Permission denied" "$@"; }
not_permitted() { fails_with "not permitted" "$@"; }

modes() {
	as 1000 100 sh -c "umask 077; echo private >$D/private"
	same "owner" 1000:100 "$(owner_of $S/private)"
	as 1000 100 cat $D/private
	denied as 1001 100 cat $D/private
	denied as 1001 100 sh -c "echo x >>$D/private"
	cat $D/private # root
	not_permitted as 1001 100 chmod 777 $D/private
	not_permitted as 1000 100 chown 1001 $D/private
	as 1000 100 mkdir -m 700 $D/dir
	denied as 1001 100 ls $D/dir
	denied as 1001 100 touch $D/dir/x
}
groups() {
	echo shared >$D/group
	chown 0:2000 $D/group
	chmod 640 $D/group
	denied as 1000 100 cat $D/group
	as 1000 2000 cat $D/group
	as 1000 100,300,2000 cat $D/group
	denied as 1000 100,300,2001 cat $D/group
	as 1000 100,1,2,3,4,5,6,7,8,9,10,11,12,13,14,2000 cat $D/group
	# Bits of the group's count for its members even where the others' allow more.
	chmod 604 $D/group
	denied as 1000 100,2000 cat $D/group
	as 1000 100 cat $D/group
}
group_change() {
	as 1000 100 touch $D/chgrp
	as 1000 100,2000 chgrp 2000 $D/chgrp
	same "after chgrp by a member" 1000:2000 "$(owner_of $S/chgrp)"
	not_permitted as 1000 100,2000 chgrp 2001 $D/chgrp
	mkdir -m 2777 $D/setgid
	chown 0:2000 $D/setgid
	chmod 2777 $D/setgid
	as 1000 100 touch $D/setgid/f
	same "group in a set-gid directory" 1000:2000 "$(owner_of $S/setgid/f)"
}
# A member of the group, who does not own the file, cuts it and writes it anew.
shared_file() {
	as 1000 100,2000 sh -c "umask 002; echo first >$D/shared; chgrp 2000 $D/shared"
	as 1001 100,2000 sh -c "echo second >$D/shared"
	same "written by a member" second "$(cat $S/shared)"
	as 1001 100,2000 truncate -s 3 $D/shared
	same "cut by a member" sec "$(cat $S/shared)"
	as 1001 100,2000 touch $D/shared
	not_permitted as 1001 100,2000 touch -d 2001-01-01 $D/shared
	denied as 1001 100 sh -c "echo third >$D/shared"
	same "owner" 1000:2000 "$(owner_of $S/shared)"
}
sticky() {
	mkdir $D/sticky
	chmod 1777 $D/sticky
	as 1000 100 touch $D/sticky/f
	not_permitted as 1001 100 rm -f $D/sticky/f
	not_permitted as 1001 100 mv $D/sticky/f $D/sticky/g
	as 1000 100 rm $D/sticky/f
}
# A file stays open to its owner, whatever its mode becomes: NFSv3 has no open.
open_then_chmod() {
	as 1000 100 bash -ec "exec 5<>$D/keep; chmod 0 $D/keep; echo data >&5; sync $D" || die "write"
	same "data" data "$(cat $S/keep)"
	as 1000 100 bash -ec "umask 222; cat /etc/passwd >$D/readonly"
	cmp /etc/passwd $S/readonly
	same mode 444 "$(stat -c %a $S/readonly)"
	denied as 1000 100 sh -c "echo x >>$D/readonly"
}
suid_cleared() {
	as 1000 100 cp /etc/passwd $D/suid
	as 1000 100 chmod 6777 $D/suid
	as 1001 101 sh -c "echo x >>$D/suid"
	drop_caches
	same "mode after another user's write" 777 "$(stat -c %a $S/suid)"
}
execute_only() {
	cp "$(ls /bin/busybox /usr/bin/busybox 2>/dev/null | head -n 1)" $D/busybox
	chmod 711 $D/busybox
	drop_caches
	same "output" run "$(as 1000 100 $D/busybox echo run)"
	denied as 1000 100 cat $D/busybox
}
acl() {
	echo acl >$S/acl
	chmod 600 $S/acl
	setfacl -m u:1005:r,g:2005:rw $S/acl
	sleep 0.1
	drop_caches
	as 1005 100 cat $D/acl
	denied as 1005 100 sh -c "echo x >>$D/acl"
	as 1006 100,2005 sh -c "echo by-group >>$D/acl"
	denied as 1006 100 cat $D/acl
}

# The kernel's server enters an export within another of the same file system by NFSv3's handles only.
enters_nested_exports() {
	[ "$SERVER" != knfsd ] || [ "$VERS" = 3 ] || { echo "knfsd has no nested exports by NFSv4"; exit 77; }
}
# squash NAME OWNER-OF-ROOT'S OWNER-OF-1000'S
squash() {
	local dir=/mnt/squash
	enters_nested_exports
	chmod 777 "/export/$FS/exp/$1"
	nfs_mount "$VERS" "$PROTO" "/export/$FS/exp/$1" $dir
	rm -rf "/export/$FS/exp/$1"/*
	touch $dir/by-root
	as 1000 100 touch $dir/by-user
	same "root's file" "$2" "$(owner_of "/export/$FS/exp/$1/by-root")"
	same "a user's file" "$3" "$(owner_of "/export/$FS/exp/$1/by-user")"
}
squash_root() {
	squash root 65534:65534 1000:100
	echo secret >/export/$FS/exp/root/secret
	chmod 600 /export/$FS/exp/root/secret
	denied cat /mnt/squash/secret
	not_permitted chown 1 /mnt/squash/by-root
	chown 1000:100 /export/$FS/exp/root/secret
	drop_caches
	as 1000 100 cat /mnt/squash/secret
	denied as 1001 0 cat /mnt/squash/secret
	umount /mnt/squash
}
squash_all() {
	squash all 65534:65534 65534:65534
	umount /mnt/squash
}
squash_anon() {
	squash anon 4001:4002 4001:4002
	umount /mnt/squash
}
squash_none() {
	touch $D/root
	chown 1000:100 $D/root
	same "chown by root" 1000:100 "$(owner_of $S/root)"
	touch $D/root2
	same "root's file" 0:0 "$(owner_of $S/root2)"
}
read_only() {
	enters_nested_exports
	echo ro >/export/$FS/exp/ro/file
	nfs_mount "$VERS" "$PROTO" "/export/$FS/exp/ro" /mnt/squash
	same data ro "$(cat /mnt/squash/file)"
	fails_with "Read-only" touch /mnt/squash/new
	fails_with "Read-only" rm -f /mnt/squash/file
	fails_with "cannot create" sh -c "echo x >/mnt/squash/file" # EROFS or EACCES
	fails_with "Read-only" chmod 1 /mnt/squash/file
	umount /mnt/squash
}
refused() {
	fails_with "" nfs_mount "$VERS" "$PROTO" /etc /mnt/no
	fails_with "" nfs_mount "$VERS" "$PROTO" "/export/$FS/nothing" /mnt/no
	same "mounted" "" "$(grep ' /mnt/no ' /proc/mounts)"
}

t_run "modes" modes
t_run "groups" groups
t_run "change of group" group_change
t_run "file that a group shares" shared_file
t_run "sticky directory" sticky
t_run "file open before chmod" open_then_chmod
t_run "set-uid cleared by a write" suid_cleared
t_run "execute without read" execute_only
t_run "ACLs on the server" acl
t_run "root_squash" squash_root
t_run "all_squash" squash_all
t_run "anonuid and anongid" squash_anon
t_run "no_root_squash" squash_none
t_run "read-only export" read_only
t_run "what is not exported" refused
umount /mnt/squash 2>/dev/null
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $D
umnt_test
t_done
