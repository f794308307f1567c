# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Kerberos in the guest: a realm with its KDC, rpc.gssd, and users with tickets. Sourced after lib.sh.
# The one machine is client, server and KDC, under the name KRB_HOST. Clients in machines of their own (guest/clients.sh) are called
# krb_peer_name N; source this file before clients.sh to have its functions there.
KRB_REALM=TEST.RINGNFS KRB_HOST=server.test.ringnfs
KRB_USERS="alice:4101 bob:4102"
export KRB5_KDC_PROFILE=/run/kdc/kdc.conf

krb_peer_name() { echo "peer$1.test.ringnfs"; }

krb_files() { # NAME-OF-THIS-MACHINE
	hostname "$1"
	grep -q $KRB_HOST /etc/hosts || echo "$ADDR $KRB_HOST" >>/etc/hosts
	cat >/etc/krb5.conf <<-EOF
		[libdefaults]
		 default_realm = $KRB_REALM
		 dns_lookup_realm = false
		 dns_lookup_kdc = false
		 dns_canonicalize_hostname = false
		 rdns = false
		[realms]
		 $KRB_REALM = {
		  kdc = $ADDR
		 }
		[domain_realm]
		 .test.ringnfs = $KRB_REALM
	EOF
	mkdir -p /run/kdc /etc/krb5kdc
	cat >/run/kdc/kdc.conf <<-EOF
		[realms]
		 $KRB_REALM = {
		  database_name = /run/kdc/principal
		  key_stash_file = /run/kdc/stash
		  acl_file = /run/kdc/acl
		  max_life = 1d
		 }
	EOF
	krb_idmap
}
# krb_idmap: the root of this machine and of the clients is root here, if KRB_ROOT is set; otherwise it is nobody.
krb_idmap() {
	local n
	printf '[General]\nDomain = test.ringnfs\nLocal-Realms = %s\n' $KRB_REALM
	[ -n "${KRB_ROOT:-}" ] || return 0
	printf '[Translation]\nMethod = nsswitch\nGSS-Methods = static,nsswitch\n[Static]\n'
	for n in $KRB_HOST "$(krb_peer_name 1)" "$(krb_peer_name 2)"; do echo "nfs/$n@$KRB_REALM = root"; done
} >/etc/idmapd.conf

krb_admin() { kadmin.local -r $KRB_REALM -q "$1"; }

kdc_start() {
	setsid krb5kdc -n -r $KRB_REALM >/run/kdc/log 2>&1 </dev/null &
	echo $! >/run/kdc/pid
	disown
	wait_until 20 tcp_answers "$ADDR" 88 || die "the KDC does not listen: $(cat /run/kdc/log)"
}
kdc_stop() { kill "$(cat /run/kdc/pid)"; }
tcp_answers() { (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null; }

krb_accounts() {
	local user
	for user in $KRB_USERS; do
		grep -q "^${user%:*}:" /etc/passwd || echo "${user%:*}:x:${user#*:}:${user#*:}::/:/bin/sh" >>/etc/passwd
		grep -q "^${user%:*}:" /etc/group || echo "${user%:*}:x:${user#*:}:" >>/etc/group
	done
}
krb_principals() {
	local user
	rm -f /etc/krb5.keytab
	krb_admin "addprinc -randkey nfs/$KRB_HOST" && krb_admin "ktadd nfs/$KRB_HOST"
	krb_accounts
	for user in $KRB_USERS; do
		krb_admin "addprinc -randkey ${user%:*}" && krb_admin "ktadd -k /run/kdc/${user%:*}.keytab ${user%:*}"
	done
}

gssd_start() {
	local m
	for m in auth_rpcgss rpcsec_gss_krb5; do modprobe $m || return 1; done
	mkdir -p /run/rpc_pipefs
	mountpoint -q /run/rpc_pipefs || mount -t rpc_pipefs p /run/rpc_pipefs
	setsid rpc.gssd -f ${GSSD_DEBUG:-} >/run/kdc/gssd.log 2>&1 </dev/null &
	disown
	# The kernel refuses a context while nobody reads the pipe by which it asks for one.
	wait_until 20 eval "readlink /proc/$!/fd/* | grep '/gssd/clnt.*/gssd'"
}

# krb_up: all of it, once in a guest.
krb_up() {
	[ ! -e /run/kdc/up ] || return 0
	krb_files $KRB_HOST
	kdb5_util create -r $KRB_REALM -s -W -P "of no use" >/run/kdc/create.log 2>&1 || die "$(cat /run/kdc/create.log)"
	krb_principals >/run/kdc/admin.log 2>&1 || die "$(tail -n 3 /run/kdc/admin.log)"
	kdc_start
	gssd_start || die "no rpc.gssd"
	touch /run/kdc/up
}

# krb_peers_up: Kerberos on the client machines. Their keys go by the shared folder, as an administrator would carry them.
krb_peers_up() {
	local n
	for n in 1 2; do
		! peer_run $n test -e /run/kdc/up || continue
		mkdir -p /share/peer.$n/krb
		krb_admin "addprinc -randkey nfs/$(krb_peer_name $n)" >/dev/null 2>&1
		rm -f /share/peer.$n/krb/*
		krb_admin "ktadd -k /share/peer.$n/krb/machine nfs/$(krb_peer_name $n)" >/dev/null
		cp /run/kdc/*.keytab /share/peer.$n/krb/
		peer_run $n krb_peer_up "$(krb_peer_name $n)" || die "no Kerberos on machine $n"
	done
}
# krb_peer_up NAME: there. NFSv4.0 has the server call the client, where rpc.svcgssd makes the context for that.
krb_peer_up() {
	mkdir -p /run/kdc
	cp /share/krb/*.keytab /run/kdc/ && cp /share/krb/machine /etc/krb5.keytab || return 1
	krb_files "$1"
	krb_accounts
	modprobe nfsv4
	gssd_start || return 1
	setsid rpc.svcgssd -f -vvv >/run/kdc/svcgssd.log 2>&1 </dev/null &
	touch /run/kdc/up
}
# krb_login USER [LIFETIME]: a ticket where rpc.gssd looks for it. It is never there without being the user's: Linux'
# client would take that for an expired one, and not ask again for five seconds.
krb_login() {
	local uid new=/tmp/.new-ticket
	uid=$(id -u "$1")
	kinit -l "${2:-1h}" -c "FILE:$new" -k -t "/run/kdc/$1.keytab" "$1" && chown "$uid" $new && mv $new "/tmp/krb5cc_$uid"
}
# krb_as USER COMMAND...
krb_as() {
	local user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
}
