#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rpcrdma-conform against the server, over the software RDMA device. For the kernel's server, which
# serves NFSv4 here, the cases that conform/RESULTS.md lists for it may fail and no other.
#   ONLY  cases to run (default: all)
export KNFSD_V4=1
. "$VMDIR/guest/lib.sh"
if [ "$RDMA" = none ]; then
	t_begin "conformance"
	t_skip "needs an RDMA device"
	t_done
fi
vm_up
args=(--timeout "${CASE_TIMEOUT:-10}")
[ "$SERVER" != knfsd ] || args+=(--mount-port "$MOUNTPORT" --v4-path "/$FS")
[ -z "${ONLY:-}" ] || args+=(--only "$ONLY")

start=$SECONDS
"$BUILDDIR/rpcrdma-conform" "${args[@]}" "$ADDR:$RDMAPORT" "/export/$FS" >/run/conform.log 2>&1
rc=$?
grep -v ' passed, ' /run/conform.log >/run/conform.lines
echo "    status $rc after $((SECONDS - start)) s"
while IFS= read -r line; do
	read -r word name <<<"$line"
	t_begin "$name"
	case $word in
	ok) t_ok ;;
	skip) t_skip "by the tool" ;;
	FAIL) t_fail "see below" ;;
	*) echo "    $line" ;;
	esac
done </run/conform.lines
grep -q ' passed, ' /run/conform.log || { t_begin "the tool's run"; t_fail "it ended with status $rc"; }
no_crash() {
	server_alive || die "the server is gone"
	! grep -E 'ERROR: AddressSanitizer|runtime error|LeakSanitizer' /share/ringnfsd.log
}
t_run "the server is alive" no_crash
t_done
