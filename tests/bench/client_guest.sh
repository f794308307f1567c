#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# This server beside nfs-ganesha, on one ext4 image of this machine, with the client in user-mode Linux, by turns. Each measurement is a line
# "rate VERSION tcp ROUND SERVER METRIC VALUE"; higher is better. One that fails is a line "fails" with the same words and no value. `client`
# runs it, and sets BENCH_VERS, BENCH_ROUNDS, BENCH_MIB, BENCH_FILES, BENCH_IOS (random reads or writes, fsyncs), BENCH_MOUNTS, BENCH_METRICS and
# BENCH_OPTIONS (of ringnfsd's export).
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
ROUNDS=${BENCH_ROUNDS:-3} MIB=${BENCH_MIB:-1024} FILES=${BENCH_FILES:-500} IOS=${BENCH_IOS:-2000} MOUNTS=${BENCH_MOUNTS:-10}
TOP=/export/ext4

peer() { peer_run 1 "$@"; }
# options_of SERVER VERSION: words of mount.
options_of() {
	case $1/$2 in
	ringnfsd/3) echo port=12049,mountport=12049,mountproto=tcp,nolock ;;
	ringnfsd/*) echo port=12049 ;;
	ganesha/3) echo port=13049,mountport=13048,mountproto=tcp,nolock ;;
	ganesha/*) echo port=13049 ;;
	esac
}
# per_second COUNT COMMAND: how often it went in a second at the client, a shell of which runs the command.
per_second() {
	# shellcheck disable=SC2016 # The client's shell expands it.
	peer bash -c 'start=$EPOCHREALTIME; eval "$2" >/run/said 2>&1 || { cat /run/said >&2; exit 1; }
		awk -v n="$1" -v a="$start" -v b="$EPOCHREALTIME" "BEGIN { printf \"%.4g\", n / (b - a) }"' per_second "$1" "$2"
}
forget() { peer sh -c 'sync; echo 3 >/proc/sys/vm/drop_caches'; }
# walk DIR COMMAND: files a second of the tree in the server's DIR, whole or with what git has made in it.
walk() {
	local files
	files=$(find "$1/tree" ! -type d | wc -l)
	[ "$files" -ge "$tree_files" ] || return
	forget
	per_second "$files" "$2"
}
# measure_one METRIC DIR SERVER VERSION
measure_one() {
	local dir=$2 here=$TOP/${2##*/}
	case $1 in
	mount)
		per_second "$MOUNTS" "for i in \$(seq $MOUNTS); do
			mount -t nfs -o vers=$4,proto=tcp,$(options_of "$3" "$4") $ADDR:$TOP /mnt/more && umount /mnt/more || exit
		done"
		;;
	seqwrite | seqread) forget; peer vm_prog vmbench "$1" "$MIB" "$dir/file" ;;
	rand*) peer vm_prog vmbench "$1" "$IOS" "$dir/file" ;;
	fsync) peer vm_prog vmbench fsync "$IOS" "$dir/synced" ;;
	create | stat | unlink) peer vm_prog vmbench "$1" "$FILES" "$dir" ;;
	read) forget; peer vm_prog vmbench read "$FILES" "$dir" ;;
	untar) per_second "$tree_files" "mkdir $dir/tree && tar -xf /run/tree.tar -C $dir/tree && sync -f $dir/tree" ;;
	status)
		git -C "$here/tree" init -q && git -C "$here/tree" add -A || return
		forget
		per_second "$tree_files" "git -c safe.directory='*' -C $dir/tree status --short"
		;;
	list) walk "$here" "ls -lR $dir/tree" ;;
	find) walk "$here" "find $dir/tree -newer $dir/tree -size +1k" ;;
	grep) walk "$here" "grep -rc int $dir/tree" ;;
	remove) walk "$here" "rm -r $dir/tree" ;;
	esac
}
compare() { # VERSION
	local vers=$1 round order server m rate
	for server in $servers; do
		peer mkdir -p /mnt/$server /mnt/more
		peer mount -t nfs -o "vers=$vers,proto=tcp,$(options_of "$server" "$vers")" "$ADDR:$TOP" /mnt/$server || die "$server: no mount of version $vers"
	done
	for ((round = 1; round <= ROUNDS; round++)); do
		order=$servers
		[ $((round % 2)) = 1 ] || order=$(echo "$servers" | awk '{ for (i = NF; i; i--) print $i }')
		for server in $servers; do peer mkdir "/mnt/$server/$server.$vers.$round"; done
		for m in $BENCH_METRICS; do
			for server in $order; do
				if rate=$(measure_one "$m" "/mnt/$server/$server.$vers.$round" "$server" "$vers"); then
					echo "rate $vers tcp $round $server $m $rate"
				else
					echo "fails $vers tcp $round $server $m"
				fi
			done
		done
		rm -r $TOP/*".$vers.$round" # a server that fails need not be able to
	done
	for server in $servers; do peer umount /mnt/$server; done
}

net_up || die "no network"
mkdir -p $STATE /run/servers
export ADDR=10.9.11.1 HOME=/run
servers="ringnfsd ganesha"
peer_boot 1
(cd "$SOURCE" && tar --exclude='_*' -cf /share/peer.1/tree.tar -- *)
tree_files=$(tar -tf /share/peer.1/tree.tar | grep -vc '/$')
peer cp /share/tree.tar /run/tree.tar
mkfifo /run/servers/end
python3 -B "$SOURCE/tests/bench/servers.py" /run/servers $TOP </run/servers/end >/run/servers/said 2>&1 &
exec 9>/run/servers/end
wait_until 60 grep -q ready /run/servers/said || die "the servers do not start: $(cat /run/servers/said)"
for vers in ${BENCH_VERS:-3 4.2}; do compare "$vers"; done
