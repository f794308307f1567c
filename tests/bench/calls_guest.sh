#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# In the virtual machine: counts the calls that Linux's client makes for a job, on the kernel's server and on this one, with
# lines "calls VERSION SERVER JOB CACHE CALL COUNT". CALLS_VERS, CALLS_N and FILEJOB (the program) come from `calls`.
: "${CALLS_VERS:=3 4.2}" "${CALLS_N:=1000}"
[ "$CALLS_VERS" = 3 ] || export KNFSD_V4=1
. "$VMDIR/guest/lib.sh"

# counts DIR: calls so far by name. Those that a timer sends are left out.
counts() { op_stats "$1" | awk '$1 !~ /^(NULL|SEQUENCE|RENEW)$/ { print $1, $2 }' | sort; }
# settled DIR: the same when nothing has been sent for a while: CLOSE goes out behind the application's back.
settled() {
	local before now
	now=$(counts "$1")
	while [ "$now" != "${before:-}" ]; do
		before=$now
		sleep 1
		now=$(counts "$1")
	done
	echo "$now"
}
# job VERS SERVER JOB CACHE: cold: the client keeps no directory or file from the job before; warm: it does.
job() {
	local mnt=/mnt/$2
	[ "$4" = warm ] || drop_caches
	ls -d "$mnt/work" >/dev/null
	settled "$mnt" >$OUT/before
	"$FILEJOB" "$3" "$CALLS_N" "$mnt/work" || die "$3 on $2"
	settled "$mnt" >$OUT/after
	join -a 2 $OUT/before $OUT/after | awk -v w="$1 $2 $3 $4" '{ n = NF == 3 ? $3 - $2 : $2; sum += n; if (n) print "calls", w, $1, n }
		END { print "calls", w, "all", sum + 0 }'
}

OUT=/run/calls
mkdir -p $STATE $OUT
net_up || die "no network"
options=rw,sync,no_root_squash,no_subtree_check,insecure
RN_PORT=12049 RN_RDMA_PORT=22049
KNFSD_DELEGATIONS=0 # neither server delegates
# "nfs_only" is this server, too, with the promise that nobody else changes the export.
mkdir -p /export/ext4/only
knfsd_start "/export/ext4 *($options,fsid=1)"
ringnfsd_start "/export/ext4 *($options,fsid=1)
/export/ext4/only *($options,nfs_only,fsid=2)" "[nfs4]
delegations = no"
for vers in $CALLS_VERS; do
	for server in knfsd ringnfsd nfs_only; do
		kind=$server path=/export/ext4
		[ $server != nfs_only ] || kind=ringnfsd path=/export/ext4/only
		ports_of $kind
		# Attributes must not expire while a slow machine works.
		SERVER=$kind nfs_mount "$vers" tcp $path "/mnt/$server" nosharecache,actimeo=600 ||
			die "$server: no mount of version $vers"
		mkdir "/mnt/$server/work"
		for j in create stat open write chmod rename unlink; do job "$vers" $server $j cold; done
		for j in create stat chmod rename unlink; do job "$vers" $server $j warm; done
		rmdir "/mnt/$server/work"
		umount "/mnt/$server"
	done
done
