#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Eight processes write and read at once, each its own file and its stripes of a shared one.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/parallel S=/export/$FS/parallel
rm -rf $S
mkdir $D
P=8 BYTES=1048576

parallel() { vm_prog vmio parallel $P $BYTES $D; }
whole() {
	local i
	drop_caches
	vm_prog vmio check 77 $((P * BYTES)) $D/shared
	for i in 0 1 2 3 4 5 6 7; do
		vm_prog vmio check $((i + 1000)) $((BYTES / 2 + i)) $D/own.$i
		vm_prog vmio check $((i + 1000)) $((BYTES / 2 + i)) $S/own.$i
	done
}

t_run "eight processes" parallel
t_run "their files, read anew" whole
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $D
umnt_test
t_done
