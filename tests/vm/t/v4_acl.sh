#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ACLs as the client's tools show and set them (nfs4_getfacl, nfs4_setfacl), beside those of the server's file
# system (getfacl, setfacl); and quotas.
. "$VMDIR/guest/lib.sh"
if [ "$VERS" = 3 ]; then
	t_begin "ACLs"
	t_skip "NFSv3 has none"
	t_done
fi
vm_up
# Each look asks the server: what it is told, and not how long it believes it, is the question here.
mnt_test noac
D=/mnt/t/acl S=/export/$FS/acl
rm -rf $S
mkdir $S
chmod 777 $S

# as UID GROUP[,GROUP] COMMAND...
as() {
	local uid=$1 gid=${2%%,*} gids=${2#*,}
	shift 2
	setpriv --reuid "$uid" --regid "$gid" --groups "$gids" "$@"
}
denied() { fails_with "Permission denied" "$@"; }
# posix FILE: the server's ACL in one line.
posix() { getfacl -ncpE "$1" | grep . | tr '\n' ' '; }
shown() { # FILE ACE: is it there, to the letter?
	nfs4_getfacl "$1" | grep -qxF "$2" || die "no $2 in: $(nfs4_getfacl "$1" | tr '\n' ' ')"
}

modes() {
	echo x >$S/plain
	chmod 640 $S/plain
	nfs4_getfacl $D/plain
	shown $D/plain A::OWNER@:rwatTcCy
	shown $D/plain A::GROUP@:rtcy
	shown $D/plain A::EVERYONE@:tcy
	chmod 706 $D/plain
	nfs4_getfacl $D/plain
	shown $D/plain D::GROUP@:rwa
	shown $D/plain A::EVERYONE@:rwatcy
}
named() {
	echo x >$S/named
	chmod 640 $S/named
	setfacl -m u:1005:rw,g:2005:r $S/named
	nfs4_getfacl $D/named
	shown $D/named A::1005:rwatcy
	shown $D/named A:g:2005:rtcy
	# The mask takes away what it does not have.
	setfacl -m m::r $S/named
	shown $D/named A::1005:rtcy
}
set_some() {
	echo x >$S/set
	chmod 600 $S/set
	nfs4_setfacl -a A::1005:rwatcy $D/set
	nfs4_setfacl -a A:g:2005:rtcy $D/set
	same "the server's" "user::rw- user:1005:rw- group::--- group:2005:r-- mask::rw- other::--- " "$(posix $S/set)"
	as 1005 100 sh -c "echo more >>$D/set"
	as 1006 100,2005 cat $D/set
	denied as 1006 100,2005 sh -c "echo more >>$D/set"
	denied as 1006 100 cat $D/set
	nfs4_setfacl -x A::1005:rwatcy $D/set
	denied as 1005 100 cat $D/set
	same "the server's" "user::rw- group::--- group:2005:r-- mask::r-- other::--- " "$(posix $S/set)"
}
deny_one() {
	echo x >$S/deny
	chmod 644 $S/deny
	nfs4_setfacl -a D::1005:r $D/deny
	denied as 1005 100 cat $D/deny
	as 1006 100 cat $D/deny
	fails_with '' as 1005 100 test -r $D/deny
}
same_again() {
	local i p
	mkdir $S/again
	setfacl -m u:1005:rwx,u:1006:-,g:2005:rx,d:u:1005:rwx,d:g:2006:r,d:o:- $S/again
	p=$(posix $S/again)
	for i in 1 2; do
		nfs4_getfacl $D/again | grep -v '^#' | grep . >/run/acl.$i
		nfs4_setfacl -S /run/acl.$i $D/again
		same "the server's, round $i" "$p" "$(posix $S/again)"
	done
	cmp /run/acl.1 /run/acl.2
}
inherit() {
	mkdir -m 750 $D/inherit
	nfs4_setfacl -a A:fd:1005:rxtcy $D/inherit
	posix $S/inherit
	(umask 022; mkdir $D/inherit/dir; echo x >$D/inherit/file)
	getfacl -ncpE $S/inherit/dir | grep -qx default:user:1005:r-x
	getfacl -ncpE $S/inherit/file | grep -qx user:1005:r-x
	# Without ACEs that are inherited there is no default ACL any more.
	nfs4_getfacl $D/inherit | grep -v '^#\|:[a-z]*[fd]' | grep . >/run/acl.plain
	nfs4_setfacl -S /run/acl.plain $D/inherit
	! getfacl -ncpE $S/inherit | grep default
}
chmod_masks() {
	echo x >$S/masked
	setfacl -m u:1005:rw $S/masked
	as 1005 100 sh -c "echo x >>$D/masked"
	chmod 600 $D/masked
	denied as 1005 100 cat $D/masked
	shown $D/masked A::1005:tcy
	nfs4_setfacl -s "A::OWNER@:rwatTcCy,A::1005:rtcy,A::EVERYONE@:tcy" $D/masked
	same "mode" 640 "$(stat -c %a $S/masked)"
	# While it has a delegation, Linux's client goes on to believe the mode from before the ACL. A local open ends that.
	: <>$S/masked
	same "mode, as the client sees it" 640 "$(stat -c %a $D/masked)"
}
refused() {
	echo x >$S/refused
	chmod 644 $S/refused
	# The client has no word for NFS4ERR_ATTRNOTSUPP.
	fails_with "Failed setxattr" nfs4_setfacl -a U:S:1005:r $D/refused
	fails_with "not permitted" as 1005 100 nfs4_setfacl -a A::1005:rwa $D/refused
	same "the server's" "user::rw- group::r-- other::r-- " "$(posix $S/refused)"
	fails_with "" nfs4_setfacl -a A::nobody.at.all@nowhere:r $D/refused
	same "the server's" "user::rw- group::r-- other::r-- " "$(posix $S/refused)"
}
owner_sets() {
	as 1005 100 sh -c "umask 077; echo mine >$D/mine"
	denied as 1006 100 cat $D/mine
	as 1005 100 nfs4_setfacl -a A::1006:rtcy $D/mine
	as 1006 100 cat $D/mine
}

# More than fits a page, a small reply, or a message of RDMA.
many() {
	local p
	echo x >$S/many
	setfacl -m "$(seq 3001 3200 | sed 's/.*/u:&:r/' | paste -sd,)" $S/many
	p=$(posix $S/many)
	nfs4_getfacl $D/many | grep -v '^#' | grep . >/run/acl.many
	same "ACEs" 200 "$(grep -c ^A::3...:rtcy /run/acl.many)"
	setfacl -b $S/many
	nfs4_setfacl -S /run/acl.many $D/many
	same "the server's" "$p" "$(posix $S/many)"
}
# The client asks for no quotas, so it is the unit test that does, on a file system that has some.
quota() {
	local t=$BUILDDIR/tests/unit/test_nfs4_acl
	[ "$SERVER" = ringnfsd ] || { echo "of ringnfsd"; exit 77; }
	[ -x "$t" ] || { echo "no $t"; exit 77; }
	modprobe -a loop quota_tree quota_v2
	truncate -s 64M /run/quota.img
	mkfs.ext4 -q -O quota -E quotatype=usrquota /run/quota.img
	mkdir -p /run/quota
	mount -o loop,usrquota /run/quota.img /run/quota
	trap 'umount /run/quota; rm /run/quota.img' EXIT
	chmod 1777 /run/quota
	setquota -u 1005 4096 8192 0 0 /run/quota
	export QUOTA_SOFT=$((4096 * 1024)) QUOTA_HARD=$((8192 * 1024))
	# The test's exports are in /tmp, and the build may be.
	cp "$t" /run/quota_test
	unshare -m sh -c "mount --bind /run/quota /tmp && exec /run/quota_test --filter nfs4_acl/quota" 2>&1 | tee /run/quota.log
	grep -q "Passing: 1" /run/quota.log
}

t_run "modes as ACLs" modes
t_run "named users and groups" named
t_run "set by the client" set_some
t_run "one who is denied" deny_one
t_run "shown and set again" same_again
t_run "inheritance" inherit
t_run "chmod and ACL" chmod_masks
t_run "what is refused" refused
t_run "200 users" many
t_run "an owner who is not root" owner_sets
t_run "quotas" quota
umnt_test
t_done
