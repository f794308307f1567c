#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Space of files: allocated, given back, and where the holes are. From 4.2 on the server is asked; before,
# the client knows no way to do it, or guesses.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/alloc S=/export/$FS/alloc
rm -rf "$S"
mkdir "$D"
MB=1048576

f() { vm_prog vmfile do f "$@"; }
f_refused() {
	local text=$1 out
	shift
	if out=$(f "$@"); then die "succeeded but should not: $*"; fi
	same "$*" "$text" "$out"
}
blocks() { stat -c %b "$S/f"; }
zeros() { # OFFSET LENGTH: what is there are zeros
	same "bytes at $1 that are not zero" 0 "$(tail -c +$(($1 + 1)) "$D/f" | head -c "$2" | tr -d '\0' | wc -c)"
}

older() {
	f_refused "Operation not supported" alloc plain 0 4096
	f_refused "Operation not supported" alloc punch 0 4096
	same "hole" $((4 * MB)) "$(f seek hole 0)" # all is data to it
	same "data" 100 "$(f seek data 100)"
	f_refused "No such device or address" seek data $((4 * MB))
}
allocate() {
	f alloc plain 0 $((8 * MB))
	same "size" $((8 * MB)) "$(stat -c %s "$S/f")"
	[ "$(blocks)" -ge 16384 ] || die "only $(blocks) blocks are allocated"
	cmp -n $((4 * MB)) /run/alloc.data "$D/f"
	zeros $((4 * MB)) $((4 * MB))
	# An end within a block.
	f alloc plain $((8 * MB)) 5
	same "size" $((8 * MB + 5)) "$(f size)"
	f truncate $((8 * MB))
}
punch() {
	local before
	before=$(blocks)
	f alloc punch $MB $MB
	same "size" $((8 * MB)) "$(f size)"
	[ "$(blocks)" -le $((before - 2048 + 16)) ] || die "$(blocks) blocks of $before are still there"
	zeros $MB $MB
	# At odd offsets the rest of the blocks stays.
	f alloc punch $((2 * MB + 100)) 10000
	zeros $((2 * MB + 100)) 10000
	drop_caches
	cmp -n $MB /run/alloc.data "$D/f"
	cmp -n 100 -i $((2 * MB)) /run/alloc.data "$D/f"
	cmp -n 10000 -i $((2 * MB + 10100)) /run/alloc.data "$D/f"
	f alloc punch $((20 * MB)) 4096 # beyond the end: nothing
	same "size" $((8 * MB)) "$(f size)"
}
holes() {
	same "the first hole" $MB "$(f seek hole 0)"
	same "a hole within it" $((MB + 7)) "$(f seek hole $((MB + 7)))"
	same "data after it" $((2 * MB)) "$(f seek data $((MB + 7)))"
	same "data within data" 77 "$(f seek data 77)"
	f_refused "No such device or address" seek data $((8 * MB))
	f_refused "No such device or address" seek hole $((9 * MB))
	f truncate $((16 * MB))
	same "the last hole" $((15 * MB)) "$(f seek hole $((15 * MB)))"
	f_refused "No such device or address" seek data $((15 * MB))
}
# One COMPOUND of DEALLOCATE and ALLOCATE, by the client of 7.2; that of 6.12 cannot.
zero_range() {
	local before calls
	case $KERNEL in
	6.*)
		f_refused "Operation not supported" alloc zero 0 4096
		return
		;;
	esac
	calls=$(op_count /mnt/t ZERO_RANGE)
	f alloc zero $((3 * MB + 100)) 10000
	drop_caches
	zeros $((3 * MB + 100)) 10000
	cmp -n 100 -i $((3 * MB)) /run/alloc.data "$D/f"
	cmp -n 10000 -i $((3 * MB + 10100)) /run/alloc.data "$D/f"
	before=$(blocks)
	f alloc zero $((20 * MB)) $MB # the file grows
	same "size" $((21 * MB)) "$(f size)"
	same "size on the server" $((21 * MB)) "$(stat -c %s "$S/f")"
	[ "$(blocks)" -ge $((before + 2048)) ] || die "$(blocks) blocks after $before"
	zeros $((20 * MB)) $MB
	same "calls of ZERO_RANGE" 2 $(($(op_count /mnt/t ZERO_RANGE) - calls))
	f truncate $((16 * MB))
}
not_there() {
	f_refused "Operation not supported" alloc collapse 0 4096
}
# A descriptor that may only read changes nothing.
modes() {
	vm_prog vmfile start r "$D/f" r
	fails_with "Bad file descriptor" vm_prog vmfile do r alloc plain 0 4096
	same "hole" $MB "$(vm_prog vmfile do r seek hole 0)"
	vm_prog vmfile stop r
}
# The programs that use it.
tools() {
	fallocate -l 300000 "$D/tool"
	same "size" 300000 "$(stat -c %s "$S/tool")"
	cp --sparse=always "$S/f" "$D/sparse"
	cp --sparse=auto "$D/sparse" "$D/copy"
	cmp "$D/f" "$D/copy"
	[ "$(stat -c %b "$S/copy")" -lt 20480 ] || die "holes take space: $(stat -c %b "$S/copy") blocks"
}

vm_prog vmio gen 5 $((4 * MB)) "$D/f"
cp "$D/f" /run/alloc.data
vm_prog vmfile start f "$D/f" rw
case $VERS in
4.2)
	t_run "allocate" allocate
	t_run "punch holes" punch
	t_run "find holes and data" holes
	t_run "zero a range" zero_range
	t_run "modes" modes
	t_run "what NFS cannot do" not_there
	t_run "programs" tools
	;;
*) t_run "what an older version answers" older ;;
esac
vm_prog vmfile stop f
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf "$D"
umnt_test
t_done
