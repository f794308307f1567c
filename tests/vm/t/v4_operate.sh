#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# ringnfsctl beside Linux's client: each command shows what the client does, or changes what it can do.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "ringnfsctl"
	t_skip "of ringnfsd, and of what NFSv4's clients hold"
	t_done
fi
vm_up
server_anew
clients_up
S=/export/$FS/operate one=/mnt/one/operate two=/mnt/two/operate
MINOR=4.1 # as which 4.2 is listed, too
[ "$VERS" != 4.0 ] || MINOR=4.0
rm -rf "$S"
mkdir -m 777 "$S"

ctl() { "$BUILDDIR/ringnfsctl" "$@"; }
# get EXPRESSION ARGUMENT...: of the answer for programs, which the expression has as `a`.
get() {
	local expression=$1
	shift
	ctl --json "$@" | python3 -c "import json, sys; a = json.load(sys.stdin); print($expression)"
}
# Client two, whose connection comes from its own address; all others here are client one.
id_of_two() { get "''.join(c['id'] for c in a['clients'] if c.get('address') == '$(address_of_two)' and c['state'] == 'active')" clients; }
id_of_one() { get "''.join(c['id'] for c in a['clients'] if c.get('address') != '$(address_of_two)' and c['state'] == 'active')" clients; }
address_of_two() { if [ "$PEERS" = 2 ]; then echo 10.9.12.2; else echo $TWO_ADDR; fi; }
# has NUMBER COMMAND...: lines of its table, without the titles.
has() {
	local n=$1 out
	shift
	out=$(ctl "$@")
	same "rows of $*" "$n" "$(tail -n +2 <<<"$out" | grep -c .)"
}

listed() {
	local first second
	first=$(id_of_one) second=$(id_of_two)
	both f
	file one f lock posix w 100 50
	has 1 opens --client "$first"
	same "its open" "$S/f both none $first" "$(get "' '.join(a['opens'][0][k] for k in ('path', 'access', 'deny', 'client'))" opens --client "$first")"
	has 2 opens --file "$S/f"
	has 1 locks --file "$S/f"
	same "its lock" "write 100 50 $first" "$(get "'{type} {offset} {length}'.format(**a['locks'][0]['ranges'][0]), a['locks'][0]['client']" locks --file "$S/f" |
		tr -d "(),'")"
	ctl locks | grep -q "$S/f  *write *100-149 *$MINOR"
	same "of the other export" 0 "$(get "len(a['opens'])" opens --export "/export/$FS/exp/all")"
	same "the client" "$MINOR 1 1" "$(get "'{version} {opens} {locks}'.format(**a['clients'][0])" clients "$first")"
	same "the name it gave" True "$(get "'Linux NFSv4' in a['clients'][0]['name']" clients "$first")"
	same "the transport" "$PROTO" "$(get "a['clients'][0]['transport']" clients "$first")"
	[ "$PROTO" != rdma ] || same "RDMA" True "$(get "a['clients'][0]['inline_in'] >= 1024 and a['clients'][0]['credits'] > 0 and bool(a['clients'][0]['device'])" clients "$first")"
	same "connections of two" "$second" "$(get "a['connections'][0]['client'] if '$VERS' != '4.0' else '$second'" connections "$(address_of_two)")"
	neither f
	wait_until 20 has 0 opens
	has 0 locks
}
# Callbacks reach Linux, over each transport.
sessions() {
	[ "$VERS" != 4.0 ] || { echo "4.0 has no sessions"; exit 77; }
	local second
	second=$(id_of_two)
	same "two's session" "up True $VERS" "$(get "a['sessions'][0]['back']['state'], a['sessions'][0]['fore']['slots'] >= a['sessions'][0]['fore']['used'] > 0, a['sessions'][0]['version']" \
		sessions "$second" | tr -d "(),'")"
	ctl sessions | grep -q "$VERS .* up .*both"
}
written() { get "sum(x['bytes_written'] for x in a['exports'] if x.get('path') == '/export/$FS')" stats --by export; }
calls() { get "sum(x['calls'] for x in a['operations'] if x['operation'] == '$1' and x['version'] == '$VERS')" stats; }
counted() {
	local bytes opens
	bytes=$(written) opens=$(calls OPEN)
	dd if=/dev/urandom of=$one/data bs=1M count=4 conv=fsync status=none
	same "bytes written" $((4 << 20)) $(($(written) - bytes))
	same "OPEN" 1 $(($(calls OPEN) - opens))
	same "of the client" True "$(get "a['clients'][0]['bytes_written'] >= 4 << 20 and a['clients'][0]['by_operation']['WRITE'] >= 4" clients "$(id_of_one)")"
	ctl stats --by export | grep "/export/$FS " | grep -q MiB
}
# begin_trace OPTION...: what is called from now on, as JSON in /run/trace.
begin_trace() {
	local n
	n=$(grep -c 'POST /v1/trace: 200' /share/ringnfsd.log || true)
	ctl --json trace "$@" >/run/trace 2>&1 &
	tracer=$!
	wait_until 20 eval "[ \$(grep -c 'POST /v1/trace: 200' /share/ringnfsd.log) -gt $n ]" || die "no trace: $(cat /run/trace)"
}
# Of the first call that was traced; the expression has it as `c`.
call() { python3 -c "import json; c = json.loads(open('/run/trace').readline()); print($1)"; }
traced() {
	local id
	id=$(id_of_two)
	begin_trace --client "$id" --operation OPEN --export "/export/$FS" --count 1 --seconds 60
	echo of one >$one/traced.one
	on two sh -c "echo of two >$two/traced.two"
	wait $tracer
	same "the call" "True NFS4_OK $VERS $(address_of_two)" "$(call "'OPEN' in c['operations'], c['status'], c['version'], c['client']" | tr -d "(),'")"
	case $(call "c['path']") in "$S"/traced.two | None) ;; *) die "$(call "c['path']")" ;; esac
	begin_trace --client "$id" --error --count 1 --seconds 60
	on two sh -c "ls $two; ! cat $two/no-such-file"
	wait $tracer
	same "a call that failed" "NOENT True" "$(call "c['status'].replace('NFS4ERR_', ''), c['failed']" | tr -d "(),'")"
	begin_trace --client "$id" --slower-than 30s --seconds 3
	on two touch "$two/traced.quick"
	wait $tracer
	same "calls of half a minute" 0 "$(grep -c '"xid"' /run/trace)"
}
on_screen() {
	(while :; do echo x >$one/screen; sync -f $one; rm $one/screen; done) 2>/dev/null &
	local worker=$! rc=0
	python3 -B - "$SOURCE/tests/net" "$BUILDDIR/ringnfsctl" "v$VERS" <<-'END' || rc=$?
		import sys
		sys.path.insert(0, sys.argv[1])
		from terminal import Terminal
		with Terminal([sys.argv[2], "top", "--interval", "1"]) as t:
		    rows = lambda s: {tuple(line.split()[:2]): line.split() for line in s.split("\n")[6:-1] if line.split()}
		    seen = t.until(lambda s: float((rows(s).get((sys.argv[3], "OPEN"), []) + ["0"] * 3)[2]) > 0 and "NFSv4: 2 clients" in s and "written 0 B/s" not in s)
		    print(t.screen())
		    t.press("q")
		    sys.exit(0 if seen and t.ended() == 0 else 1)
	END
	kill $worker
	wait $worker || true
	return $rc
}

# By what it says before, two loses what it has then.
closed() {
	both c
	file two c lock posix w 0 10
	refused busy one c lock posix w 0 10
	fails_with "add --yes" ctl open close --file "$S/c" --client "$(id_of_two)" </dev/null
	refused busy one c lock posix w 0 10
	same "closed" "closed: 1 opens" "$(ctl open close --file "$S/c" --client "$(id_of_two)" --yes)"
	same "opens that are left" "$(id_of_one)" "$(get "' '.join(o['client'] for o in a['opens'] if o['path'] == '$S/c' and not o['revoked'])" opens)"
	file one c lock posix w 0 10
	on two ls "$two" >/dev/null
	neither c
}
released() {
	both l
	file two l lock posix w 0 10
	refused busy one l lock posix w 0 10
	same "released" "released: 1 locks" "$(ctl lock release --file "$S/l" --yes)"
	file one l lock posix w 0 10
	on two ls "$two" >/dev/null
	neither l
}
recalled() {
	echo given >"$S/d"
	chmod 666 "$S/d"
	file two d start "$two/d" r
	wait_until 20 sh -c "cat $two/d >/dev/null 2>&1; $BUILDDIR/ringnfsctl delegations | grep -q operate/d" || wait_until 60 on two sh -c "cat $two/d" ||
		die "no file"
	[ "$(get "len(a['delegations'])" delegations --file "$S/d")" != 0 ] || { file two d stop; echo "the client gets none"; exit 77; }
	same "whose" "$(id_of_two)" "$(get "a['delegations'][0]['client']" delegations --file "$S/d")"
	ctl delegation recall --file "$S/d" --yes
	wait_until 30 has 0 delegations --file "$S/d"
	same "the file is open still" given "$(file two d read 0 5)"
	file two d stop
}
# Others have at once what it held; it comes back as a new client.
evicted() {
	local old
	old=$(id_of_two)
	both e
	file two e lock posix w 0 10
	fails_with "add --yes" ctl client evict "$old" </dev/null
	refused busy one e lock posix w 0 10
	same "evicted" "evicted: client $old" "$(ctl client evict "$old" --yes)"
	file one e lock posix w 0 10
	on two ls "$two" >/dev/null
	wait_until 60 eval '[ -n "$(id_of_two)" ]'
	[ "$(id_of_two)" != "$old" ] || die "the same client"
	fails_with "" ctl clients "$old"
	neither e
	grep -q "user 0: client $old is evicted" /share/ringnfsd.log
}
# Two cannot come back, and one does not wait for it.
graced() {
	both g
	file two g lock posix w 0 10
	net_cut two
	server_crash
	server_again
	same "grace" True "$(get "a['active']" grace status)"
	wait_until 30 eval "ctl grace status | grep -q 'Linux NFSv4.*client-two'" || die "$(ctl grace status)"
	same "for two" True "$(get "any(not c['back'] and 'two' in c['name'] for c in a['clients'])" grace status)"
	fails_with "add --yes" ctl grace end </dev/null
	ctl grace end --yes
	same "over" False "$(get "a['active']" grace status)"
	file one g lock posix w 0 10
	net_heal two
	on two ls "$two" >/dev/null
	neither g
}
# away DIRECTORY: a file system of its own, of which no other export is a part.
away() { mkdir -p "$1" && mount -t tmpfs -o mode=777 t "$1"; }
# One client is let in for some time, with options of its own, and loses what it holds there.
added() {
	local at=/export/added
	away $at
	! client_mount two "$VERS" $at "" /mnt/more || die "mounted before"
	ctl exports add "$(address_of_two):$at" -o rw,insecure,all_squash,anonuid=4321,fsid=99
	ctl exports list | grep "$at" | grep -q temporary
	ctl exports explain "$(address_of_two)" $at --uid 1000 | grep "uid 1000 .*acts as uid 4321"
	client_mount two "$VERS" $at "" /mnt/more
	on two touch /mnt/more/mine
	same "owner" 4321 "$(stat -c %u $at/mine)"
	! nfs_mount "$VERS" "$PROTO" $at /mnt/other || die "another client has mounted it"
	file two m start /mnt/more/mine rw
	ctl delegation recall --export $at --yes >/dev/null || true
	fails_with "1 opens" ctl exports remove "$(address_of_two):$at" </dev/null
	on two cat /mnt/more/mine
	ctl exports remove "$(address_of_two):$at" --yes
	! on two touch /mnt/more/other || die "there can be a new file"
	fails_with "no access" ctl_all exports explain "$(address_of_two)" $at
}
ctl_all() { ctl "$@" 2>&1; }
# The same numbers before a reload, and by it.
foretold() {
	local at=/export/added
	away $at
	echo "$at *(rw,insecure,no_root_squash,fsid=98)" >$STATE/exports.d/more.exports
	ctl exports reload | grep -q "+ $at"
	client_mount two "$VERS" "$at" "" /mnt/more
	on two touch /mnt/more/held
	file two m start /mnt/more/held rw
	file two m lock posix w 0 10
	ctl delegation recall --export $at --yes || true # under one the server would not know of the lock
	wait_until 30 has 1 locks --export $at
	rm $STATE/exports.d/more.exports
	ctl exports check | grep -q "exports are right"
	ctl exports diff | tee /run/diff
	grep -q -- "- $at" /run/diff
	grep -q "would revoke: 1 opens, 1 locks" /run/diff
	grep -q "$(id_of_two)" /run/diff
	same "it was a question" 1 "$(get "len(a['opens'])" opens --export "$at")"
	file two m write 0 still
	echo "$at *(nonsense)" >$STATE/exports.d/more.exports
	fails_with nonsense ctl exports reload
	file two m write 0 works
	rm $STATE/exports.d/more.exports
	ctl exports reload | tee /run/reload
	same "told and done" "$(sed -n 's/^would revoke: //p' /run/diff)" "$(sed -n 's/^revoked: //p' /run/reload)"
	! on two touch /mnt/more/another || die "there can be a new file"
}
logged() {
	local n
	ctl log debug nfs4
	ctl log | grep -q "nfs4 *debug"
	n=$(wc -c </share/ringnfsd.log)
	on two touch "$two/logged"
	ctl log info nfs4
	[ "$(wc -c </share/ringnfsd.log)" -gt "$n" ] || die "nothing more is logged"
	ctl config show | grep "^tcp.port" | grep -q "$NFSPORT .*$STATE/ringnfs.conf:[0-9]"
	ctl config show | grep "^nfs3.max_io" | grep -q default
	ctl status | grep -q "NFSv4 *[1-9]"
}
bundled() {
	local at=/run/bundle
	rm -rf $at $at.tar
	mkdir $at
	: >"$S/secret-name"
	file two b start "$two/secret-name" rw
	ctl support-bundle --output $at.tar
	tar -xf $at.tar -C $at
	grep -rq "$(id_of_two)" $at
	! grep -rq secret-name $at || die "$(grep -r secret-name $at)"
	ctl support-bundle --with-paths --output $at.2.tar
	tar -xOf $at.2.tar | grep -q secret-name
	# Bytes of a key are no pattern, and the shell keeps no NUL.
	tar -xOf $at.2.tar | python3 -c '
import sys
key, data = open(sys.argv[1], "rb").read(16), sys.stdin.buffer.read()
sys.exit(len(key) < 16 or not data or key in data or key.hex().encode() in data.lower())' $STATE/state/handle.key || die "the key"
	file two b stop
	rm -r $at $at.tar $at.2.tar
}
# clean: after a test that failed, too.
clean() {
	net_heal two 2>/dev/null
	on one sh -c 'pidof vmfile | xargs -r kill -9'
	on two sh -c 'pidof vmfile | xargs -r kill -9; umount -l /mnt/more 2>/dev/null'
	rm -f $STATE/exports.d/more.exports
	ctl exports reload >/run/clean.log 2>&1
	umount -l /export/added 2>/dev/null
	true
}

clients_mount
for part in "clients, opens and locks:listed" "sessions:sessions" "stats:counted" "trace:traced" "top:on_screen" "open close:closed" \
	"lock release:released" "delegation recall:recalled" "client evict:evicted" "grace:graced" "exports add and remove:added" \
	"exports diff and reload:foretold" "log, config and status:logged" "support-bundle:bundled"; do
	t_run "${part%:*}" "${part#*:}"
	clean
done
clients_umount
t_done
