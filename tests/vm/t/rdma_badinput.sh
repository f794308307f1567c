#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Bad input on the RDMA port, and connections opened and left, while a mounted client goes on.
#   FLOOD   connections (default 1100), MESSAGES  random messages (default 2000)
. "$VMDIR/guest/lib.sh"
if [ "$RDMA" = none ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "bad input on the RDMA port"
	t_skip "needs ringnfsd and an RDMA device"
	t_done
fi
ulimit -l unlimited
ulimit -n 20000
vm_up
mnt_test

# The server's queue pairs; the resource tracker names the thread that made them.
qps() { rdma resource show qp | grep -c "type RC .*comm event-"; }
fds() { ls /proc/"$(server_pid)"/fd | wc -l; }
before_qps=$(qps) before_fds=$(fds)
[ "$before_qps" -ge 1 ] || die "cannot see the server's queue pair"

# The bystander: writes, reads back and compares until it is told to stop.
bystander() {
	local n=0
	until [ -e /run/bystander.stop ]; do
		n=$((n + 1))
		vm_prog vmio gen $n 300000 /mnt/t/bystander || exit 1
		drop_caches
		vm_prog vmio check $n 300000 /mnt/t/bystander || exit 1
	done
	echo "$n rounds"
}
bystander >/run/bystander.log 2>&1 &
bystander_pid=$!

timeout 600 "$BUILDDIR/tests/rdma/rr_probe" "$ADDR" "$RDMAPORT" "${FLOOD:-1100}" \
	"${MESSAGES:-2000}" >/run/probe.log 2>&1
probe_rc=$?
grep -v ' passed, ' /run/probe.log >/run/probe.lines
# Its lines are this script's; a probe that died counts as one failure.
while read -r word rest; do
	t_begin "$rest"
	case $word in
	ok) t_ok ;;
	FAIL) t_fail "in rr_probe" ;;
	*) echo "    $word $rest" ;;
	esac
done </run/probe.lines
grep -q ' passed, ' /run/probe.log || { t_begin "probe"; t_fail "ended with status $probe_rc"; }

bystander_ok() {
	touch /run/bystander.stop
	wait_until 60 eval "! kill -0 $bystander_pid" || die "it hangs"
	cat /run/bystander.log
	grep -q rounds /run/bystander.log
}
t_run "another client goes on" bystander_ok
all_released() {
	wait_until 30 eval "[ \"\$(qps)\" -le $before_qps ]" || die "$(qps) queue pairs, $before_qps before"
	# Files that the bystander had open may be cached; connections are many more.
	wait_until 30 eval "[ \"\$(fds)\" -le $((before_fds + 20)) ]" || die "$(fds) descriptors, $before_fds before"
}
t_run "every connection was released" all_released
no_crash() {
	server_alive || die "the server is gone"
	! grep -E 'ERROR: AddressSanitizer|runtime error|LeakSanitizer' /share/ringnfsd.log
}
t_run "the server is alive" no_crash
umnt_test
stopped() { server_stop && no_leak; }
no_leak() { ! grep -E 'Sanitizer|runtime error' /share/ringnfsd.log; }
t_run "the server stops and leaked nothing" stopped
t_done
