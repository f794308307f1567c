#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# NFSv2 by the client of the kernel: names, data, directories, links, special files, a restart; by RDMA where there is a device, and
# by TCP.
. "$VMDIR/guest/lib.sh"
vm_up
server_with $'[nfs2]\nenabled = yes'
D=/mnt/t/two S=/export/$FS/two
rm -rf $S
mkdir $S
chmod 777 $S

# mount2 PROTO: by the kernel's own client of MOUNT.
mount2() {
	local port=$NFSPORT
	[ "$1" != rdma ] || port=$RDMAPORT
	mkdir -p /mnt/t
	timeout 60 "$VMPROG/vmmount" "$ADDR:/export/$FS" /mnt/t \
		"vers=2,proto=$1,port=$port,mountproto=tcp,mountvers=1,mountport=$MOUNTPORT,addr=$ADDR,nolock,noac"
}
mounts() {
	mount2 "$PROTO"
	grep -q " /mnt/t nfs .*vers=2.*proto=$PROTO" /proc/mounts
}
data() {
	vm_prog vmio gen 5 3000000 $D/data
	vm_prog vmio check 5 3000000 $S/data
	drop_caches
	vm_prog vmio check 5 3000000 $D/data
	truncate -s 1000 $D/data
	same size 1000 "$(stat -c %s $S/data)"
	echo end >>$D/data
	same "the end" end "$(tail -c 4 $S/data)"
}
names() {
	local long i
	printf -v long '%0255d' 0
	echo x >$D/a
	mv $D/a $D/$long
	ln $D/$long $D/b
	same links 2 "$(stat -c %h $D/b)"
	rm $D/$long
	same "what is left" x "$(cat $D/b)"
	fails_with "too long" touch $D/${long}0
	mkdir $D/dir
	for ((i = 0; i < 300; i++)); do echo >$S/dir/$i; done
	same entries 300 "$(ls $D/dir | sort -u | wc -l)"
	same "by the listing" 300 "$(ls -U $D/dir | wc -l)"
	fails_with "not empty" rmdir $D/dir
	rm -r $D/dir
	[ ! -e $S/dir ]
	ln -s b $D/link
	same "a symbolic link" b "$(readlink $S/link)"
	same "through it" x "$(cat $D/link)"
	mkfifo $D/fifo
	mknod $D/null c 1 3
	same "a FIFO" fifo "$(stat -c %F $S/fifo)"
	same "a device" "1,3 1,3" "$(stat -c %t,%T $S/null) $(stat -c %t,%T $D/null)"
}
attributes() {
	echo x >$D/attr
	chmod 604 $D/attr
	chown 1005:2005 $D/attr
	touch -d @1000000000 $D/attr
	same attributes "604 1005 2005 1000000000" "$(stat -c '%a %u %g %Y' $S/attr)"
	fails_with "Permission denied" setpriv --reuid 1006 --regid 2006 --clear-groups sh -c "echo y >$D/attr"
	touch $D/attr
	[ $((EPOCHSECONDS - $(stat -c %Y $S/attr))) -lt 60 ]
	same "free space" "$(stat -f -c %b /export/$FS | cut -c 1-3)" "$(stat -f -c '%b %S' /mnt/t | awk -v s="$(stat -f -c %S /export/$FS)" '{ print $1 * $2 / s }' | cut -c 1-3)"
}
too_large() {
	truncate -s 3G $S/large
	same "a size of 3 GiB" $((3 << 30)) "$(stat -c %s $D/large)"
	truncate -s 5G $S/large
	same "a size of 5 GiB" 4294967295 "$(stat -c %s $D/large)"
	rm $S/large
}
restart() {
	exec 5>$D/open
	echo before >&5
	server_kill9
	ringnfsd_launch
	echo after >&5
	exec 5>&-
	same "an open file after a restart" "before after" "$(tr '\n' ' ' <$S/open | sed 's/ $//')"
}
tcp() {
	umnt_test
	mount2 tcp
	vm_prog vmio gen 6 500000 $D/tcp
	vm_prog vmio check 6 500000 $S/tcp
}

t_run mount mounts
t_run data data
t_run names names
t_run attributes attributes
t_run "large files" too_large
t_run restart restart
[ "$PROTO" = tcp ] || t_run "by TCP" tcp
umnt_test
server_with ""
t_done
