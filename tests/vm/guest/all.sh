#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the guest: every test script for both file systems, or the named ones (TESTS, FILESYSTEMS; ON_EXT4
# and ON_XFS for one file system). TESTS_ONCE names further scripts, for which one file system is
# enough, run last.
# The last line is the sum of theirs.
passed=0 failed=0 skipped=0

# run_script NAME: t/NAME.sh for the file system FS.
run_script() {
	local start=$SECONDS rc last
	timeout "${SCRIPT_TIMEOUT:-500}" bash "$VMDIR/t/$1.sh" >/run/all.out 2>&1
	rc=$?
	last=$(tail -n 1 /run/all.out)
	sed '$d' /run/all.out
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failed=$((failed + BASH_REMATCH[2]))
		skipped=$((skipped + BASH_REMATCH[3]))
	else
		echo "$last"
		echo "FAIL [$RDMA/$FS] $1.sh: ended with status $rc"
		failed=$((failed + 1))
		# What is left of it must not stand in the way of the next.
		umount -f -l /mnt/t /mnt/t2 /mnt/squash 2>/dev/null
	fi
	echo "-- $1 on $FS: $((SECONDS - start)) s"
}

for FS in ${FILESYSTEMS:-ext4 xfs}; do
	export FS
	all="stats data names dirs tree parallel access restart"
	case $FS in
	ext4) chosen=${ON_EXT4:-$all} ;;
	xfs) chosen=${ON_XFS:-$all} ;;
	esac
	for t in ${TESTS:-$chosen}; do
		run_script "$t"
	done
done
export FS=ext4
for t in ${TESTS_ONCE:-}; do
	run_script "$t"
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
