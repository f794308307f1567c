#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Ways from a client in a machine of its own to the server: IPv6, several connections, two addresses of one server, mounts that give up,
# 200 exports, and file systems below an export, which Linux mounts by itself and forgets again.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$PEERS" != 2 ] || [ "$SERVER" != ringnfsd ]; then
	t_begin "ways to the server"
	t_skip "needs machines of their own for the clients"
	t_done
fi
vm_up
server_with "[nfs4]
lease_time = 10
grace_time = 10"
clients_up
S=/export/$FS/reach M=/mnt/one/m
opt=rw,insecure,no_root_squash,no_subtree_check
added=$STATE/exports.d/added.exports
SIZE=3000000
# In the full run all exports are mounted, and mounts give up in both ways.
STEP=${FULL:+1} STEP=${STEP:-4}
rm -rf "$S"
mkdir "$S"

mnt() { client_mount one "$VERS" "${2:-$S}" "${1:-}" $M; } # [OPTIONS [EXPORT]]
umnt() { on one umount -R $M; }
# connections FROM: those that the server has with that address of the client.
connections() { ss -Htn state established "sport = :$NFSPORT" | grep -cF "$1" || :; }
# written NAME: by the client, and read by it and by the server.
written() {
	on one vm_prog vmio gen 5 $SIZE "$M/$1"
	vm_prog vmio check 5 $SIZE "$S/$1"
	on one drop_caches
	on one vm_prog vmio check 5 $SIZE "$M/$1"
}
# no_client: Linux's client of the mount before has gone, with its connections.
no_client() { on one sh -c '! grep -q ^v4 /proc/fs/nfsfs/servers'; }

ipv6() {
	ip addr replace fd09:11::1/64 dev peer1 nodad
	on one ip addr replace fd09:11::2/64 dev nfs0 nodad
	on one eval "NFS_HOST=fd09:11::1 nfs_mount $VERS tcp6 $S $M"
	same "connections by IPv6" 1 "$(connections fd09:11::2)"
	written six
	if [ "$VERS" != 3 ]; then
		: >"$S/lock"
		file one six start $M/lock rw
		file one six lock posix w 0 10
		file one six stop
	fi
	umnt
	echo "$S fd09:11::/64($opt,fsid=72)" >"$added"
	server_reload
	on one eval "NFS_HOST=fd09:11::1 nfs_mount $VERS tcp6 $S $M"
	on one touch $M/by_network
	umnt
	rm "$added"
	server_reload
}
four_connections() {
	wait_until 30 no_client
	mnt nconnect=4
	for c in 1 2 3 4 5 6; do on one vm_prog vmio gen $c $SIZE $M/n$c & done
	wait
	same "connections" 4 "$(connections 10.9.11.2)"
	on one drop_caches
	for c in 1 2 3 4 5 6; do
		on one vm_prog vmio check $c $SIZE $M/n$c
		vm_prog vmio check $c $SIZE "$S/n$c"
	done
	on one assert_clean_stats $M
	umnt
}
# Linux sees by EXCHANGE_ID that both addresses are one server's, and puts the second to the connections of the first.
two_addresses() {
	case $VERS in 3 | 4.0) echo "needs sessions"; exit 77 ;; esac
	wait_until 30 no_client
	mnt max_connect=4
	on one eval "NFS_HOST=10.9.21.1 nfs_mount $VERS tcp $S /mnt/one/m2 max_connect=4"
	for c in 1 2 3 4 5 6; do on one vm_prog vmio gen $c $SIZE $M/t$c & done
	wait
	same "connections by either address" "1 1" "$(connections 10.9.11.2) $(connections 10.9.21.2)"
	on one sh -c "grep -A 20 ' $M with' /proc/self/mountstats" >/run/reach.stats
	[ "$(awk '$1 == "xprt:" && $9 > 5 { n++ } END { print n + 0 }' /run/reach.stats)" -ge 2 ] || die "the other is not used: $(grep xprt: /run/reach.stats)"
	for c in 1 2 3 4 5 6; do vm_prog vmio check $c $SIZE "$S/t$c"; done
	on one umount /mnt/one/m2
	umnt
	wait_until 30 no_client
	mnt trunkdiscovery
	written discovered
	umnt
}
# Reading an open file of a mount that may give up fails while there is no server, and works again afterwards. With a network that is cut
# instead, Linux goes on for minutes by NFSv4: there it does not give up while the connection seems to be there.
soft() {
	local took how error said note=
	for how in soft:"Input/output error" ${FULL:+softerr:"Connection timed out"}; do
		error=${how#*:} how=${how%%:*}
		[ "$VERS" = 3 ] || wait_until 30 no_client
		mnt "$how,timeo=10,retrans=1"
		written $how
		file one $how start $M/$how r
		on one drop_caches
		server_kill9
		took=$SECONDS
		said=$(file one $how read 0 6) || :
		took=$((SECONDS - took))
		server_again
		same "$how" "$error" "$said"
		note="$note $how gave up after $took s"
		wait_until 60 on one touch $M/again || die "$how: does not work again"
		file one $how stop
		on one drop_caches
		on one vm_prog vmio check 5 $SIZE $M/$how
		umnt
	done
	t_note "${note# }"
}
many_exports() {
	local i
	mkdir "$S/many"
	for i in {1..200}; do
		mkdir "$S/many/$i"
		echo "$i" >"$S/many/$i/name"
		echo "$S/many/$i *($opt,fsid=$((1000 + i)))"
	done >"$added"
	server_reload
	client_mount two "$VERS" "$S/many/7"
	same "name" 7 "$(on two cat /mnt/two/name)"
	# shellcheck disable=SC2016 # The client's shell expands them.
	if [ "$VERS" = 3 ]; then
		for ((i = STEP; i <= 200; i += STEP)); do echo "nfs_mount 3 tcp $S/many/$i /mnt/one/many/$i"; done >/share/peer.1/mounts
		on one eval '. /share/mounts'
		on one sh -c 'cd /mnt/one/many && for i in $(seq $0 $0 200); do [ "$(cat $i/name)" = $i ] || exit 1; done' $STEP
		on one umount -a -t nfs
		return
	fi
	mnt "" "$S/many"
	same "names" 200 "$(on one sh -c "ls $M | wc -l")"
	on one sh -c 'cd '$M' && for i in $(seq $0 $0 200); do [ "$(cat $i/name)" = $i ] && echo $i >$i/mine || exit 1; done' $STEP
	same "mounts" $((1 + 200 / STEP)) "$(on one sh -c "grep -c ' $M' /proc/mounts")"
	same "written" "$STEP 200" "$(cat "$S/many/$STEP/mine") $(cat "$S/many/200/mine")"
	umnt
}
# What one has mounted is no longer served, though it lies in an export that is.
no_more_exports() {
	rm "$added"
	server_reload
	on two drop_caches
	fails_with "Stale file handle" on two ls /mnt/two
	on two umount -f /mnt/two
	client_mount two "$VERS" "$S/many/7"
	same "name, by the export around it" 7 "$(on two cat /mnt/two/name)"
	client_umount two
}
# File systems below an export that has crossmnt.
children() {
	local child
	mkdir -p "$S/top"
	echo "$S/top *($opt,crossmnt,fsid=73)" >"$added"
	for child in a b; do
		mkdir "$S/top/$child"
		truncate -s 20M "/export/$FS/$child.img"
		mkfs.ext4 -q -F "/export/$FS/$child.img"
		mount -o loop "/export/$FS/$child.img" "$S/top/$child"
		echo "in $child" >"$S/top/$child/file"
	done
	server_reload
	on one sysctl -q -w fs.nfs.nfs_mountpoint_timeout=2
	mnt "" "$S/top"
	same "names" "a b" "$(on one sh -c "ls $M | paste -sd ' '")"
	same "data" "in a in b" "$(on one sh -c "cat $M/a/file $M/b/file | paste -sd ' '")"
	same "file systems" 3 "$(on one sh -c "stat -c %d $M $M/a $M/b | sort -u | wc -l")"
	same "mounts" 3 "$(on one sh -c "grep -c ' $M' /proc/mounts")"
	fails_with "cross-device" on one ln $M/a/file $M/b/link
	on one sh -c "mv $M/a/file $M/b/moved"
	same "moved" "in a" "$(cat "$S/top/b/moved")"
	wait_until 30 on one eval "[ \"\$(grep -c ' $M' /proc/mounts)\" = 1 ]" || die "children stay mounted: $(on one grep " $M" /proc/mounts)"
	same "data of a child that comes back" "in b" "$(on one cat $M/b/file)"
	umnt
	on one sysctl -q -w fs.nfs.nfs_mountpoint_timeout=500
	rm "$added"
	server_reload
}

t_run "IPv6" ipv6
t_run "four connections" four_connections
t_run "two addresses of one server" two_addresses
t_run "mounts that give up" soft
t_run "200 exports" many_exports
t_run "200 exports less" no_more_exports
t_run "file systems below an export" children
on one sh -c "umount -f /mnt/one/m2; umount -R $M" 2>/dev/null
rm -f "$added"
server_reload
for child in a b; do umount "$S/top/$child" 2>/dev/null; done
rm -rf "$S" "/export/$FS"/[ab].img
t_run "the server is there" server_alive
server_with ""
t_done
