#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The servers of BENCH_SERVERS, on one ext4 image of this machine, with the client in user-mode Linux, by turns. Each measurement is a line
# "rate VERSION tcp ROUND SERVER METRIC VALUE CALLS"; higher is better, CALLS is how many the client has sent for it. One that fails is a line
# "fails" with the same words and no value. `client` runs it, and sets BENCH_VERS, BENCH_ROUNDS, BENCH_MIB, BENCH_FILES (also commits of a data
# base), BENCH_IOS (random reads or writes, fsyncs), BENCH_MOUNTS, BENCH_SOURCES (files to compile), BENCH_TREE (folders of the source, all by
# default), BENCH_METRICS, BENCH_BARE and BENCH_OPTIONS (of ringnfsd's export).
# The server "bare" is none: the client's loop runs here, for the metrics of BENCH_BARE, and syncs what it changes, as sqlite does when it is extra
# careful.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
ROUNDS=${BENCH_ROUNDS:-3} MIB=${BENCH_MIB:-1024} FILES=${BENCH_FILES:-500} IOS=${BENCH_IOS:-2000} MOUNTS=${BENCH_MOUNTS:-10} SOURCES=${BENCH_SOURCES:-24}
TOP=/export/ext4
declare -A port=([ringnfsd]=12049 [async]=14049 [ganesha]=13049) mount_port=([ringnfsd]=12049 [async]=14049 [ganesha]=13048)

peer() { peer_run 1 "$@"; }
# options_of SERVER VERSION: words of mount.
options_of() { echo "vers=$2,proto=tcp,port=${port[$1]}$([ "$2" != 3 ] || echo ",mountport=${mount_port[$1]},mountproto=tcp,nolock")"; }
# mount_of SERVER VERSION [OPTIONS]
mount_of() { peer mount -t nfs -o "$(options_of "$1" "$2")${3:+,$3}" "$ADDR:$TOP" "/mnt/$1"; }
# shellcheck disable=SC2016 # awk expands it.
calls() { peer awk '$1 == "rpc" { print $2 }' /proc/net/rpc/nfs; }
# job COMMAND...: at the client, or here. Behind what it says is how many calls the client has sent.
job() {
	local before
	[ "$server" != bare ] || { VMBENCH_SYNC=1 "$@"; return; }
	before=$(calls)
	peer "$@" && echo " $(($(calls) - before))"
}
bench() { job "$VMPROG/vmbench" "$@"; }
# per_second COUNT COMMAND: how often it went in a second, a shell of which runs the command.
per_second() {
	# shellcheck disable=SC2016 # The client's shell expands it.
	job bash -c 'start=$EPOCHREALTIME; eval "$2" >/run/said 2>&1 || { cat /run/said >&2; exit 1; }
		awk -v n="$1" -v a="$start" -v b="$EPOCHREALTIME" "BEGIN { printf \"%.4g\", n / (b - a) }"' per_second "$1" "$2"
}
# forget: the client knows nothing, and has told the server that it has closed all files and returned all delegations.
forget() { peer sh -c 'sync; echo 3 >/proc/sys/vm/drop_caches; sleep 0.3'; }
# chill: the server's cache, and the disk's in this machine, have nothing, either.
chill() { forget && drop_caches; }
# walk DIR COUNT COMMAND: files a second of the server's DIR, whole or with what git has made in it.
walk() {
	local files
	files=$(find "$1" ! -type d | wc -l)
	[ "$files" -ge "$2" ] || return
	forget
	per_second "$files" "$3"
}
# by_eight VERSION COMMAND...: on eight connections. A mount beside this one would keep the client on its one.
by_eight() {
	local status=0
	peer umount "/mnt/$server" && mount_of "$server" "$1" nconnect=8 && forget || return
	"${@:2}" || status=$?
	peer umount "/mnt/$server" && mount_of "$server" "$1" && return $status
	die "$server: no mount after that of eight connections"
}
# make_sources DIR: a program of many files.
make_sources() {
	local i
	mkdir "$1" || return
	for ((i = 0; i < SOURCES; i++)); do
		printf '#include <stdio.h>\n#include <stdlib.h>\n#include "all.h"\nint f%d(int x)\n{\n\tprintf("%%d\\n", x);\n\treturn x + %d;\n}\n' $i $i >"$1/f$i.c"
		echo "int f$i(int x);" >>"$1/all.h"
	done
	printf 'all: %s\n%%.o: %%.c all.h\n\tgcc -O1 -c -o $@ $<\n' "$(printf '%s.o ' "$1"/f*.c | sed 's,[^ ]*/\(f[0-9]*\)\.c,\1,g')" >"$1/Makefile"
}
# measure_one METRIC DIR VERSION: of $server. Behind a dot is how many operations are under way.
measure_one() {
	local dir=$2 here=$TOP/${2##*/} kind=${1%.*} depth=${1#*.}
	case $1 in
	mount)
		per_second "$MOUNTS" "for i in \$(seq $MOUNTS); do
			mount -t nfs -o $(options_of "$server" "$3") $ADDR:$TOP /mnt/more && umount /mnt/more || exit
		done"
		;;
	create | stat) bench "$1" "$FILES" "$dir" ;;
	# Another server's turn has made the client forget all names but the last server's.
	look | read | rename | unlink) forget; bench "$1" "$FILES" "$dir" ;;
	untar) per_second "$tree_files" "mkdir $dir/tree && tar -xf /run/tree.tar -C $dir/tree && sync -f $dir/tree" ;;
	status)
		git -C "$here/tree" init -q && git -C "$here/tree" add -A || return
		forget
		per_second "$tree_files" "git -c safe.directory='*' -C $dir/tree status --short"
		;;
	list) walk "$here/tree" "$tree_files" "ls -lR $dir/tree" ;;
	find) walk "$here/tree" "$tree_files" "find $dir/tree -newer $dir/tree -size +1k" ;;
	grep) walk "$here/tree" "$tree_files" "grep -rc int $dir/tree" ;;
	remove) walk "$here/tree" "$tree_files" "rm -r $dir/tree" ;;
	clone) per_second "$tree_files" "git clone -q /run/tree.git $dir/clone" ;;
	unclone) walk "$here/clone" "$tree_files" "rm -r $dir/clone" ;;
	compile) make_sources "$here/build" && per_second "$SOURCES" "make -s -j2 -C $dir/build" ;;
	sqlite)
		per_second "$FILES" "{ [ -z \"\${VMBENCH_SYNC:-}\" ] || echo 'pragma synchronous = extra;'
			echo 'create table t (a integer primary key, b text);'
			for i in \$(seq $FILES); do echo \"insert into t (b) values ('a row of some length, number \$i');\"; done; } | sqlite3 -bail $dir/db"
		;;
	seqwrite | seqread) forget; bench "$1" "$MIB" "$dir/file" ;;
	eight.*) by_eight "$3" bench "$depth" "$MIB" "$dir/file" ;;
	dirwrite.* | dirread.*) bench "$kind" "$MIB" "$dir/file" "$depth" ;;
	randread.* | randwrite.*) bench "$kind" "$IOS" "$dir/file" "$depth" ;;
	cold.*) chill; bench randread "$IOS" "$dir/file" "$depth" ;;
	fsync | commit) bench "$1" "$IOS" "$dir/$1" ;;
	esac
}
# measure METRIC DIR VERSION ROUND: prints the line of $server.
measure() {
	local said
	if said=$(measure_one "$1" "$2" "$3"); then
		echo "rate $3 tcp $4 $server $1" $said
	else
		echo "fails $3 tcp $4 $server $1"
	fi
}
compare() { # VERSION
	local vers=$1 round order server m dir
	for server in $BENCH_SERVERS; do
		peer mkdir -p "/mnt/$server" /mnt/more
		mount_of "$server" "$vers" || die "$server: no mount of version $vers"
	done
	for ((round = 1; round <= ROUNDS; round++)); do
		order="$BENCH_SERVERS bare"
		[ $((round % 2)) = 1 ] || order=$(echo "$order" | awk '{ for (i = NF; i; i--) print $i }')
		mkdir "$TOP/bare.$vers.$round"
		for server in $BENCH_SERVERS; do peer mkdir "/mnt/$server/$server.$vers.$round"; done
		for m in $BENCH_METRICS; do
			for server in $order; do
				dir=/mnt/$server
				if [ "$server" = bare ]; then
					[[ " $BENCH_BARE " == *" $m "* ]] || continue
					dir=$TOP
				fi
				measure "$m" "$dir/$server.$vers.$round" "$vers" "$round"
			done
		done
		rm -r $TOP/*".$vers.$round" # a server that fails need not be able to
	done
	for server in $BENCH_SERVERS; do peer umount "/mnt/$server"; done
}
# make_tree: an archive, and a repository of it, for the client.
make_tree() {
	local words=(-c user.name=bench -c user.email=bench@localhost)
	# shellcheck disable=SC2086,SC2153 # folders; the runner sets SOURCE
	(cd "$SOURCE" && tar --exclude='_*' -cf /share/peer.1/tree.tar -- ${BENCH_TREE:-*})
	tree_files=$(tar -tf /share/peer.1/tree.tar | grep -vc '/$')
	mkdir /run/tree && tar -xf /share/peer.1/tree.tar -C /run/tree && git -C /run/tree init -q && git -C /run/tree add -A -f &&
		git -C /run/tree "${words[@]}" commit -q -m tree && git clone -q --bare /run/tree /share/peer.1/tree.git &&
		peer cp -r /share/tree.tar /share/tree.git /run/
}

net_up || die "no network"
mkdir -p $STATE /run/servers
export ADDR=10.9.11.1 HOME=/run
peer_boot 1
make_tree || die "no tree to unpack"
# A root as mkfs has left it has times in whole seconds, as if the file system knew no others, until somebody has made a file there.
mkdir $TOP/made
mkfifo /run/servers/end
# shellcheck disable=SC2086 # names
python3 -B "$SOURCE/tests/bench/servers.py" /run/servers $TOP $BENCH_SERVERS </run/servers/end >/run/servers/said 2>&1 &
exec 9>/run/servers/end
wait_until 60 grep -q ready /run/servers/said || die "the servers do not start: $(cat /run/servers/said)"
for vers in ${BENCH_VERS:-3 4.2}; do compare "$vers"; done
