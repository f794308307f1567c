#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Kerberos with two client machines, each with its own key and users: what one's users may see of the other's, callbacks,
# state that is the machine's, and a clock that is wrong.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/kerberos.sh"
. "$VMDIR/guest/clients.sh"
if [ "$PEERS" != 2 ]; then
	t_begin "two machines with Kerberos"
	t_skip "the clients need machines of their own"
	t_done
fi
export SEC=krb5p NFS_HOST=$KRB_HOST
LEASE=10
E=/export/$FS
S=$E/two
one=/mnt/one two=/mnt/two
CACHED=acregmin=1,acregmax=1,acdirmin=3600,acdirmax=3600
SYS=1 GSS=6 # flavours of credentials
# siw at the server's side leaves the first message of a connection lying now and then, and the client waits for its timeout. So that is
# short there, the grace period longer, and a mount is tried again.
SIW=
[ "$RDMA/$PROTO" != siw/rdma ] || SIW=1 LEASE=30 CACHED=$CACHED,timeo=30
SETTINGS="[gss]
enabled = yes
[nfs4]
lease_time = $LEASE
grace_time = $LEASE"

mount_at() { # CLIENT
	client_mount "$1" "$VERS" "$S" $CACHED || { [ -n "$SIW" ] && client_mount "$1" "$VERS" "$S" $CACHED; }
}

start() {
	rm -rf "$S"
	mkdir -p "$S/sub"
	chmod 777 "$S"
	krb_up
	krb_idmap
	clients_up
	krb_peers_up
	on one krb_login alice
	on one krb_login bob
	on two krb_login alice
	on two krb_login bob
	ringnfsd_start "$S *(rw,sync,sec=krb5p:krb5i:krb5,insecure,no_subtree_check,nfs_only,fsid=91)" "$SETTINGS"
	mount_at one
	mount_at two
}

# as CLIENT USER COMMAND...
as() { on "$1" krb_as "${@:2}"; }
writes() { as "$1" "$2" sh -c "echo '$4' >/mnt/$1/$3"; }
reads() { same "$2 at $1 reads $3" "$4" "$(as "$1" "$2" cat "/mnt/$1/$3")"; }

users() {
	as one alice sh -c "umask 077; echo mine >$one/private"
	reads one alice private mine
	reads two alice private mine
	fails_with "Permission denied" as one bob cat $one/private
	fails_with "Permission denied" as two bob cat $two/private
	writes two bob of-bob bob
	same "owners" "4101 4102" "$(stat -c %u "$S/private" "$S/of-bob" | tr '\n' ' ' | sed 's/ $//')"
	as one bob sh -c "echo again >>$one/of-bob"
	wait_until 20 eval "[ \"\$(as two bob tail -n 1 $two/of-bob)\" = again ]"
	# The machines' own principals are nobody's.
	fails_with "Permission denied" on two cat $two/private
	fails_with "Permission denied" as two 4109 ls $two/sub
}

# The users' keys are the same on both machines: each writes, the other reads.
data() {
	local from to
	for from in one two; do
		to=two
		[ $from = one ] || to=one
		as $from alice dd if=/dev/urandom of=/mnt/$from/data bs=256k count=16 status=none
		same "data from $from" "$(sum "$S/data")" "$(as $to alice sha256sum /mnt/$to/data | cut -d' ' -f1)"
	done
}

ops() { on one op_count $one "$1"; }
# A delegation of alice's machine, which is recalled when bob writes on the other. Linux offers AUTH_SYS for callbacks in a session and
# refuses Kerberos there; a client of 4.0 that registers by Kerberos accepts nothing else.
callbacks() {
	local i n o by=$SYS
	[ "$VERS" != 4.0 ] || by=$GSS
	[ "$PROTO" = rdma ] || calls_start 1
	for i in 1 2 3; do
		echo before >"$S/cb.$i"
		chmod 666 "$S/cb.$i"
		reads one alice cb.$i before
		reads one alice cb.$i before
		sleep 1.1
		o=$(ops OPEN)
		reads one alice cb.$i before
		same "OPENs of a delegated file" 0 "$(($(ops OPEN) - o))"
		n=$(ops DELEGRETURN)
		writes two bob cb.$i after
		[ "$(returned_since one "$n")" -ge 1 ] || die "no DELEGRETURN"
		reads one alice cb.$i after
	done
	[ "$PROTO" != rdma ] || return 0
	calls_stop 1 >/run/krb.calls
	t_note "callbacks by flavour and number: $(tr '\n' ' ' </run/krb.calls)"
	same "flavours of callbacks" $by "$(cut -d' ' -f1 /run/krb.calls | tr '\n' ' ' | sed 's/ $//')"
	[ "$(cut -d' ' -f2 /run/krb.calls)" -ge 3 ] || die "too few callbacks: $(cat /run/krb.calls)"
	[ $by = $SYS ] || on one grep "nfs@$KRB_HOST" /run/kdc/svcgssd.log
}

# clients_are FIELD: lines "PRINCIPAL FIELD" of the clients that the server knows.
clients_are() {
	"$BUILDDIR/ringnfsctl" clients --json | python3 -c 'import json, sys
for c in sorted(json.load(sys.stdin)["clients"], key=lambda c: c.get("principal", "")):
	print(c.get("principal", "-"), c.get(sys.argv[1], "-"))' "$1"
}
both() { printf "nfs/%s@$KRB_REALM $1\n" "$(krb_peer_name 1)" "$(krb_peer_name 2)"; }
machines() {
	local protection=machine
	[ "$VERS" != 4.0 ] || protection=-
	same "principals and their protection" "$(both $protection)" "$(clients_are state_protection)"
}

# with_ticket USER LIFETIME: on machine one, which has no context of the time before.
with_ticket() {
	client_umount one
	on one krb_login "$1" "$2"
	mount_at one
}
hold() { on "$1" krb_as "$2" "$VMPROG/vmfile" start "$1.$3" "/mnt/$1/$4" rw; }

# A principal that is not the machine's may do nothing to the machine's client, though the session's id is known from the network. It
# does not know the verifier, nor has it a connection that is bound to the session.
CLID_INUSE=10017 NOT_SAME=10027 BADSESSION=10052 NOT_BOUND=10055 WRONG_CRED=10082
REFUSED="EXCHANGE_ID $CLID_INUSE
update $NOT_SAME
CREATE_SESSION $CLID_INUSE
CREATE_SESSION $CLID_INUSE
CREATE_SESSION $CLID_INUSE
BIND_CONN_TO_SESSION $BADSESSION
SEQUENCE $NOT_BOUND
DESTROY_SESSION $NOT_BOUND
DESTROY_CLIENTID $WRONG_CRED"
intruder() { # KEYTAB PRINCIPAL SESSION: the client of machine one, as that principal
	kinit -c FILE:/run/krb.intruder -k -t "$1" "$2"
	"$BUILDDIR/ringnfsctl" clients --json | python3 -c 'import json, sys
print(json.dumps(next(c for c in json.load(sys.stdin)["clients"] if c["principal"] == sys.argv[1])))' "nfs/$(krb_peer_name 1)@$KRB_REALM" |
		python3 -B "$VMDIR/guest/intruder.py" try "$NFSPORT" "nfs@$KRB_HOST" FILE:/run/krb.intruder "$3"
}
intruders() {
	local listener session
	with_ticket alice 1h
	echo data >"$S/intruders"
	chmod 666 "$S/intruders"
	# By krb5p only the machine's own calls have integrity alone, such as those that keep the lease.
	python3 -B "$VMDIR/guest/intruder.py" session peer1 >/run/krb.session &
	listener=$!
	hold one alice i intruders
	file one i lock posix w 0 10
	wait $listener
	session=$(cat /run/krb.session)
	same "length of the session's id" 32 ${#session}
	same "a user" "$REFUSED" "$(intruder /run/kdc/alice.keytab alice "$session")"
	same "another machine" "$REFUSED" "$(intruder /share/peer.2/krb/machine "nfs/$(krb_peer_name 2)" "$session")"
	machines
	same "clients" "$(both active)" "$(clients_are state)"
	file one i write 0 after
	file one i sync
	hold two bob i intruders
	refused busy two i lock posix w 0 10
	file one i stop
	file two i lock posix w 0 10 60000
	file two i stop
}

# A user's ticket ends while he has a file open with a lock. The lease goes on, by the machine, and so does the end of the open: the file
# is free at once for others.
ended() {
	local closes
	echo data >"$S/held"
	chmod 666 "$S/held"
	with_ticket alice 15s
	hold one alice h held
	file one h lock posix w 0 10
	hold two bob h held
	refused busy two h lock posix w 0 10
	sleep $((LEASE + 10))
	fails_with "" as one alice touch $one/after-the-end
	same "clients" "$(both active)" "$(clients_are state)"
	refused busy two h lock posix w 0 10
	closes=$(ops LOCKU)
	file one h stop
	file two h lock posix w 0 10 60000
	[ "$(ops LOCKU)" -gt "$closes" ] || die "no LOCKU"
	file two h stop
	wait_until 20 eval "[ \"\$(clients_are opens | cut -d' ' -f2 | tr '\n' ' ')\" = '0 0 ' ]" || die "opens: $(clients_are opens)"
}

# The server is killed while one user's ticket has ended: the machine registers anew, another user's lock is claimed, and the first
# goes on with a new ticket.
restarted() {
	echo data >"$S/kept"
	chmod 666 "$S/kept"
	with_ticket alice 10s
	as one alice touch $one/before-the-end
	hold one bob k kept
	file one k lock posix w 0 10
	hold two alice k kept
	sleep 11
	fails_with "" as one alice touch $one/after-the-end
	server_kill9
	ringnfsd_launch
	file one k write 0 after
	file one k sync
	refused busy two k lock posix w 0 10
	same "data" after "$(head -c 5 "$S/kept")"
	machines
	on one krb_login alice
	wait_until 20 as one alice touch $one/after-the-end
	file one k stop
	file two k lock posix w 0 10 60000
	file two k stop
}

# 10 minutes, with tickets from when it was right. The library would believe the KDC's clock more than its own otherwise.
skewed() {
	local before
	client_umount two
	on two sed -i 's/^\[libdefaults\]/&\n kdc_timesync = 0/' /etc/krb5.conf
	mount_at two
	client_umount two
	before=$(wc -l </share/ringnfsd.log)
	on two date -s "@$((EPOCHSECONDS + 600))"
	fails_with "" mount_at two
	tail -n +$((before + 1)) /share/ringnfsd.log | grep "Clock skew too great.*set the clocks of that host and of this one alike"
	reads one alice private mine
	on two date -s "@$EPOCHSECONDS"
	mount_at two
	reads two alice private mine
}

net_up || die "no network or RDMA device"
[ ! -e $STATE/kind ] || server_stop
mkdir -p $STATE
t_run "the realm, two machines with keys and users, and the server" start
{ on one mountpoint -q $one && on two mountpoint -q $two; } || t_done
t_run "users of two machines" users
t_run "data between two machines" data
if [ "$VERS" != 3 ]; then
	t_run "delegations and callbacks" callbacks
	t_run "state is the machine's" machines
	if [ "$VERS" != 4.0 ]; then
		# Linux asks for the protection by both.
		for SEC in krb5i krb5p; do
			t_run "others who manage the machine's state, $SEC" intruders
			t_run "a ticket that ends before the file is closed, $SEC" ended
		done
	fi
	t_run "a kill of the server after a ticket's end" restarted
fi
t_run "a clock that is wrong" skewed
t_run "the server is there" server_alive
clients_umount
server_stop
t_done
