#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Sparse files as programs see them: where holes are (SEEK), copies that keep them, and reading. Whether the client reads
# by READ_PLUS is its own choice: Debian's 6.12 does over TCP, 6.1 does not, and neither does over RDMA.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/sparse S=/export/$FS/sparse
rm -rf "$S"
mkdir "$D"
MB=1048576
SIZE=$((64 * MB))

f() { vm_prog vmfile do f "$@"; }
# make FILE: 64 MiB on the server with a MiB of data at its start, at 20 and at 40 MiB, and 5 odd bytes at 50 MiB.
make() {
	rm -f "$1"
	truncate -s $SIZE "$1"
	local at
	for at in 0 20 40; do
		dd if=/run/sparse.data of="$1" bs=$MB count=1 seek=$at conv=notrunc status=none
	done
	printf odd++ | dd of="$1" bs=1 seek=$((50 * MB + 3)) conv=notrunc status=none
}
blocks() { stat -c %b "$1"; }
sent() { op_count /mnt/t "$1"; }

same_bytes() {
	drop_caches
	cmp "$S/src" "$D/src"
	same "sum" "$(sum "$S/src")" "$(sum "$D/src")"
	# Pieces that begin and end anywhere.
	local at
	for at in 0 $((MB - 5)) $((20 * MB - 100000)) $((50 * MB)) $((SIZE - 70000)); do
		drop_caches
		cmp -n 300000 -i "$at:$at" "$S/src" "$D/src"
	done
}
holes() {
	[ "$VERS" = 4.2 ] || exit 77 # older versions have no SEEK
	vm_prog vmfile start f "$D/src" r
	same "the first hole" $MB "$(f seek hole 0)"
	same "data behind it" $((20 * MB)) "$(f seek data $MB)"
	same "the next hole" $((21 * MB)) "$(f seek hole $((20 * MB)))"
	vm_prog vmfile stop f
}
copies() {
	cp --sparse=auto "$D/src" "$D/auto"
	cp --sparse=always "$D/src" "$D/always"
	cp --sparse=always --reflink=never "$D/src" /run/sparse.copy
	cmp "$S/src" "$D/auto"
	cmp "$S/src" "$D/always"
	cmp "$S/src" /run/sparse.copy
	sync
	[ "$(blocks "$S/always")" -lt 16384 ] || die "the copy has $(blocks "$S/always") blocks"
	[ "$(blocks /run/sparse.copy)" -lt 16384 ] || die "the local copy has $(blocks /run/sparse.copy) blocks"
	rm -f /run/sparse.copy "$D/auto" "$D/always"
}
# Which operation the client reads by; all is to be as the version says, and nothing failed.
operations() {
	local plus
	drop_caches
	cat "$D/src" >/dev/null
	plus=$(sent READ_PLUS)
	t_note "READ_PLUS $plus, READ $(sent READ), READ_PLUS in the kernel: $(grep -c decode_read_plus /proc/kallsyms)"
	case $KERNEL/$PROTO/$VERS in
	6.12/tcp/4.2) [ "$plus" -gt 0 ] || die "the client does not read by READ_PLUS" ;;
	*/rdma/* | */*/3 | */*/4.[01]) same "READ_PLUS" 0 "$plus" ;;
	esac
	same "failed calls of READ_PLUS" "" "$(op_stats /mnt/t | awk '$1 == "READ_PLUS" && $5 != 0')"
}
# The file is changed on the server between reads, and the client sees it when it looks again.
changes() {
	vm_prog vmio gen 3 $((2 * MB)) "$S/part"
	dd if="$S/part" of="$S/src" bs=$MB seek=30 conv=notrunc status=none
	drop_caches
	cmp "$S/src" "$D/src"
	fallocate -p -o $((20 * MB)) -l $MB "$S/src"
	drop_caches
	cmp "$S/src" "$D/src"
	truncate -s $((45 * MB + 1)) "$S/src"
	drop_caches
	cmp "$S/src" "$D/src"
	make "$S/src"
	drop_caches
	cmp "$S/src" "$D/src"
}
# A client writes into holes, and reads what it wrote and what is around it.
writes() {
	cp --sparse=always "$S/src" "$S/mine"
	printf hello | dd of="$D/mine" bs=1 seek=$((10 * MB + 7)) conv=notrunc status=none
	sync "$D/mine"
	drop_caches
	cmp "$S/mine" "$D/mine"
	same "text in a hole" hello "$(tail -c +$((10 * MB + 8)) "$D/mine" | head -c 5)"
	rm "$D/mine"
}

vm_prog vmio gen 9 $MB "$S/data"
mv "$S/data" /run/sparse.data
make "$S/src"
t_run "the same bytes" same_bytes
t_run "holes are found" holes
t_run "copies" copies
t_run "the operation" operations
t_run "changes on the server" changes
t_run "writes" writes
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf "$D" /run/sparse.data
umnt_test
t_done
