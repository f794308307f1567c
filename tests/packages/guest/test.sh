#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# shellcheck disable=SC1091,SC2016,SC2034,SC2317 # Functions are called by name, and use those of tests/vm/guest/lib.sh.
#
# The packages under systemd as process 1, with the Linux client beside the server. The service was enabled, and the machine
# has booted with it. Packages of a later version are in /share/debs.
export VMDIR=/opt/ringnfs-test RDMA=none VERS=4.2 PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
cd /
. $VMDIR/guest/lib.sh
. $VMDIR/guest/kerberos.sh
ADDR=127.0.0.1
t_tag() { echo systemd; }
# One name for all mounts: Linux's client takes the first one that it mounted by for the name of the server's principal.
NFS_HOST=$KRB_HOST
echo "$ADDR $KRB_HOST" >>/etc/hosts
MOST=40 # exposure that `systemd-analyze security` may find, in tenths

property() { systemctl show --value -p "$1" "${2:-ringnfsd.service}"; }
is_active() { systemctl -q is-active ringnfsd.service; }
# A process that is not the one of that pid has said that it is ready.
is_another() { [ "$(property MainPID)" != "$1" ] && [ "$(property SubState)" = running ]; }
mount_export() { nfs_mount 4.2 tcp "$1" "$2"; }
is_served() { mount_export "$1" /mnt/look && umount /mnt/look; }

fails() { # COMMAND...: `!` would not end a test
	if "$@"; then die "succeeded but should not: $*"; fi
}

# A client that holds a file open and locked, and writes a line after another.
start_writer() {
	touch /run/writing
	(
		exec 7>/mnt/data/written && flock -n 7 || exit 1
		n=0
		while [ -e /run/writing ]; do
			{ echo $n >&7 && sync /mnt/data/written; } || exit 1
			n=$((n + 1))
			echo $n >/run/written.new && mv /run/written.new /run/written
			sleep 0.2
		done
		touch /run/writer.done
	) 2>/run/writer.log &
}
has_written() { [ "$(cat /run/written)" -ge "$1" ]; }
# Calls that began before may have been answered by the old server, the second after them not.
writer_goes_on() { mountpoint -q /mnt/data && wait_until 90 has_written $(($(cat /run/written) + 3)); }
writer_has_done_well() {
	rm /run/writing
	wait_until 60 [ -e /run/writer.done ]
	seq 0 $(($(cat /run/written) - 1)) | cmp - /mnt/data/written
}

booted() {
	wait_until 120 is_active
	same Type notify "$(property Type)"
	same SubState running "$(property SubState)"
	journalctl -u ringnfsd | grep -q ': ready'
}
after_its_mounts() {
	same "the mount that comes late" active "$(property ActiveState srv-data.mount)"
	[ "$(property ActiveEnterTimestampMonotonic srv-data.mount)" -le "$(property ExecMainStartTimestampMonotonic)" ]
	same "it needed time" active "$(property ActiveState slow.service)"
}
after_name_services() {
	same "the name service" active "$(property ActiveState names.service)"
	[ "$(property ActiveEnterTimestampMonotonic names.service)" -le "$(property ExecMainStartTimestampMonotonic)" ]
}
broken_mount_stops_nothing() {
	systemctl show -p After ringnfsd | grep -q srv-broken.mount
	[ "$(property ActiveState srv-broken.mount)" != active ]
	is_served /srv/plain
}
wanted_mount() {
	same "a mount unit that nobody else wants" active "$(property ActiveState srv-unit.mount)"
}
client_mounts() {
	mount_export /srv/data /mnt/data
	[ -d /mnt/data/lost+found ] # of the disk, not of the folder below it
	dd if=/dev/urandom of=/mnt/data/random bs=64k count=20 status=none
	drop_caches
	cmp /mnt/data/random /srv/data/random
}
appears_later() {
	same "noauto stays" inactive "$(property ActiveState srv-late.mount)"
	mount_export /srv/late /mnt/late & # waits
	mount /srv/late
	touch /srv/late/here
	wait $!
	[ -e /mnt/late/here ]
	umount /mnt/late
	umount -l /srv/late # the server has it open
}
status_has() { property StatusText | grep -qE "$1"; }
says_status() {
	wait_until 30 status_has '^[1-9][0-9]* clients, [1-9][0-9]* connections; [1-9][0-9]* calls/s, .* MiB/s in, .* MiB/s out$'
	systemctl status ringnfsd | grep -q 'Status: "[1-9][0-9]* clients'
	t_note "$(property StatusText)"
}
reload_succeeds() {
	local old
	old=$(property MainPID)
	mkdir -p /srv/more
	echo '/srv/more *(rw,insecure)' >>/etc/exports
	systemctl reload ringnfsd
	is_served /srv/more
	same MainPID "$old" "$(property MainPID)"
}
reload_is_refused() {
	cp /etc/exports /run/exports
	echo '/srv/more *(nonsense)' >/etc/exports
	fails systemctl reload ringnfsd
	is_active
	is_served /srv/data
	is_served /srv/more
	writer_goes_on
	journalctl -u ringnfsd | grep -q 'nonsense'
	cp /run/exports /etc/exports
	systemctl reload ringnfsd
}
restarts() {
	local old
	old=$(property MainPID)
	systemctl restart ringnfsd
	is_another "$old"
	writer_goes_on
	same "what was unmounted stays so" inactive "$(property ActiveState srv-late.mount)"
}
crashes() { # SIGNAL
	local old restarts
	old=$(property MainPID) restarts=$(property NRestarts)
	kill -"$1" "$old"
	wait_until 60 is_another "$old"
	[ "$(property NRestarts)" -gt "$restarts" ]
	writer_goes_on
}
# Stops one thread until the process ends, by PTRACE_SEIZE and PTRACE_INTERRUPT of x86-64. Nobody hears of the end before
# this process has waited for the thread (__WALL).
stop_thread() {
	perl -e '$t = $ARGV[0] + 0; syscall(101, 0x4206, $t, 0, 0) == 0 && syscall(101, 0x4207, $t, 0, 0) == 0 or die "ptrace: $!";
		1 while waitpid($t, 0x40000000) > 0;' "$1"
}
event_thread() { grep -l '^event-0$' /proc/"$(property MainPID)"/task/*/comm | cut -d/ -f5; }
watchdog_restarts() {
	local old tid stopper
	mkdir -p /run/systemd/system/ringnfsd.service.d
	printf '[Service]\nWatchdogSec=10\nTimeoutAbortSec=5\n' >/run/systemd/system/ringnfsd.service.d/test.conf
	systemctl daemon-reload
	systemctl restart ringnfsd
	writer_goes_on
	old=$(property MainPID) tid=$(event_thread)
	trap 'rm -f /run/systemd/system/ringnfsd.service.d/test.conf; systemctl daemon-reload' EXIT
	same "watchdog" 10s "$(property WatchdogUSec)"
	stop_thread "$tid" &
	stopper=$!
	wait_until 90 is_another "$old"
	kill $stopper 2>/dev/null || :
	journalctl -u ringnfsd | grep -q 'Watchdog timeout'
	journalctl -u ringnfsd | grep -q 'event thread 0 has not turned'
	writer_goes_on
}
wrong_settings_stay_down() {
	local restarts
	cp /etc/ringnfs.conf /run/ringnfs.conf
	echo 'threads = lots' >>/etc/ringnfs.conf
	restarts=$(property NRestarts)
	fails systemctl restart ringnfsd
	same SubState failed "$(property SubState)"
	same ExecMainStatus 78 "$(property ExecMainStatus)"
	cp /run/ringnfs.conf /etc/ringnfs.conf
	systemctl start ringnfsd
	writer_goes_on
}
# Connects all the time; the first refusal is written down.
connect_on() {
	while [ -e /run/connecting ]; do
		(exec 3<>/dev/tcp/127.0.0.1/2049) 2>>/run/refused || break
		sleep 0.05
	done
}
socket_keeps_the_port() {
	local old connector
	systemctl stop ringnfsd
	systemctl reset-failed ringnfsd # the tests start it more often than systemd allows in ten seconds
	systemctl start ringnfsd.socket
	tcp_listens 2049
	wait_until 60 is_active # a connection, this one or the client's, has started it
	same "the socket" running "$(property SubState ringnfsd.socket)"
	old=$(property MainPID)
	: >/run/refused
	touch /run/connecting
	connect_on &
	connector=$!
	systemctl restart ringnfsd
	is_another "$old"
	kill -KILL "$(property MainPID)"
	wait_until 60 is_another "$(property MainPID)"
	rm /run/connecting
	wait $connector
	same "refused" "" "$(cat /run/refused)"
	writer_goes_on
	systemctl stop ringnfsd.socket ringnfsd
	systemctl reset-failed ringnfsd
	systemctl start ringnfsd
}
exposure_is_low() {
	systemd-analyze security --no-pager --threshold=$MOST ringnfsd.service >/run/security || { cat /run/security; return 1; }
	t_note "$(tail -n 1 /run/security | grep -o 'exposure.*: [0-9.]*')"
}
status_field() { sed -n "s/^$1:[[:space:]]*//p" "/proc/$(property MainPID)/status"; }
# A process in the cgroup of the service may do with devices what the service may.
in_its_cgroup() {
	local group
	group=/sys/fs/cgroup$(property ControlGroup)
	(echo $BASHPID >"$group/cgroup.procs" && "$@")
}
confinement_is_in_force() {
	same Seccomp 2 "$(status_field Seccomp)"
	same NoNewPrivs 1 "$(status_field NoNewPrivs)"
	same "capabilities" 0 "$((0x$(status_field CapBnd) & (1 << 16 | 1 << 19 | 1 << 14)))" # SYS_MODULE, SYS_PTRACE, IPC_LOCK
	in_its_cgroup dd if=/dev/zero of=/dev/null bs=1 count=1
	local disk
	disk=$(findmnt -no SOURCE /srv/data)
	in_its_cgroup dd if="$disk" of=/dev/null bs=512 count=1
	fails in_its_cgroup dd if=/dev/null of="$disk" conv=notrunc
}
registered() { rpcinfo -p 127.0.0.1 | awk -v p="$1" -v v="$2" -v t="$3" '$1 == p && $2 == v && $3 == t { n = 1 } END { exit !n }'; }
# NFSv3 and its companions, over UDP too, as found through rpcbind.
serves_version_3() {
	local row
	for row in "100003 3 tcp" "100005 3 udp" "100005 3 tcp" "100021 4 udp" "100021 4 tcp" "100227 3 tcp" "100011 2 udp"; do
		# shellcheck disable=SC2086 # Three words.
		wait_until 30 registered $row || die "not registered: $row"
	done
	mkdir -p /mnt/v3
	mount -t nfs -o vers=3,proto=tcp,mountproto=udp,nolock 127.0.0.1:/srv/plain /mnt/v3
	[ -d /mnt/v3/. ]
	umount /mnt/v3
}
# The keytab, the replay cache, libnfsidmap and the KDC, as far as the unit lets the server at them.
serves_kerberos() {
	krb_up
	chmod 1777 /srv/krb
	systemctl restart ringnfsd
	krb_login alice
	mkdir -p /mnt/krb
	mount -t nfs -o vers=4.2,proto=tcp,port=2049,sec=krb5p "$KRB_HOST:/srv/krb" /mnt/krb
	krb_as alice touch /mnt/krb/alice
	same "owner on the server" alice "$(stat -c %U /srv/krb/alice)"
	same "owner at the client" alice "$(stat -c %U /mnt/krb/alice)"
	umount /mnt/krb
	writer_goes_on
}
# A key where Debian has private ones.
serves_tls() {
	openssl req -x509 -newkey rsa:2048 -nodes -keyout /etc/ssl/private/ringnfs.key -out /etc/ssl/ringnfs.pem -days 30 -subj /CN=server
	chmod 600 /etc/ssl/private/ringnfs.key
	cp /etc/ringnfs.conf /run/ringnfs.conf
	printf '[tls]\ncertificate = /etc/ssl/ringnfs.pem\nkey = /etc/ssl/private/ringnfs.key\n' >>/etc/ringnfs.conf
	systemctl restart ringnfsd
	ringnfsctl status | grep -q 'CN *= *server'
	cp /run/ringnfs.conf /etc/ringnfs.conf
	systemctl restart ringnfsd
	writer_goes_on
}
is_noted() { journalctl --no-pager | grep 'type=1326' | grep -q "comm=\"$1\""; }
# Until now calls that the unit forbids were noted, see log_calls of systemd.sh, since one that is answered with ENOSYS leaves no
# trace.
forbid_again() {
	same Seccomp 2 "$(status_field Seccomp)"
	# The proof that such a note would be seen.
	systemd-run --wait -p "SystemCallLog=$(systemctl cat ringnfsd | sed -n 's/^SystemCallLog=//p')" swapoff /dev/null || :
	wait_until 30 is_noted swapoff
	rm /etc/systemd/system/ringnfsd.service.d/log.conf
	systemctl daemon-reload
	systemctl restart ringnfsd
	writer_goes_on
}
# But for cachestat(2), which this system's libseccomp does not know: the server does without it.
nothing_was_forbidden() {
	local lines
	lines=$(journalctl --no-pager | grep -E 'type=1326|SIGSYS|status=31/SYS' | grep -vE 'comm="swapoff"| syscall=451 ' || :)
	same "calls that the unit forbids" "" "$lines"
	same "io_uring" "" "$(journalctl -u ringnfsd | grep 'io_uring is not available' || :)"
}
tmp_of() { stat -c %d:%i "/proc/$(property MainPID)/root/tmp"; }
has_its_own_tmp() {
	same PrivateTmp yes "$(property PrivateTmp)"
	[ "$(tmp_of)" != "$(stat -c %d:%i /tmp)" ]
}
exports_tmp() {
	mkdir -p /tmp/shared
	touch /tmp/shared/here
	echo '/tmp/shared *(rw,insecure,fsid=77)' >>/etc/exports
	systemctl daemon-reload
	systemctl restart ringnfsd
	same PrivateTmp no "$(property PrivateTmp)"
	mount_export /tmp/shared /mnt/tmp
	[ -e /mnt/tmp/here ]
	umount /mnt/tmp
	writer_goes_on
}
upgrades() {
	local old
	old=$(property MainPID)
	dpkg -i /share/debs/*.deb
	wait_until 60 is_another "$old"
	dpkg-query -W -f '${Version}\n' ringnfs | grep -q later
	systemctl -q is-enabled ringnfsd
	writer_goes_on
}
purges() {
	umount -a -t nfs4
	dpkg -P ringnfs
	fails is_active
	[ ! -e /var/lib/ringnfs ]
	[ ! -e /lib/systemd/system-generators/ringnfs-generator ]
	[ -e /etc/exports ]
}

t_run "the service is up after the boot" booted
t_run "started after a mount that comes late" after_its_mounts
t_run "started after the name services" after_name_services
t_run "a mount that fails stops no other export" broken_mount_stops_nothing
t_run "the mounts of exports are wanted" wanted_mount
t_run "the client mounts, writes and reads" client_mounts
t_run "a file system that appears later is served then" appears_later
start_writer
wait_until 60 has_written 3
t_run "systemctl status has clients and throughput" says_status
t_run "a reload that succeeds" reload_succeeds
t_run "a reload that is refused" reload_is_refused
t_run "a restart with a mounted client" restarts
t_run "a crash by SIGSEGV" crashes SEGV
t_run "a crash by SIGKILL" crashes KILL
t_run "the watchdog ends a server whose event thread stands still" watchdog_restarts
t_run "wrong settings are no reason to restart again and again" wrong_settings_stay_down
t_run "the socket starts the service, and keeps the port meanwhile" socket_keeps_the_port
t_run "NFSv3 through rpcbind" serves_version_3
systemctl reset-failed ringnfsd # restarts are counted
t_run "Kerberos" serves_kerberos
t_run "TLS" serves_tls
systemctl reset-failed ringnfsd
t_run "the filter of system calls is in force" forbid_again
t_run "systemd-analyze security" exposure_is_low
t_run "system calls, capabilities and devices are confined" confinement_is_in_force
t_run "a /tmp of its own" has_its_own_tmp
t_run "the machine's /tmp where an export is below it" exports_tmp
t_run "an upgrade with a mounted client" upgrades
t_run "the client lost nothing" writer_has_done_well
t_run "no system call was forbidden" nothing_was_forbidden
t_run "purge" purges
t_done
