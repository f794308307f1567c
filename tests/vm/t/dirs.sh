#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A directory of 10,000 entries, listed at rest and while entries come and go.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
N=10000
D=/mnt/t/dirs S=/export/$FS/dirs
rm -rf $S
mkdir $D $D/big
vm_prog dirstorm fill $N $S/big

at_rest() {
	same "entries" $N "$(ls -f $D/big | grep -c '^stable')"
	drop_caches
	# Attributes that came with the listing must not be too old when they are looked at.
	nfs_mount "$VERS" "$PROTO" "/export/$FS" /mnt/t2 actimeo=300
	same "entries with attributes" $N "$(find /mnt/t2/dirs/big -type f -size 0 | wc -l)"
	assert_clean_stats /mnt/t2
	umount /mnt/t2
	same "different entries" $N "$(ls $D/big | sort -u | wc -l)"
}
changing() { vm_prog dirstorm list $N 4 $D/big $S/big; }
small_directories() {
	local n
	for n in 0 1 3; do
		mkdir $D/s$n
		[ $n = 0 ] || touch $(seq -f "$D/s$n/%g" $n)
		drop_caches
		same "entries of $n" $((n + 2)) "$(ls -a $D/s$n | wc -l)"
		same "links" 2 "$(stat -c %h $S/s$n)"
	done
}
# A listing that goes on after the entry it stopped at was removed.
removal() {
	mkdir $D/rm
	vm_prog dirstorm fill 700 $S/rm
	rm -r $D/rm
	[ ! -e $S/rm ]
}

t_run "10,000 entries at rest" at_rest
t_run "10,000 entries while they change" changing
t_run "small directories" small_directories
t_run "700 entries removed while listed" removal
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $S
umnt_test
t_done
