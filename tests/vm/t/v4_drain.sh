#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# An export that is drained, as Linux's client takes it: what is open goes on; opens, locks and mounts wait without an
# error, can be killed, and go on when the drain is cancelled; delegations are returned with what was opened under them.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "drain"
	t_skip "of ringnfsd, and of NFSv4: NFSv3 has no opens"
	t_done
fi
vm_up
clients_up
P=/mnt/p
S=/export/$FS/drain
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"

ctl() { "$BUILDDIR/ringnfsctl" "$@"; }
# drained SECONDS: exit status of the tool.
drained() {
	local rc=0
	ctl drain --timeout "$1" || rc=$?
	echo "status $rc"
}
held() { ctl drain --timeout 0 | grep -m 1 held || true; }
begin() {
	nfs_mount "$VERS" "$PROTO" "/export/$FS" $P
	echo before >"$S/$1"
	chmod 666 "$S/$1"
	file one "$1" start "$P/drain/$1" rw
	file one "$1" lock posix w 0 10
}
# waits PID: it has not ended after some seconds.
waits() {
	sleep 3
	kill -0 "$1" || die "it did not wait"
}
ended() { ! kill -0 "$1" 2>/dev/null; }

goes_on() {
	local new lock
	begin f
	file one g start "$P/drain/f" rw
	case $(drained 1) in *"status 4"*) ;; *) die "nothing is held" ;; esac
	sh -c "echo x >$P/drain/new" &
	new=$!
	file one g lock posix w 20 10 &
	lock=$!
	file one f write 0 written
	file one f sync
	same "data" written "$(head -c 7 "$S/f")"
	same "read" "writ" "$(file one f read 0 4)"
	waits $new
	waits $lock
	[ ! -e "$S/new" ] || die "the new file is there"
	ctl drain --cancel
	wait_until 60 ended $new || die "the open still waits"
	wait_until 60 ended $lock || die "the lock still waits"
	wait $new || die "the open failed"
	wait $lock || die "the lock failed"
	same "the new file" x "$(cat "$S/new")"
	file one f stop
	file one g stop
	umount $P
}
until_nothing_is_held() {
	local tool
	begin h
	ctl drain >/run/drain.said &
	tool=$!
	waits $tool
	file one h stop
	wait_until 60 ended $tool || die "$(held)"
	wait $tool || die "$(cat /run/drain.said)"
	grep -q "drained: nothing is held" /run/drain.said || die "$(cat /run/drain.said)"
	ctl drain --cancel
	umount $P
}
# A process that waits is killed; the mount goes on.
killed() {
	local new
	begin k
	drained 0
	sh -c "exec cat >$P/drain/killed" </dev/null &
	new=$!
	waits $new
	kill -9 $new
	wait_until 40 ended $new || die "it cannot be killed"
	file one k write 0 after
	file one k sync
	ctl drain --cancel
	file one k stop
	umount $P
}
# A client that the server does not know.
new_client() {
	local mount
	drained 0
	client_mount two "$VERS" "/export/$FS" &
	mount=$!
	waits $mount
	ctl drain --cancel
	wait_until 60 ended $mount || die "the mount still waits"
	wait $mount || die "the mount failed"
	on two ls /mnt/two/drain
	client_umount two
}
# Opens and locks that the client has not told of go to the server before the delegation.
delegation() {
	nfs_mount "$VERS" "$PROTO" "/export/$FS" $P
	echo given >"$S/d"
	chmod 666 "$S/d"
	file one d start "$P/drain/d" rw
	wait_until 20 sh -c "cat $P/drain/d >/run/drain.d; $BUILDDIR/ringnfsctl delegations | grep -q drain/d" || \
		{ file one d stop; umount $P; echo "the client gets none"; exit 77; }
	file one d lock posix w 0 10
	t_note "$(ctl delegations | grep drain/d | awk '{ print $2 }')"
	ctl drain --timeout 0 || true
	wait_until 60 eval "! ctl delegations | grep -q drain/d" || die "$(ctl delegations)"
	case $(held) in *" 1 opens, 1 locks and 0 delegations"*) ;; *) die "$(held)" ;; esac
	file one d write 0 after
	file one d stop
	case $(drained 60) in *"status 0"*) ;; *) die "$(held)" ;; esac
	same "data" after "$(head -c 5 "$S/d")"
	ctl drain --cancel
	umount $P
}

# clean: after a test that failed, too.
clean() {
	ctl drain --cancel >/run/clean.log 2>&1
	pidof vmfile | xargs -r kill -9
	umount -l $P /mnt/two 2>/dev/null
	true
}
t_run "what is open goes on, what is new waits" goes_on
clean
t_run "until nothing is held" until_nothing_is_held
clean
t_run "a process that waits is killed" killed
clean
t_run "a client that is new waits" new_client
clean
t_run "a delegation" delegation
clean
t_done
