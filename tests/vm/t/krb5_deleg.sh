#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Delegations under krb5p, with two client machines: v4_deleg.sh, whose root is root on the server by a static mapping of principals.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/kerberos.sh"
. "$VMDIR/guest/clients.sh"
if [ "$PEERS" != 2 ]; then
	t_begin "delegations under Kerberos"
	t_skip "the clients need machines of their own"
	t_done
fi
# shellcheck disable=SC2034 # guest/kerberos.sh reads it.
KRB_ROOT=1
net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
krb_up
krb_idmap # what another script has written is not enough
clients_up
krb_peers_up
export SEC=krb5p NFS_HOST=$KRB_HOST
. "$VMDIR/t/v4_deleg.sh"
