#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A machine beside the one that runs the test: does what the test says. The test's machine puts a script
# SHARE/peer.N/do.K there, which is /share/do.K here; output goes to out.K, then the exit status to rc.K.
# Several may run at once. Each starts with guest/lib.sh.
. "$VMDIR/guest/lib.sh"
cd / || exit 1
mkdir -p $STATE
peer_net_up || exit 1
touch /share/up
mkfifo /run/never
exec 9<>/run/never # never readable: a sleep without a process

run_one() {
	(
		# shellcheck disable=SC1090
		. "/share/job.$1"
	) </dev/null >"/share/out.$1" 2>&1 9<&-
	echo $? >"/share/rc.$1.new"
	mv "/share/rc.$1.new" "/share/rc.$1"
}
k=1
while [ ! -e /share/quit ]; do
	if [ -e /share/do.$k ]; then
		mv /share/do.$k /share/job.$k
		run_one $k &
		k=$((k + 1))
	else
		read -r -t 0.1 -u 9
	fi
done
exit 0
