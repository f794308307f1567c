#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# On the machine whose power is cut (tests/vm/run --cut-disks): its disks and the server on them.
#   cut_server.sh mount          /cut/ext4 and /cut/xfs, with a folder data and a folder async
#   cut_server.sh serve          ringnfsd exports them; async does not wait for the disk; its state is on /cut/ext4
#   cut_server.sh locked FILE    status 0 if a client of the server has FILE locked
. "$VMDIR/guest/lib.sh"

disk_of() { echo "/dev/$(basename "$(dirname "$(grep -lx "$1" /sys/block/vd*/serial)")")"; }

case $1 in
mount)
	# noatime: the comparison before the server starts reads files. The access time of one that EXCLUSIVE CREATE has just
	# made is half of its verifier; with another, the client that repeats its call is told that somebody else made the file.
	for fs in ext4 xfs; do
		mkdir -p /cut/$fs
		mount -t $fs -o noatime "$(disk_of cut$fs)" /cut/$fs || die "/cut/$fs cannot be mounted"
		mkdir -p /cut/$fs/{data,async}
	done
	[ -d /cut/ext4/state ] || mkdir -m 700 /cut/ext4/state
	sync
	mkdir -p $STATE
	ln -sfn /cut/ext4/state $STATE/state
	;;
serve)
	opt=rw,no_subtree_check,insecure,no_root_squash
	ringnfsd_start "$(for fs in ext4 xfs; do
		echo "/cut/$fs/data *($opt,sync)"
		echo "/cut/$fs/async *($opt,async)"
	done)"
	;;
locked)
	python3 - "$2" <<-'END'
		import fcntl, os, struct, sys
		fd = os.open(sys.argv[1], os.O_RDWR)
		got = fcntl.fcntl(fd, fcntl.F_GETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
		sys.exit(struct.unpack("hhqqi4x", got)[0] == fcntl.F_UNLCK)
	END
	;;
esac
