#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Proves the harness itself, with the kernel's own server: NFSv3 over PROTO, data compared, and
# the client's statistics read. Run in the guest by `tests/vm/run`; with --host it runs itself
# there in every configuration.
if [ "${1:-}" = --host ]; then
	here=$(cd "$(dirname "$0")" && pwd)
	bad=0
	for c in "6.1 rxe" "6.12 rxe" "6.1 siw" "6.1 none"; do
		echo "== kernel ${c% *}, RDMA ${c#* }"
		"$here/run" --kernel "${c% *}" --rdma "${c#* }" --env SERVER=knfsd "$0" || bad=1
	done
	exit $bad
fi
. "$VMDIR/guest/lib.sh"
vm_up

data() {
	mnt_test
	head -c 3000001 /dev/urandom >/run/data
	cp /run/data /mnt/t/data
	drop_caches
	cmp /run/data /mnt/t/data
	cmp /run/data "/export/$FS/data"
	umnt_test
}
stats() {
	mnt_test
	mkdir -p /mnt/t/d
	cp /run/data /mnt/t/d/1
	drop_caches
	cat /mnt/t/d/1 >/dev/null
	ls -l /mnt/t/d >/dev/null
	[ "$(op_count /mnt/t READ)" -gt 0 ]
	assert_clean_stats /mnt/t
	if [ "$PROTO" = rdma ]; then
		for c in read-chunks write-chunks reply-chunks; do
			[ "$(rdma_counter /mnt/t $c)" -gt 0 ] || die "no $c"
		done
	fi
	umnt_test
}
ipv6() {
	NFS_HOST=$ADDR6 nfs_mount "$VERS" "${PROTO}6" "/export/$FS" /mnt/6
	cmp /run/data /mnt/6/data
	umount /mnt/6
}
# The framework must be able to fail.
framework() {
	trap - ERR
	set +eE
	(t_run bad false >/run/fw; echo $t_failed >>/run/fw)
	same "counted failures" 1 "$(tail -n 1 /run/fw)" || return
	(t_run bad exit 77 >/run/fw; echo $t_skipped >>/run/fw)
	same "counted skips" 1 "$(tail -n 1 /run/fw)"
}

t_run "framework" framework
for FS in ext4 xfs; do
	t_run "data" data
	t_run "statistics" stats
	t_run "ipv6" ipv6
done
t_done
