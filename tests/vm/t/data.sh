#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# File data: sizes around the boundaries, O_DIRECT, append, truncate, holes, far offsets.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/data S=/export/$FS/data
rm -rf $S
mkdir $D
sizes="0 1 1023 1024 1025 4095 4096 4097 65535 65536 65537 1048575 1048576 1048577 67108864"

# Every size is written first, and read when neither client nor server has it in memory.
sizes() {
	local n
	for n in $sizes; do
		vm_prog vmio gen "$n" "$n" $D/$n
		[ $n -gt 2000000 ] || sum $D/$n >/run/sum.$n
	done
	drop_caches
	for n in $sizes; do
		vm_prog vmio check "$n" "$n" $D/$n
		same "size of $n bytes" $n "$(stat -c %s $D/$n)"
		# vmio compares every byte; a checksum of the largest takes long when emulated.
		[ $n -gt 2000000 ] || same "checksum of $n bytes" "$(cat /run/sum.$n)" "$(sum $D/$n)"
	done
}
direct() {
	vm_prog vmio direct 2000000 $D/direct
	vm_prog vmio direct 300000 $D/direct.small
	cmp $D/direct $S/direct
}
append() {
	vm_prog vmio append 60 $D/append
	echo from the server >>$S/append
	sleep 1.1
	drop_caches
	echo from the client >>$D/append
	same "last lines" "from the server from the client" "$(echo $(tail -n 2 $S/append))"
}
truncated() {
	local n
	vm_prog vmio gen 9 200000 $D/trunc
	for n in 150001 65536 4097 1; do
		truncate -s $n $D/trunc
		drop_caches
		vm_prog vmio check 9 $n $D/trunc
	done
	truncate -s 10000 $D/trunc
	drop_caches
	same "bytes that are zero after growing" 9999 \
		"$(tail -c +2 $D/trunc | tr -d '\0' | wc -c | awk '{ print 9999 - $1 }')"
	: >$D/trunc
	same "size of an emptied file" 0 "$(stat -c %s $S/trunc)"
}
sparse() {
	local before
	printf x | dd of=$D/sparse bs=1 seek=$((32 << 20)) conv=notrunc status=none
	sync
	drop_caches
	same size $(((32 << 20) + 1)) "$(stat -c %s $D/sparse)"
	[ "$(stat -c %b $D/sparse)" -lt 2048 ] || die "holes take space: $(stat -c %b $D/sparse) blocks"
	before=$(head -c 1048576 $D/sparse | tr -d '\0' | wc -c)
	same "bytes in the hole" 0 "$before"
	same "the end" x "$(tail -c 1 $D/sparse)"
}
far() {
	printf over4g | dd of=$D/far bs=1 seek=$(((5 << 30) + 3)) conv=notrunc status=none
	drop_caches
	same size $(((5 << 30) + 9)) "$(stat -c %s $D/far)"
	same data over4g "$(tail -c 6 $D/far)"
	same "the same on the server" over4g "$(tail -c 6 $S/far)"
}
mapped() {
	vm_prog vmio gen 12 100001 $D/map
	vm_prog vmio map 12 100001 $D/map
	drop_caches
	vm_prog vmio check 13 100001 $S/map
}

t_run "files of many sizes" sizes
t_run "O_DIRECT at odd offsets" direct
t_run "append" append
t_run "truncate" truncated
t_run "sparse file" sparse
t_run "offsets over 4 GiB" far
t_run "memory-mapped file" mapped
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $D
umnt_test
t_done
