#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The cases of rpcrdma-conform about Kerberos, with a KDC in the guest.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/kerberos.sh"
E=/export/$FS
OPT=sec=sys:krb5:krb5i:krb5p,rw,insecure,no_subtree_check,no_root_squash,fsid=91

start() {
	krb_up
	krb_login alice
	if [ "$SERVER" = knfsd ]; then KNFSD_V4=1 server_start "$E *($OPT)"; else ringnfsd_start "$E *($OPT)" $'[gss]\nenabled = yes'; fi
	if [ "$SERVER" = knfsd ]; then
		setsid rpc.svcgssd -f >/run/kdc/svcgssd.log 2>&1 </dev/null &
		disown
	fi
}

cases() {
	local args=() uid
	[ "$SERVER" != knfsd ] || args+=(--mount-port "$MOUNTPORT" --v4-path "/$FS")
	uid=$(id -u alice)
	KRB5CCNAME=FILE:/tmp/krb5cc_$uid "$BUILDDIR/rpcrdma-conform" "${args[@]}" --timeout "${CASE_TIMEOUT:-20}" --gss krb5:krb5i:krb5p \
		--principal nfs@$KRB_HOST --only "${ONLY:-gss,gss-body,gss-size,gss-window}" "$ADDR:$RDMAPORT" "$E" >/share/conform.log 2>&1
}

if [ "$RDMA" = none ]; then
	t_begin "conformance under Kerberos"
	t_skip "needs an RDMA device"
	t_done
fi
net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
t_run "the realm, the ticket and the server" start
cases
awk -v tag="$(t_tag), $SERVER" '
	/ passed, .* skipped$/ { next }
	$1 == "WARN" { $1 = "FAIL" } # of a SHOULD
	$1 == "ok" || $1 == "FAIL" || $1 == "skip" { n[$1]++; sub(/^[a-zA-Z]+/, "& [" tag "]") }
	{ print }
	END { print n["ok"] + 0, n["FAIL"] + 0, n["skip"] + 0 >"/run/conform.counts" }
' /share/conform.log
read -r passed failed skipped </run/conform.counts
t_passed=$((t_passed + passed)) t_failed=$((t_failed + failed)) t_skipped=$((t_skipped + skipped))
if ! tail -n 1 /share/conform.log | grep -q ' passed, '; then
	t_begin "the tool's run"
	t_fail "it ended: $(tail -n 1 /share/conform.log)"
fi
t_run "the server is there" server_alive
server_stop
t_done
