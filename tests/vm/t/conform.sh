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
[ "$SERVER" = knfsd ] || server_with $'[nfs2]\nenabled = yes'
differs=/dev/null # lists cases that may fail
args=(--timeout "${CASE_TIMEOUT:-20}")
if [ "$SERVER" = knfsd ]; then
	differs="$VMDIR/t/conform.knfsd"
	args+=(--mount-port "$MOUNTPORT" --v4-path "/$FS")
	: "${SKIP=$(awk '/^(waits|harms) / { print $2 }' "$differs" | paste -sd,)}"
fi
# siw takes a second for each of 256 connections.
[ "$RDMA" != siw ] || SKIP=${SKIP:+$SKIP,}inline-every-size

# conform LOG ONLY
conform() {
	local more=()
	[ -z "$2" ] || more+=(--only "$2")
	[ -z "${SKIP:-}" ] || more+=(--skip "$SKIP")
	"$BUILDDIR/rpcrdma-conform" "${args[@]}" "${more[@]}" "$ADDR:$RDMAPORT" "/export/$FS" >"$1" 2>&1
}
start=$SECONDS
conform /share/conform.log "${ONLY:-}"
rc=$?
# siw now and then leaves a message or a completion lying, whoever the server is, and the kernel's
# server takes its time on a machine that is emulated: what fails there is tried once more, and has
# failed if it fails again.
again=/share/conform.again
: >$again
if [ "$RDMA" = siw ] || [ "$SERVER" = knfsd ]; then
	ids=$(awk 'FILENAME == ARGV[1] { listed[$2] = 1; next } $1 == "FAIL" && !($3 in listed) { print $3 }' \
		"$differs" /share/conform.log | paste -sd,)
	[ -z "$ids" ] || conform $again "$ids"
fi
echo "    status $rc after $((SECONDS - start)) s"
# A failure that is listed becomes a skip; what the tool says of it is printed all the same.
awk -v tag="$(t_tag), $SERVER" '
	FILENAME == ARGV[1] { if ($1 == "fails") listed[$2] = 1; next }
	FILENAME == ARGV[2] { if ($1 == "ok") later[$3] = 1; next }
	/ passed, .* skipped$/ { next }
	$1 == "WARN" && ($3 in listed) { $1 = "FAIL" }
	$1 == "FAIL" && ($3 in listed) { $1 = "skip"; $0 = $0 ": differs, as tools/conform/RESULTS.md says" }
	$1 == "WARN" { $1 = "FAIL" } # of a SHOULD
	$1 == "FAIL" && ($3 in later) { $1 = "ok"; $0 = $0 " (at the second try)" }
	$1 == "ok" || $1 == "FAIL" || $1 == "skip" { n[$1]++; sub(/^[a-zA-Z]+/, "& [" tag "]") }
	{ print }
	END { print n["ok"] + 0, n["FAIL"] + 0, n["skip"] + 0 >"/run/conform.counts" }
' "$differs" $again /share/conform.log
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
[ "$SERVER" = knfsd ] || server_with ""
t_done
