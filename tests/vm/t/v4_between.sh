#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Copies between two servers: Linux's client sends COPY_NOTIFY to one and COPY to the other, which reads from the first
# by itself. Both are ringnfsd, on one address: the second on a TCP port of its own.
. "$VMDIR/guest/lib.sh"
[ "$SERVER" = ringnfsd ] || { echo "0 passed, 0 failed, 0 skipped"; exit; }
vm_up
PORT2=2060
MB=1048576
SIZE=$((48 * MB))
S=/export/$FS/between S2=/export/$FS/second
TIMES="lease_time = 10
grace_time = 10"
NAMED="copy_servers = $ADDR, $ADDR:$PORT2"
server_with "[nfs4]
$TIMES
$NAMED"
rm -rf "$S" "$S2"
mkdir -p "$S" "$S2" /run/second/state

# second_start [SETTING]: of its section nfs4.
second_start() {
	echo "$S2 *(rw,no_root_squash,insecure,no_subtree_check,fsid=77)" >/run/second/exports
	printf '[server]\nexports_file = %s\nexports_dir = %s\nstate_dir = %s\ncontrol_socket =\nrpcbind = no\n[tcp]\nport = %s\n[rdma]\nenabled = no\n[nfs4]\n%s\n%s\n' \
		/run/second/exports /run/second/none /run/second/state $PORT2 "$TIMES" "${1:-}" >/run/second/conf
	setsid env -C / "$(ringnfsd_path)" --foreground --config /run/second/conf >>/share/second.log 2>&1 </dev/null &
	echo $! >/run/second/pid
	disown
	wait_until 60 tcp_listens $PORT2 || die "the second server does not listen"
}
second_stop() {
	kill "${1:--TERM}" "$(cat /run/second/pid)"
	wait_until 20 eval "! kill -0 $(cat /run/second/pid)"
}
mount_both() {
	nfs_mount 4.2 "$PROTO" "$S" /mnt/t
	(NFSPORT=$PORT2 && nfs_mount 4.2 tcp "$S2" /mnt/u)
}
umount_both() { umount /mnt/t /mnt/u; }

# copy FROM TO: with copy_file_range alone, until the end; says how many bytes.
copy() {
	python3 -c "
import os, sys
src, dst = os.open('$1', os.O_RDONLY), os.open('$2', os.O_WRONLY | os.O_CREAT)
done, size = 0, os.fstat(src).st_size
while done < size and (n := os.copy_file_range(src, dst, size - done)):
    done += n
os.close(dst)
print(done)"
}
sent() { op_count "$1" "$2"; }

# between FROM TO: mounts. The bytes do not come through the client.
between() {
	local notify copies reads writes
	notify=$(sent "$1" COPY_NOTIFY) copies=$(sent "$2" COPY) reads=$(sent "$1" READ) writes=$(sent "$2" WRITE)
	same "bytes copied" $SIZE "$(copy "$1/data" "$2/copy")"
	[ "$(sent "$1" COPY_NOTIFY)" -gt "$notify" ] || die "no COPY_NOTIFY"
	[ "$(sent "$2" COPY)" -gt "$copies" ] || die "no COPY"
	same "calls of READ and WRITE" "$reads $writes" "$(sent "$1" READ) $(sent "$2" WRITE)"
	cmp /run/between.data "$2/copy"
	t_note "$(($(sent "$2" COPY) - copies)) calls of COPY"
}
tools() {
	local copies
	copies=$(sent /mnt/u COPY)
	cp /mnt/t/data /mnt/u/cp
	cmp /run/between.data "$S2/cp"
	[ "$(sent /mnt/u COPY)" -gt "$copies" ] || die "cp has read and written"
}
# A signal ends the copy at the destination, and what the source allows.
cancelled() {
	local before size
	before="$(sent /mnt/t OFFLOAD_CANCEL) $(sent /mnt/u OFFLOAD_CANCEL)"
	truncate -s 1G "$S/long"
	rm -f "$S2/long"
	ls -l /mnt/t/long >/dev/null
	copy /mnt/t/long /mnt/u/long &
	wait_until 60 eval "[ \$(stat -c %s $S2/long 2>/dev/null || echo 0) -gt 0 ]" || die "nothing is copied"
	pkill -P $! 2>/dev/null || kill $!
	wait $! && die "the copy has ended before the signal"
	wait_until 60 eval "[ \$(sent /mnt/u OFFLOAD_CANCEL) -gt ${before#* } ]" || die "no OFFLOAD_CANCEL to the destination"
	wait_until 60 eval "[ \$(sent /mnt/t OFFLOAD_CANCEL) -gt ${before% *} ]" || die "no OFFLOAD_CANCEL to the source"
	size=$(stat -c %s "$S2/long")
	[ "$size" -lt $((1 << 30)) ] || die "all of it was copied"
	sleep 1
	same "size a second later" "$size" "$(stat -c %s "$S2/long")"
	t_note "after $size bytes"
	rm "$S/long" "$S2/long"
}
# A server restarts in the middle; what is copied in the end is right.
restarted() {
	local size=$((256 * MB)) pid
	cp /run/between.data "$S/long"
	truncate -s $size "$S/long"
	rm -f "$S2/long"
	ls -l /mnt/t/long >/dev/null
	copy /mnt/t/long /mnt/u/long >/run/between.out &
	pid=$!
	wait_until 60 eval "[ \$(stat -c %s $S2/long 2>/dev/null || echo 0) -gt 0 ]" || die "nothing is copied"
	if [ "$1" = source ]; then
		server_kill9
		server_again
	else
		second_stop -KILL
		second_start "$NAMED"
	fi
	wait $pid
	same "bytes copied" $size "$(cat /run/between.out)"
	cmp "$S/long" "$S2/long"
	rm "$S/long" "$S2/long"
}
# Servers that are not named: the client reads and writes.
not_named() {
	umount_both
	second_stop
	second_start
	mount_both
	cp /mnt/t/data /mnt/u/plain
	cp /mnt/u/plain /mnt/t/plain
	cmp /run/between.data "$S2/plain"
	cmp /run/between.data "$S/plain"
}

vm_prog vmio gen 7 $SIZE "$S/data"
cp "$S/data" /run/between.data
cp "$S/data" "$S2/data"
second_start "$NAMED"
mount_both
t_run "copy to the second server" between /mnt/t /mnt/u
t_run "copy from the second server" between /mnt/u /mnt/t
t_run "programs" tools
t_run "cancelled by a signal" cancelled
t_run "the source restarts" restarted source
t_run "the destination restarts" restarted destination
t_run "servers that are not named" not_named
umount_both
second_stop
rm -rf "$S" "$S2" /run/between.data
server_with ""
t_done
