#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# conform.sh against the kernel's server, in a machine where ringnfsd may be serving.
. "$VMDIR/guest/lib.sh"
if [ -e $STATE/kind ] && ! server_stop; then
	t_begin "conformance of the kernel's server"
	t_fail "the server before it does not stop"
	t_done
fi
SERVER=knfsd exec bash "$VMDIR/t/conform.sh"
