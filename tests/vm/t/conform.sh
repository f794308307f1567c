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
[ -z "${SKIP:-}" ] || args+=(--skip "$SKIP")

start=$SECONDS
"$BUILDDIR/rpcrdma-conform" "${args[@]}" "$ADDR:$RDMAPORT" "/export/$FS" >/run/conform.log 2>&1
rc=$?
echo "    status $rc after $((SECONDS - start)) s"
sed -e "s|^\(ok\|FAIL\|skip\) |\1 [$(t_tag)] |" -e '/ passed, .* skipped$/d' /run/conform.log
if [[ $(tail -n 1 /run/conform.log) =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
	t_passed=${BASH_REMATCH[1]} t_failed=${BASH_REMATCH[2]} t_skipped=${BASH_REMATCH[3]}
else
	t_begin "the tool's run"
	t_fail "it ended with status $rc"
fi
no_crash() {
	server_alive || die "the server is gone"
	! grep -E 'ERROR: AddressSanitizer|runtime error|LeakSanitizer' /share/ringnfsd.log
}
t_run "the server is alive" no_crash
t_done
