#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Copies that the server makes: CLONE where its file system shares blocks (XFS), COPY everywhere. Before 4.2 the client
# reads and writes.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/copy S=/export/$FS/copy
rm -rf "$S"
mkdir "$D"
MB=1048576
SIZE=$((64 * MB))

f() { vm_prog vmfile do f "$@"; }
sent() { op_count /mnt/t "$1"; }
# sent_more OP BEFORE LEAST: the client has sent the operation that often since.
sent_more() {
	local n
	n=$(($(sent "$1") - $2))
	[ "$n" -ge "$3" ] || die "the client sent $n calls of $1, fewer than $3"
}
# all_shared FILE: extents of the server's file, each of them shared with another file.
all_shared() {
	local map
	sync
	map=$(filefrag -v "$S/$1" | awk '$1 ~ /^[0-9]+:$/')
	[ -n "$map" ] || die "$1 has no extents"
	! grep -v shared <<<"$map" || die "$1 has extents of its own"
}
has_reflink() { [ "$FS" = xfs ] && xfs_info "/export/$FS" | grep -q reflink=1; }

clone() {
	local before
	before=$(sent CLONE)
	cp --reflink=always "$D/src" "$D/clone"
	sent_more CLONE "$before" 1
	cmp "$D/src" "$D/clone"
	cmp "$S/src" "$S/clone"
	all_shared clone
	# What is written to the clone is the clone's.
	printf changed | dd of="$D/clone" bs=1 seek=$MB conv=notrunc status=none
	cmp /run/copy.data "$S/src"
	same "text in the clone" changed "$(tail -c +$((MB + 1)) "$S/clone" | head -c 7)"
}
no_clone() {
	fails_with "Operation not supported" cp --reflink=always "$D/src" "$D/clone"
}
# asynchronous: how many asynchronous copies the server has begun.
asynchronous() {
	server_counters | grep -a 'asynchronous copies:' | sed -E 's/.*copies: ([0-9]+) begun.*/\1/'
}
copy() {
	local before begun
	before=$(sent COPY)
	[ "$SERVER" = knfsd ] || begun=$(asynchronous)
	same "bytes copied" $SIZE "$(f copy "$D/src" 0 0 $SIZE)"
	# It is asynchronous, or the client would ask four times.
	same "calls of COPY" 1 $(($(sent COPY) - before))
	if [ "$SERVER" != knfsd ]; then same "asynchronous copies" "$((begun + 1))" "$(asynchronous)"; fi
	cmp "$D/src" "$D/dst"
	drop_caches
	cmp "$D/src" "$D/dst"
	cmp "$S/src" "$S/dst"
	if has_reflink; then all_shared dst; fi
}
odd_ranges() {
	same "bytes copied" $((3 * MB + 5)) "$(f copy "$D/src" 12345 777 $((3 * MB + 5)))"
	cmp -n $((3 * MB + 5)) -i 12345:777 /run/copy.data "$D/dst"
	cmp -n 777 /run/copy.data "$D/dst"
	# The source ends within the range; nothing is left behind its end.
	same "bytes up to the end" 100 "$(f copy "$D/src" $((SIZE - 100)) $((SIZE + 50)) $MB)"
	sync "$D/dst" # before 4.2 the client copies, and writes later
	same "size" $((SIZE + 150)) "$(stat -c %s "$S/dst")"
	cmp -n 100 -i $((SIZE - 100)):$((SIZE + 50)) /run/copy.data "$D/dst"
	same "bytes behind the end" 0 "$(f copy "$D/src" $((SIZE + 1)) 0 $MB)"
}
# A GiB, most of it holes, which the client's calls of COPY take as one.
large() {
	local before begun=$SECONDS
	before=$(sent COPY)
	truncate -s 1G "$S/large"
	dd if=/run/copy.data of="$S/large" bs=$MB seek=700 conv=notrunc status=none
	ls -l "$D/large" >/dev/null
	vm_prog vmfile start large "$D/large.copy" rwc
	same "bytes copied" $((1 << 30)) "$(vm_prog vmfile do large copy "$D/large" 0 0 $((1 << 30)))"
	vm_prog vmfile stop large
	same "calls of COPY" 1 $(($(sent COPY) - before))
	t_note "$((SECONDS - begun)) s"
	cmp "$S/large" "$S/large.copy"
	rm "$S/large" "$S/large.copy"
}
# A signal ends the copy on the server, too. With shared blocks there is no middle.
cancelled() {
	local before size
	before=$(sent OFFLOAD_CANCEL)
	truncate -s 1G "$S/long"
	: >"$S/long.copy"
	ls -l "$D/long" "$D/long.copy" >/dev/null
	python3 -c "
import os
src, dst = os.open('$D/long', os.O_RDONLY), os.open('$D/long.copy', os.O_WRONLY)
os.copy_file_range(src, dst, 1 << 30)" &
	wait_until 60 eval "[ \$(stat -c %s $S/long.copy) -gt 0 ]" || die "nothing is copied"
	kill $!
	wait $! && die "the copy has ended before the signal"
	wait_until 60 eval "[ \$(op_count /mnt/t OFFLOAD_CANCEL) -gt $before ]" || die "no OFFLOAD_CANCEL"
	wait_until 60 no_copies || die "the server goes on"
	size=$(stat -c %s "$S/long.copy")
	[ "$size" -lt $((1 << 30)) ] || die "all of it was copied"
	t_note "after $size bytes"
	rm "$S/long" "$S/long.copy"
}
# The client of 7.2 asks for the state of a copy of which it has heard nothing for three seconds; that of 6.12 waits.
asked_for() {
	local before pid
	case $KERNEL in 6.*) echo "the client waits for CB_OFFLOAD only"; exit 77 ;; esac
	before=$(sent OFFLOAD_STATUS)
	truncate -s 256M "$S/long"
	: >"$S/long.copy"
	ls -l "$D/long" "$D/long.copy" >/dev/null
	vm_prog vmfile start long "$D/long.copy" rw
	vm_prog vmfile do long copy "$D/long" 0 0 $((1 << 28)) >/run/copy.out &
	pid=$!
	wait_until 60 eval "[ \$(stat -c %s $S/long.copy) -gt 0 ]" || die "nothing is copied"
	kill -STOP "$(server_pid)"
	[ "$(stat -c %s "$S/long.copy")" -lt $((1 << 28)) ] || { kill -CONT "$(server_pid)"; echo "it was copied too soon"; exit 77; }
	sleep 4
	kill -CONT "$(server_pid)"
	wait $pid
	vm_prog vmfile stop long
	same "bytes copied" $((1 << 28)) "$(cat /run/copy.out)"
	[ "$(sent OFFLOAD_STATUS)" -gt "$before" ] || die "no OFFLOAD_STATUS"
	cmp "$S/long" "$S/long.copy"
	rm "$S/long" "$S/long.copy"
}
# The server is killed in the middle of a GiB, and comes back: the client copies again what it has not been told of.
interrupted() {
	local size pid begun=$SECONDS
	cp "$S/src" "$S/long"
	truncate -s 1G "$S/long"
	: >"$S/long.copy"
	ls -l "$D/long" "$D/long.copy" >/dev/null
	python3 -c "
import os
src, dst = os.open('$D/long', os.O_RDONLY), os.open('$D/long.copy', os.O_WRONLY)
done = 0
while done < 1 << 30 and (n := os.copy_file_range(src, dst, (1 << 30) - done)):
    done += n
os.close(dst)
print(done)" >/run/copy.out &
	pid=$!
	wait_until 60 eval "[ \$(stat -c %s $S/long.copy) -gt 0 ]" || die "nothing is copied"
	server_kill9
	size=$(stat -c %s "$S/long.copy")
	[ "$size" -lt $((1 << 30)) ] || die "all of it was copied before the restart"
	server_again
	wait $pid
	same "bytes copied" $((1 << 30)) "$(cat /run/copy.out)"
	cmp "$S/long" "$S/long.copy"
	t_note "killed after $size bytes; all in $((SECONDS - begun)) s"
	rm "$S/long" "$S/long.copy"
}
# Half a GiB within a file, which Linux's client reads and writes.
large_within() {
	local begun=$SECONDS
	cp "$S/src" "$S/large"
	truncate -s 1G "$S/large"
	ls -l "$D/large" >/dev/null
	vm_prog vmfile start large "$D/large" rw
	same "bytes copied" $((1 << 29)) "$(vm_prog vmfile do large copy "$D/large" 0 $((1 << 29)) $((1 << 29)))"
	vm_prog vmfile stop large
	sync "$D/large"
	cmp -n $((1 << 29)) -i 0:$((1 << 29)) "$S/large" "$S/large"
	t_note "$((SECONDS - begun)) s"
	rm "$S/large"
}
no_copies() { server_counters | grep -q 'nfs4_copies=0'; }
# Linux's client does this by itself: RFC 7862 has COPY for two files.
within_a_file() {
	f truncate 0
	same "bytes copied" $((4 * MB)) "$(f copy "$D/src" 0 0 $((4 * MB)))"
	same "bytes within the file" $((2 * MB)) "$(f copy "$D/dst" $MB $((8 * MB)) $((2 * MB)))"
	cmp -n $((2 * MB)) -i $MB:$((8 * MB)) /run/copy.data "$D/dst"
	sync "$D/dst"
	same "size" $((10 * MB)) "$(stat -c %s "$S/dst")"
}
# The set-uid bit goes when a user's copy has changed a file.
set_uid() {
	cp "$S/src" "$S/tool"
	chown 1000:1000 "$S/tool" && chmod 4755 "$S/tool"
	ls -l "$D/tool" >/dev/null
	setpriv --reuid 1000 --regid 1000 --clear-groups "$VMPROG/vmfile" start user "$D/tool" rw
	same "bytes copied" $MB "$(vm_prog vmfile do user copy "$D/src" 0 0 $MB)"
	vm_prog vmfile stop user
	same "mode" 755 "$(stat -c %a "$S/tool")"
}
# The programs that use it.
tools() {
	cp "$D/src" "$D/plain"
	cmp "$D/src" "$D/plain"
	cp --sparse=always "$D/src" "$D/sparse"
	cmp "$D/src" "$D/sparse"
}

vm_prog vmio gen 7 $SIZE "$D/src"
cp "$S/src" /run/copy.data
vm_prog vmfile start f "$D/dst" rwc
if [ "$VERS" = 4.2 ]; then
	if has_reflink; then t_run "clone" clone; else t_run "no clones" no_clone; fi
	t_run "copy 64 MiB" copy
	[ -z "${FULL:-}" ] || t_run "copy 1 GiB" large
	[ -z "${FULL:-}" ] || t_run "copy within a file of 1 GiB" large_within
	[ -z "${FULL:-}" ] || [ "$SERVER" = knfsd ] || has_reflink || t_run "a copy of 1 GiB, and a restart" interrupted
	[ "$SERVER" = knfsd ] || has_reflink || t_run "cancelled by a signal" cancelled
	[ "$SERVER" = knfsd ] || has_reflink || t_run "asked for" asked_for
	t_run "set-uid bit" set_uid
else
	t_run "copy by the client" eval "f copy $D/src 0 0 $SIZE && cmp $D/src $D/dst && same COPY 0 \$(sent COPY)"
fi
t_run "odd ranges" odd_ranges
t_run "within a file" within_a_file
t_run "programs" tools
vm_prog vmfile stop f
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf "$D" /run/copy.data
umnt_test
t_done
