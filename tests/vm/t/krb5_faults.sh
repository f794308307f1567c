#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Kerberos when something is wrong: a ticket that ends in the middle, no KDC, new keys, a keytab without keys; a long copy, locks.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/kerberos.sh"
SETTINGS=$'[gss]\nenabled = yes'
E=/export/$FS
M=/mnt/krb

start() {
	rm -rf $E/krb
	mkdir -p $E/krb
	chmod 777 $E/krb
	krb_up
	krb_login alice
	krb_login bob
	ringnfsd_start "$E *(sec=krb5p:krb5i:krb5:sys,rw,insecure,no_subtree_check,fsid=91)" "$SETTINGS"
}
m() { NFS_HOST=$KRB_HOST nfs_mount "$VERS" "$PROTO" "$E" $M "sec=$1"; }

# connects: how often the client has connected for the mount.
connects() { mount_stats $M | awk '$1 == "xprt:" { print $5; exit }'; }

# No connection is lost, and nothing is sent twice.
long_copy() {
	local before
	m krb5p
	dd if=/dev/urandom of=/run/krb.64 bs=1M count=64 status=none
	chmod 644 /run/krb.64
	krb_as alice cp /run/krb.64 $M/krb/long
	umount $M
	m krb5p
	before=$(connects)
	same "64 MiB" "$(sum /run/krb.64)" "$(krb_as alice sha256sum $M/krb/long | cut -d' ' -f1)"
	assert_clean_stats $M
	same "connections" "$before" "$(connects)"
	rm /run/krb.64
	umount $M
}

# Synced lines, by an open for each, while one context after the other ends. Linux' client has two ends for a context: the clock's, at which
# it signs no more, and one in ticks, at which it makes the next. If the clock's comes first, as when somebody sets it, a call fails in the
# client with EKEYEXPIRED, and nothing is sent (doc/design/gss.md). Such a line is written again here. The server refuses no WRITE, and
# every line that fsync() has reported to be written is there.
synced() {
	local writer tracer
	krb_login alice 60s
	m krb5p
	"$BUILDDIR/ringnfsctl" trace --operation WRITE --error --seconds 300 >/run/krb.refused &
	tracer=$!
	krb_as alice sh -c "for i in \$(seq 100); do
			until echo \$i | dd of=$M/krb/synced oflag=append conv=notrunc,fsync status=none; do sleep 0.2; [ \$((n += 1)) -lt 100 ] || exit 1; done
			sleep 0.3
		done" 2>/run/krb.failed &
	writer=$!
	while sleep 8 && kill -0 $writer 2>/dev/null; do
		krb_login alice 120s
		date -s "@$((EPOCHSECONDS + 61))"
	done
	wait $writer
	kill $tracer
	t_note "calls that failed in the client: $(wc -l </run/krb.failed)"
	grep "Key has expired" /run/krb.failed
	same "WRITEs that the server refused" "" "$(cat /run/krb.refused)"
	same "lines" 100 "$(tr -d '\0' <$E/krb/synced | sort -un | wc -l)"
	krb_login alice 1h
	umount $M
}

# Without a new one the user gets no further, others do, and he goes on when he has one.
ended() {
	krb_login alice 10s
	m krb5i
	krb_as alice touch $M/krb/ended
	sleep 12
	fails_with "" krb_as alice touch $M/krb/after-the-end
	krb_as bob touch $M/krb/of-bob
	krb_login alice 1h
	wait_until 20 krb_as alice touch $M/krb/after-the-end
	umount $M
}

no_kdc() {
	m krb5p
	krb_as alice touch $M/krb/before
	kdc_stop
	krb_as alice touch $M/krb/without-kdc
	fails_with "" kinit -c FILE:/run/krb.none -k -t /run/kdc/bob.keytab bob
	kdc_start
	krb_as bob touch $M/krb/with-kdc
	umount $M
}

# New keys beside the old ones, read by a reload: contexts that are there go on, and new ones use the new keys.
new_keys() {
	m krb5p
	krb_as alice touch $M/krb/old-key
	krb_admin "ktadd nfs/$KRB_HOST" >/dev/null
	server_reload
	krb_as alice touch $M/krb/still-old
	umount $M
	krb_login bob
	m krb5p
	krb_as bob touch $M/krb/new-key
	umount $M
}

# A keytab that cannot be used is said to be so, and the old keys stay.
bad_keytab() {
	mv /etc/krb5.keytab /run/krb.keytab
	server_reload
	grep -q "keytab cannot be read again" /share/ringnfsd.log
	mv /run/krb.keytab /etc/krb5.keytab
	m krb5
	krb_as alice touch $M/krb/bad-keytab
	umount $M
}

# A lock survives a kill of the server: reclaimed under Kerberos.
locks() {
	local holder
	[ "$VERS" != 3 ] || { echo "NFSv3 here mounts without locks"; exit 77; }
	m krb5p
	krb_as alice sh -c "exec 9>$M/krb/lock && flock -n 9 && echo has >&9 && sleep 25" &
	holder=$!
	wait_until 20 test -e $E/krb/lock
	sleep 1
	server_crash
	server_again
	chmod 666 $E/krb/lock
	fails_with "" krb_as bob flock -n $M/krb/lock true
	wait $holder
	krb_as bob flock -n $M/krb/lock true
	wait_until 20 krb_as alice flock -n $M/krb/lock true
	umount $M
}

net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE $M
t_run "the realm, the tickets and the server" start
t_run "64 MiB by krb5p" long_copy
t_run "lines that are synced while contexts end" synced
t_run "a ticket that ends" ended
t_run "no KDC" no_kdc
t_run "new keys" new_keys
t_run "a keytab without keys" bad_keytab
t_run "a lock, and a kill of the server" locks
t_run "the server is there" server_alive
server_stop
t_done
