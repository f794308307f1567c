#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ACLs over NFSv3 (NFSACL): getfacl and setfacl on the client, beside the server's file system and NFSv4's view; and quotas
# (RQUOTA).
. "$VMDIR/guest/lib.sh"
VERS=3 # of the mount under test
vm_up
# Each look asks the server.
mnt_test noac
D=/mnt/t/acl3 S=/export/$FS/acl3
rm -rf $S
mkdir $S
chmod 777 $S

# as UID GROUP COMMAND...
as() {
	local uid=$1 gid=$2
	shift 2
	setpriv --reuid "$uid" --regid "$gid" --clear-groups "$@"
}
denied() { fails_with "Permission denied" "$@"; }
# posix FILE: its ACL in one line.
posix() { getfacl -ncpE "$1" | grep . | tr '\n' ' '; }
both_show() { # FILE ACL: on the client and on the server
	same "the server's $1" "$2" "$(posix "$S/$1")"
	same "the client's $1" "$2" "$(posix "$D/$1")"
}

modes() {
	echo x >$S/plain
	chmod 640 $S/plain
	both_show plain "user::rw- group::r-- other::--- "
	same "xattrs of a file without an ACL" "" "$(getfattr -m - -d $D/plain)"
	setfacl -m u::rw,g::rw,o::r $D/plain
	same mode 664 "$(stat -c %a $S/plain)"
	both_show plain "user::rw- group::rw- other::r-- "
}
named() {
	echo x >$S/named
	chmod 600 $S/named
	setfacl -m u:1005:rw,g:2005:r $D/named
	both_show named "user::rw- user:1005:rw- group::--- group:2005:r-- mask::rw- other::--- "
	as 1005 100 sh -c "echo more >>$D/named"
	as 1006 2005 cat $D/named
	denied as 1006 2005 sh -c "echo more >>$D/named"
	denied as 1006 100 cat $D/named
	setfacl -m m::r $D/named
	both_show named "user::rw- user:1005:rw- group::--- group:2005:r-- mask::r-- other::--- "
	denied as 1005 100 sh -c "echo more >>$D/named"
	setfacl -x u:1005 $S/named
	both_show named "user::rw- group::--- group:2005:r-- mask::r-- other::--- "
	setfacl -b $D/named
	both_show named "user::rw- group::--- other::--- "
	denied as 1006 2005 cat $D/named
}
defaults() {
	mkdir -m 750 $D/dir
	setfacl -m d:u:1005:rwx,d:g:2005:rx $D/dir
	both_show dir "user::rwx group::r-x other::--- default:user::rwx default:user:1005:rwx default:group::r-x default:group:2005:r-x default:mask::rwx default:other::--- "
	(umask 022; mkdir $D/dir/sub; echo x >$D/dir/file)
	both_show dir/file "user::rw- user:1005:rwx group::r-x group:2005:r-x mask::rw- other::--- "
	getfacl -ncpE $D/dir/sub | grep -qx default:user:1005:rwx
	same "of a file made on the server" "$(touch $S/dir/here; posix $S/dir/here)" "$(touch $D/dir/there; posix $S/dir/there)"
	setfacl -k $D/dir
	both_show dir "user::rwx group::r-x other::--- "
	same "the umask counts again" 600 "$(umask 077; touch $D/dir/private; stat -c %a $S/dir/private)"
	# A minimal one has no mask on disk.
	setfacl -m d:u::rwx,d:g::rx,d:o::- $D/dir
	both_show dir "user::rwx group::r-x other::--- default:user::rwx default:group::r-x default:other::--- "
}
chmod_masks() {
	echo x >$S/masked
	setfacl -m u:1005:rw $D/masked
	chmod 600 $D/masked
	denied as 1005 100 cat $D/masked
	getfacl -ncpE $D/masked | grep -qx mask::---
	chmod 660 $D/masked
	as 1005 100 cat $D/masked
}
owner_sets() {
	as 1005 100 sh -c "umask 077; echo mine >$D/mine"
	denied as 1006 100 cat $D/mine
	fails_with "not permitted" as 1006 100 setfacl -m u:1006:r $D/mine
	as 1005 100 setfacl -m u:1006:r $D/mine
	as 1006 100 cat $D/mine
}
copied() {
	echo x >$S/from
	setfacl -m u:1005:rw,u:1006:r,g:2005:- $S/from
	cp -p $D/from $D/to
	same "of the copy" "$(posix $S/from)" "$(posix $S/to)"
	getfacl -cn $D/from | setfacl -b -M - $D/plain
	same "by way of a text" "$(posix $S/from)" "$(posix $S/plain)"
}
# More than a small reply, or a message of RDMA, holds.
many() {
	local p list
	[ "$SERVER/$PROTO" != knfsd/rdma ] || { echo "the kernel's server answers EIO"; exit 77; }
	list=$(seq 3001 3400 | sed 's/.*/u:&:r/' | paste -sd,)
	echo x >$S/many
	setfacl -m "$list" $D/many
	p=$(posix $S/many)
	same "users" 400 "$(grep -o 'user:3...:r--' <<<"$p" | wc -l)"
	same "the client's" "$p" "$(posix $D/many)"
	setfacl -b $D/many
	both_show many "user::rw- group::r-- other::r-- "
	fails_with "" setfacl -m "$(seq 3001 4021 | sed 's/.*/u:&:r/' | paste -sd,)" $D/many
}
links() {
	ln -s plain $D/link
	same "by a link" "$(posix $S/plain)" "$(posix $D/link)"
}
nfs4_view() {
	local m=/mnt/t4
	nfs_mount 4.2 "$PROTO" "/export/$FS" $m noac
	echo x >$S/seen
	chmod 600 $S/seen
	setfacl -m u:1005:rw $D/seen
	nfs4_getfacl $m/acl3/seen | grep -qx A::1005:rwatcy || die "NFSv4: $(nfs4_getfacl $m/acl3/seen)"
	nfs4_setfacl -a A:g:2005:rtcy $m/acl3/seen
	both_show seen "user::rw- user:1005:rw- group::--- group:2005:r-- mask::rw- other::--- "
	umount $m
}
no_acl() {
	[ "$SERVER" = ringnfsd ] || { echo "the kernel's server ignores it"; exit 77; }
	echo x >$S/hidden
	setfacl -m u:1005:rw $S/hidden
	mkdir -p /export/$FS/exp/hidden
	mv $S/hidden /export/$FS/exp/hidden/file
	echo "/export/$FS/exp/hidden *(rw,insecure,no_root_squash,no_acl,fsid=77)" >$STATE/exports.d/hidden.exports
	trap 'umount /mnt/hidden; rm $STATE/exports.d/hidden.exports; server_reload' EXIT
	server_reload # until then it can be mounted as a folder of the export above it
	nfs_mount 3 "$PROTO" "/export/$FS/exp/hidden" /mnt/hidden noac
	fails_with "not supported" setfacl -m u:1006:r /mnt/hidden/file
	same "no ACL to be seen" "user::rw- group::rw- other::r-- " "$(posix /mnt/hidden/file)"
	chmod 660 /export/$FS/exp/hidden/file
	as 1005 100 cat /mnt/hidden/file
	denied as 1006 100 cat /mnt/hidden/file
}

quotas() {
	[ "$SERVER" = ringnfsd ] || { echo "of ringnfsd"; exit 77; }
	modprobe -a loop quota_tree quota_v2
	TMPDIR=/export/$FS RINGNFSD=$(ringnfsd_path) python3 -B "$SOURCE/tests/net/rquota.py" | tee /run/rquota.log
	grep -q " passed, 0 failed, 0 skipped" /run/rquota.log
}
# The client's tool, which asks by UDP only, at the port that rpcbind tells.
quota_tool() {
	[ "$SERVER" = ringnfsd ] || { echo "of ringnfsd"; exit 77; }
	dir=/export/$FS/exp/quota m=/mnt/quota # not local: the trap uses them
	modprobe -a loop quota_tree quota_v2
	tcp_listens 111 || rpcbind -w
	truncate -s 64M /run/quota.img
	mkfs.ext4 -q -O quota -E quotatype=usrquota:grpquota /run/quota.img
	mkdir -p $dir
	mount -o loop,usrquota,grpquota /run/quota.img $dir
	chmod 1777 $dir
	setquota -u 1005 1000 2000 30 40 $dir
	setquota -g 2005 5000 6000 0 0 $dir
	echo "$dir *(rw,insecure,no_root_squash,fsid=78)" >$STATE/exports.d/quota.exports
	RN_RPCBIND=yes server_anew
	trap 'umount $m; rm $STATE/exports.d/quota.exports; server_anew; wait_until 20 umount $dir; rm /run/quota.img' EXIT
	wait_until 20 rpcinfo -u "$ADDR" 100011 1
	wait_until 20 nfs_mount 3 "$PROTO" "$dir" $m noac
	as 1005 2005 dd if=/dev/zero of=$m/file bs=100K count=15 conv=fsync status=none
	# Blocks, with a star above the soft limit, limits, time left; files and their limits.
	as 1005 2005 quota -u -w -p -f $m | tee /run/quota.out
	grep -qE "^ *$ADDR:$dir +1500\* +1000 +2000 +[1-9][0-9]+ +1 +30 +40 +0" /run/quota.out
	setpriv --reuid 1005 --regid 2005 --groups 2005 quota -g -w -p -f $m | tee /run/quota.out
	grep -qE "^ *$ADDR:$dir +1500 +5000 +6000 +0 +1 +0 +0 +0" /run/quota.out
}

t_run "modes" modes
t_run "named users and groups" named
t_run "default ACLs" defaults
t_run "chmod and ACL" chmod_masks
t_run "an owner who is not root" owner_sets
t_run "copies" copied
t_run "400 users" many
t_run "by a symbolic link" links
t_run "beside NFSv4" nfs4_view
t_run "export option no_acl" no_acl
t_run "quotas" quotas
t_run "quota(1)" quota_tool
assert_clean_stats /mnt/t
umnt_test
t_done
