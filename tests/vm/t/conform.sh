#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# rpcrdma-conform against the server, over the software RDMA device. For the kernel's server, which
# serves NFSv4 here, the cases of conform.knfsd may fail, or are not run, and no other may fail.
#   ONLY, SKIP  cases to run (default: all), cases not to run (default: those of conform.knfsd)
export KNFSD_V4=1
. "$VMDIR/guest/lib.sh"
if [ "$RDMA" = none ]; then
	t_begin "conformance"
	t_skip "needs an RDMA device"
	t_done
fi
vm_up
differs="$VMDIR/t/conform.knfsd" # only of knfsd
args=(--timeout "${CASE_TIMEOUT:-10}")
if [ "$SERVER" = knfsd ]; then
	args+=(--mount-port "$MOUNTPORT" --v4-path "/$FS")
	: "${SKIP=$(awk '/^(waits|harms) / { print $2 }' "$differs" | paste -sd,)}"
else
	differs=/dev/null
fi
[ -z "${ONLY:-}" ] || args+=(--only "$ONLY")
[ -z "${SKIP:-}" ] || args+=(--skip "$SKIP")

start=$SECONDS
"$BUILDDIR/rpcrdma-conform" "${args[@]}" "$ADDR:$RDMAPORT" "/export/$FS" >/share/conform.log 2>&1
rc=$?
echo "    status $rc after $((SECONDS - start)) s"
# A failure that is listed becomes a skip; what the tool says of it is printed all the same.
awk -v tag="$(t_tag)" '
	FNR == NR { if ($1 == "fails") listed[$2] = 1; next }
	/ passed, .* skipped$/ { next }
	$1 == "FAIL" && ($3 in listed) { $1 = "skip"; $0 = $0 ": differs, as conform/RESULTS.md says" }
	$1 == "ok" || $1 == "FAIL" || $1 == "skip" { n[$1]++; sub(/^[a-zA-Z]+/, "& [" tag "]") }
	{ print }
	END { print n["ok"] + 0, n["FAIL"] + 0, n["skip"] + 0 >"/run/conform.counts" }
' "$differs" /share/conform.log
read -r t_passed t_failed t_skipped </run/conform.counts
if ! tail -n 1 /share/conform.log | grep -q ' passed, '; then
	t_begin "the tool's run"
	t_fail "it ended with status $rc: $(tail -n 1 /share/conform.log)"
fi
no_crash() {
	server_alive || die "the server is gone"
	! grep -E 'ERROR: AddressSanitizer|runtime error|LeakSanitizer' /share/ringnfsd.log
}
t_run "the server is alive" no_crash
t_done
