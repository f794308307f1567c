#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Referrals: a second ringnfsd, on a TCP port of its own, sends clients to the first, which Linux's client follows by itself.
. "$VMDIR/guest/lib.sh"
[ "$SERVER" = ringnfsd ] || { echo "0 passed, 0 failed, 0 skipped"; exit; }
vm_up
PORT2=2061
S=/export/$FS/referred S2=/export/$FS/referring
OPTS=rw,no_root_squash,insecure,no_subtree_check
rm -rf "$S" "$S2"
mkdir -p "$S" "$S2"/{moved,later,six,copied} /run/referring/state
echo there >"$S/file"
for d in moved later six copied; do echo here >"$S2/$d/file"; done

second_start() {
	{
		echo "$S2 *($OPTS)"
		echo "$S2/moved *($OPTS,refer=$S@$ADDR)"
		echo "$S2/later *($OPTS,refer=/nowhere@$ADDR:$S@$ADDR)"
		echo "$S2/six *($OPTS,refer=$S@[::1])"
		echo "$S2/copied *($OPTS,replicas=$S@$ADDR)"
	} >/run/referring/exports
	printf '[server]\nexports_file = %s\nexports_dir = %s\nstate_dir = %s\ncontrol_socket =\nrpcbind = no\n[tcp]\nport = %s\n[rdma]\nenabled = no\n[nfs4]\nlease_time = 10\ngrace_time = 10\n' \
		/run/referring/exports /run/referring/none /run/referring/state $PORT2 >/run/referring/conf
	setsid env -C / "$(ringnfsd_path)" --foreground --config /run/referring/conf >>/share/referring.log 2>&1 </dev/null &
	echo $! >/run/referring/pid
	disown
	wait_until 60 tcp_listens $PORT2 || die "the second server does not listen"
}
second_stop() {
	kill "$(cat /run/referring/pid)"
	wait_until 20 eval "! kill -0 $(cat /run/referring/pid)"
}
# source_of DIRECTORY: what is mounted there.
source_of() { awk -v at="$1" '$2 == at { print $1 }' /proc/mounts; }

listed() {
	same "names" "copied later moved six" "$(ls /mnt/u | tr '\n' ' ' | sed 's/ $//')"
	ls -l /mnt/u >/dev/null
}
followed() {
	same "what is read" there "$(cat /mnt/u/moved/file)"
	same "source" "$ADDR:$S" "$(source_of /mnt/u/moved)"
}
written() {
	echo new >/mnt/u/moved/new
	same "at the first server" new "$(cat "$S/new")"
	[ ! -e "$S2/moved/new" ] || die "the second server has it"
	mkdir /mnt/u/moved/dir
	mv /mnt/u/moved/new /mnt/u/moved/dir/new
	fails_with "Invalid cross-device link" python3 -c "import os; os.rename('/mnt/u/moved/dir', '/mnt/u/dir')"
}
next_one() { same "what is read" there "$(cat /mnt/u/later/file)"; }
over_six() { same "what is read" there "$(cat /mnt/u/six/file)"; }
replicated() {
	same "what is read" here "$(cat /mnt/u/copied/file)"
	same "source" "" "$(source_of /mnt/u/copied | grep "$ADDR:$S\$")"
}
older() {
	(NFSPORT=$PORT2 MOUNTPORT=$PORT2 && nfs_mount 3 tcp "$S2/moved" /mnt/t)
	same "what NFSv3 reads" here "$(cat /mnt/t/file)"
	umount /mnt/t
}
ended() {
	local at
	for at in moved later six; do umount "/mnt/u/$at" 2>/dev/null; done
	umount /mnt/u
}

second_start
(NFSPORT=$PORT2 && nfs_mount "$VERS" tcp "$S2" /mnt/u) || die "no mount"
t_run "a listing does not follow" listed
t_run "a referral is followed" followed
t_run "files are made at the other server" written
t_run "the next location, if the first leads nowhere" next_one
if [ -e /proc/net/if_inet6 ] && grep -q '^0\{31\}1 ' /proc/net/if_inet6; then
	t_run "an IPv6 address" over_six
else
	t_skip "an IPv6 address" "the guest has none"
fi
t_run "replicas stay here" replicated
t_run "NFSv3 has what is here" older
t_run "all can be unmounted" ended
second_stop
t_done
