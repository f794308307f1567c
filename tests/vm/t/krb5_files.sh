#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The tests of files under each flavour of Kerberos (FLAVORS chooses fewer, FILES fewer of the tests). They run as root, who is root on the
# server by a static mapping of the machine's principal.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/kerberos.sh"
net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
krb_up
KRB_ROOT=1 krb_idmap
export SEC NFS_HOST=$KRB_HOST

# run_files SCRIPT: adds its results to those of this one.
run_files() {
	local last
	bash "$VMDIR/t/$1.sh" >/run/krb.out 2>&1
	last=$(tail -n 1 /run/krb.out)
	sed "\$d; s/^\\([a-zA-Z]* \\[\\)/\\1$SEC\\//" /run/krb.out
	if [[ $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		t_passed=$((t_passed + BASH_REMATCH[1])) t_failed=$((t_failed + BASH_REMATCH[2])) t_skipped=$((t_skipped + BASH_REMATCH[3]))
	else
		t_begin "$1 by $SEC"
		t_fail "it ended: $last"
	fi
}

for SEC in ${FLAVORS:-krb5 krb5i krb5p}; do
	files=${FILES:-data names dirs tree parallel restart}
	# With integrity and privacy there are no chunks for data, which stats.sh wants to see.
	[ $SEC != krb5 ] || files="stats $files"
	for t in $files; do run_files $t; done
	server_stop # exports name the flavour
done
# Scripts after this one have root mapped to nobody.
krb_idmap
t_done
