#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the guest: every test script for both file systems, or the named ones (TESTS, FILESYSTEMS).
# The last line is the sum of theirs.
passed=0 failed=0 skipped=0
for FS in ${FILESYSTEMS:-ext4 xfs}; do
	export FS
	for t in ${TESTS:-stats data names dirs tree parallel access restart}; do
		start=$SECONDS
		timeout "${SCRIPT_TIMEOUT:-300}" bash "$VMDIR/t/$t.sh" >/run/all.out 2>&1
		rc=$?
		last=$(tail -n 1 /run/all.out)
		sed '$d' /run/all.out
		if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
			passed=$((passed + BASH_REMATCH[1]))
			failed=$((failed + BASH_REMATCH[2]))
			skipped=$((skipped + BASH_REMATCH[3]))
		else
			echo "$last"
			echo "FAIL [$RDMA/$FS] $t.sh: ended with status $rc"
			failed=$((failed + 1))
			# What is left of it must not stand in the way of the next.
			umount -f -l /mnt/t /mnt/t2 /mnt/squash 2>/dev/null
		fi
		echo "-- $t on $FS: $((SECONDS - start)) s"
	done
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
