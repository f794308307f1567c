# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# TLS in the guest: certificates, and the handshake agent of a client with xprtsec=, which Linux has from 6.5 on. Sourced after lib.sh.
TLS_HOST=server.test.ringnfs C=/run/tls

# tls_possible: or the test is skipped.
tls_possible() {
	[ -e "$VMTLSHD/complete" ] || { echo "there is no tlshd: see tests/vm/prepare"; exit 77; }
	modprobe tls || { echo "the kernel has no module tls"; exit 77; }
}
tls_files() {
	mkdir -p $C
	tls_name
	openssl req -x509 -newkey rsa:2048 -nodes -keyout $C/ca.key -out $C/ca.pem -days 2 -subj /CN=authority 2>/dev/null
	certificate server serverAuth
	certificate client clientAuth
}
tls_name() { grep -q $TLS_HOST /etc/hosts || echo "$ADDR $TLS_HOST" >>/etc/hosts; }
# tls_peer_up: the same on a client machine; the server's has put the files into the shared folder.
tls_peer_up() {
	tls_possible && tls_name && mkdir -p $C && cp /share/tls/* $C/ && agent_start ""
}

certificate() { # NAME USAGE
	openssl req -newkey rsa:2048 -nodes -keyout $C/$1.key -out $C/$1.csr -subj "/CN=$TLS_HOST" 2>/dev/null
	printf 'subjectAltName=DNS:%s\nextendedKeyUsage=%s\n' $TLS_HOST "$2" >$C/$1.ext
	openssl x509 -req -in $C/$1.csr -CA $C/ca.pem -CAkey $C/ca.key -CAcreateserial -days 2 -extfile $C/$1.ext -out $C/$1.pem 2>/dev/null
	chmod 600 $C/$1.key
}

# The agent's own library path is that of another release.
agent_start() { # SECTION-LINES
	printf '[debug]\nloglevel=1\n[authenticate.client]\nx509.truststore=%s/ca.pem\n%s\n' $C "$1" >$C/tlshd.conf
	local lib=$VMTLSHD/usr/lib/x86_64-linux-gnu
	agent_stop
	setsid "$lib/ld-linux-x86-64.so.2" --library-path "$lib" "$VMTLSHD/usr/sbin/tlshd" -s -c $C/tlshd.conf >>$C/tlshd.log 2>&1 </dev/null &
	echo $! >$C/pid
	disown
	sleep 1
}

agent_stop() {
	[ ! -e $C/pid ] || kill "$(cat $C/pid)"
	rm -f $C/pid
}

# tls_settings KTLS: of the server.
tls_settings() { printf '[tls]\ncertificate = %s/server.pem\nkey = %s/server.key\nca = %s/ca.pem\nktls = %s' $C $C $C "$1"; }
