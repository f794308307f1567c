#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Kerberos with the Linux client and rpc.gssd: two users, each flavour, restart of the server, exports of several flavours.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/kerberos.sh"
SETTINGS=$'[gss]\nenabled = yes'
OPT=insecure,no_subtree_check,no_root_squash
E=/export/$FS
M=/mnt/krb

exports() {
	echo "$E *(sec=krb5:krb5i:krb5p,rw,$OPT,fsid=91)"
	echo "$E/exp/secret *(sec=krb5p,rw,$OPT,fsid=92)"
	echo "$E/exp/both *($OPT,fsid=93,sec=krb5p,rw,sec=krb5:krb5i:sys,ro)"
}

start() {
	rm -rf $E/exp/secret $E/exp/both $E/krb
	mkdir -p $E/exp/secret $E/exp/both $E/krb
	chmod 777 $E/exp/secret $E/exp/both $E/krb
	krb_up
	krb_login alice
	krb_login bob
	if [ "$SERVER" = knfsd ]; then KNFSD_V4=1 server_start "$(exports)"; else ringnfsd_start "$(exports)" "$SETTINGS"; fi
}

# m FLAVOUR [EXPORT]
m() { NFS_HOST=$KRB_HOST nfs_mount "$VERS" "$PROTO" "$E${2:+/$2}" $M "sec=$1"; }

each_flavor() {
	local s
	for s in krb5 krb5i krb5p; do
		m $s
		grep -q " $M .*sec=$s," /proc/mounts || die "$(grep $M /proc/mounts)"
		echo "by $s" | krb_as alice tee $M/krb/$s >/dev/null
		same "owner of $s" 4101 "$(stat -c %u $E/krb/$s)"
		same "content of $s" "by $s" "$(cat $E/krb/$s)"
		krb_as alice dd if=/dev/urandom of=$M/krb/$s.data bs=256k count=16 status=none
		umount $M
		m $s
		same "data by $s" "$(sum $E/krb/$s.data)" "$(krb_as alice sha256sum $M/krb/$s.data | cut -d' ' -f1)"
		assert_clean_stats $M
		umount $M
	done
}

users() {
	m krb5p
	krb_as alice sh -c "umask 077; echo mine >$M/krb/private"
	same "alice" mine "$(krb_as alice cat $M/krb/private)"
	fails_with "Permission denied" krb_as bob cat $M/krb/private
	krb_as bob sh -c "echo bob >$M/krb/bob"
	same "owner" 4102 "$(stat -c %u $E/krb/bob)"
	# Root calls as the machine, which is nobody's.
	fails_with "Permission denied" cat $M/krb/private
	touch $M/krb/of-root
	same "owner of root's" 65534 "$(stat -c %u $E/krb/of-root)"
	# Whoever has no ticket gets nothing.
	fails_with "Permission denied" setpriv --reuid 4109 --regid 4109 --clear-groups ls $M/krb
	umount $M
}

flavors_of_exports() {
	fails_with "" m krb5 exp/secret
	m krb5p exp/secret
	krb_as alice touch $M/a
	umount $M
	m krb5i exp/both
	fails_with "Read-only file system" krb_as alice touch $M/a
	umount $M
	m krb5p exp/both
	krb_as alice touch $M/a
	umount $M
	# Without an option the client takes the first flavour that both have.
	NFS_HOST=$KRB_HOST nfs_mount "$VERS" "$PROTO" "$E/exp/secret" $M ""
	grep -q " $M .*sec=krb5p," /proc/mounts || die "$(grep $M /proc/mounts)"
	umount $M
}

# Contexts are gone with the server; the client makes new ones, and an open file goes on.
restart() {
	local writer
	m krb5p
	touch /run/krb.open
	krb_as alice sh -c "exec 6>$M/krb/open; echo before >&6; while [ -e /run/krb.open ]; do sleep 0.1; done; echo after >&6" &
	writer=$!
	wait_until 20 test -s $M/krb/open -o -e $E/krb/open
	server_crash
	server_again
	rm /run/krb.open
	wait $writer
	same "what was written" "before after" "$(tr '\n' ' ' <$E/krb/open | sed 's/ $//')"
	umount $M
}

names() {
	local i
	m krb5p
	krb_as alice sh -c "cd $M/krb && mkdir d && for i in \$(seq 100); do echo \$i >d/f\$i; done && mv d/f1 d/g1 && ln d/f2 d/l2 && ln -s f3 d/s3 &&
		chmod 600 d/f4 && rm d/f5 && ls d | wc -l" >/run/krb.names
	same "names" 101 "$(cat /run/krb.names)"
	for i in 2 50 100; do same "f$i" $i "$(cat $E/krb/d/f$i)"; done
	krb_as alice rm -r $M/krb/d
	umount $M
}

net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE $M
t_run "the realm, the tickets and the server" start
t_run "each flavour, with data" each_flavor
t_run "two users, root and somebody without a ticket" users
t_run "exports with flavours of their own" flavors_of_exports
t_run "names" names
[ "$VERS" = 3 ] || t_run "the server is killed and starts again" restart
t_run "the server is there" server_alive
server_stop
t_done
