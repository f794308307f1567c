#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The daemon is killed and started again in the middle of work: the client goes on.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/restart S=/export/$FS/restart
rm -rf $S
mkdir $D
SIZE=$((64 << 20))

kill_and_restart() {
	server_kill9
	sleep 1
	ringnfsd_launch
}
# in_the_middle FILE COMMAND...: the daemon dies when FILE has 6 MiB, and the command must live on to
# its end. A command that was through before the death was not interrupted: once more, a few times.
in_the_middle() {
	local file=$1 pid try
	shift
	for try in 1 2 3 4 5; do
		rm -f "${file/#$S/$D}" # by the client: it knows the file
		"$@" &
		pid=$!
		wait_until 60 eval "[ \"\$(stat -c %s $file 2>/dev/null || echo 0)\" -gt 6000000 ]"
		server_kill9
		sleep 1
		if kill -0 $pid 2>/dev/null; then
			ringnfsd_launch
			wait $pid
			return
		fi
		ringnfsd_launch
		wait $pid || die "the command failed at once when the server was gone"
		echo "try $try was through before the server died"
	done
	die "the command was always too fast to be interrupted"
}
writing() {
	in_the_middle $S/copy vm_prog vmio gen 21 $SIZE $D/copy
	drop_caches
	vm_prog vmio check 21 $SIZE $D/copy
	vm_prog vmio check 21 $SIZE $S/copy
}
direct_writing() {
	in_the_middle $S/direct dd if=$S/copy of=$D/direct bs=1M oflag=direct status=none
	vm_prog vmio check 21 $SIZE $S/direct
}
reading() {
	drop_caches
	in_the_middle /run/back dd if=$D/copy of=/run/back bs=256k iflag=direct status=none
	vm_prog vmio check 21 $SIZE /run/back
	rm /run/back
}
# Expects Linux's error for a deleted file. With NFSv4 the open may also fail to be reclaimed, so that the error depends
# on whether Linux asks for attributes first.
is_gone() {
	local out
	if out=$("$@" 2>&1); then die "succeeded but should not: $*"; fi
	case $VERS/$out in *"Stale file handle"* | 4*"Bad file descriptor"*) ;; *) die "$*: $out" ;; esac
}
# Handles outlive the daemon, and a rename; those of deleted files are stale.
handles() {
	echo kept >$D/before
	echo gone >$D/deleted
	exec 5<>$D/before 6<$D/deleted
	mkdir $D/dir
	(cd $D/dir && {
		mv $S/before $S/after
		rm $S/deleted
		kill_and_restart
		drop_caches
		same "an open file, renamed" kept "$(cat <&5)"
		echo more >&5
		is_gone cat <&6
		touch here
	})
	exec 5<&- 6<&-
	same "written through it" "kept more" "$(echo $(cat $S/after))"
	[ -e $S/dir/here ]
}
# Many files being made: each is there once, with its data.
creating() {
	local i pid
	mkdir $D/many
	(for i in {1..60}; do echo "file $i" >$D/many/$i || exit 1; done) &
	pid=$!
	wait_until 60 [ -e $S/many/10 ]
	kill_and_restart
	wait $pid
	drop_caches
	for i in {1..60}; do same "data" "file $i" "$(cat $D/many/$i)"; done
}
stops_cleanly() {
	server_stop
	mkdir -p $STATE
	echo ringnfsd >$STATE/kind
	ringnfsd_launch
	same "data after a stop and start" "file 60" "$(cat $D/many/60)"
}

if [ "$SERVER" != ringnfsd ]; then
	t_begin "restart"
	t_skip "the kernel's server cannot be killed"
	umnt_test
	t_done
fi
t_run "killed while a file is written" writing
t_run "killed while a file is written, O_DIRECT" direct_writing
t_run "killed while a file is read" reading
t_run "handles outlive the daemon" handles
t_run "killed while files are created" creating
t_run "SIGTERM stops it" stops_cleanly
rm -rf $D
umnt_test
t_done
