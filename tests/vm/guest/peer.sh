#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A machine beside the one that runs the test: does what the test says (peer_run in guest/clients.sh).
. "$VMDIR/guest/lib.sh"
cd / || exit 1
mkdir -p $STATE
peer_net_up || exit 1
exec "$VMPROG/vmcall" serve "$CALLPORT" /share/up
