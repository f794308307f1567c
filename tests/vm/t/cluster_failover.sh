#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Failovers of a cluster's member while this machine works there by RDMA. Two machines beside it run members on the kernel's CephFS, and keepalived moves
# them. Needs --peers 2 --ceph.
. "$VMDIR/guest/lib.sh"
t_begin "failovers on CephFS"
lacks=
[ "${PEERS:-0}" = 2 ] || lacks="machines of their own for the members"
[ -n "${CEPH:-}" ] || lacks="a CephFS: Ceph's packages"
command -v keepalived >/dev/null || lacks=keepalived
[ -z "$lacks" ] || { t_skip "needs $lacks"; t_done; }
mkdir -p $STATE
{ net_up && lan_up; } || die "no network or RDMA device"
exec python3 -B "$VMDIR/guest/failovers.py"
