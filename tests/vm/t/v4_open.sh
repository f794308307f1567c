#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Open files of two clients: removed, replaced, changed while they are open; exclusive creation; modes.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
if [ "$VERS" = 3 ]; then
	t_begin "open files"
	t_skip "NFSv3 opens nothing"
	t_done
fi
vm_up
S=/export/$FS/open
rm -rf "$S"
mkdir "$S"
chmod 1777 "$S"
clients_mount actimeo=1 || die "no mounts"
one=/mnt/one/open two=/mnt/two/open
# The common beginning of a command that another than root runs.
as_1000="setpriv --reuid 1000 --regid 1000 --clear-groups"
as_1001="setpriv --reuid 1001 --regid 1001 --clear-groups"
left() { ls -A "$S"; }
# Attributes that a client caches are at most a second old.
caches() {
	sleep 1.1
	drop_caches
	[ "$PEERS" = 0 ] || { on one drop_caches; on two drop_caches; }
}

# Removed by the client that has it open: it keeps a name for that (".nfs..."), until it is closed.
unlink_own() {
	echo data >"$S/own"
	file one f start $one/own rw
	on one rm $one/own
	[ ! -e "$S/own" ]
	same "data" data "$(file one f read 0 10)"
	file one f write 0 more
	file one f sync
	same "data" more "$(file one f read 0 4)"
	file one f stop
	wait_until 60 eval '[ -z "$(left)" ]' || die "left: $(left)"
}
# Removed by the other client, which knows nothing of it.
unlink_other() {
	echo data >"$S/other"
	file one f start $one/other rw
	on two rm $two/other
	[ ! -e "$S/other" ]
	caches
	same "data" data "$(file one f read 0 4)"
	file one f write 4 -more
	file one f sync
	caches
	same "data" data-more "$(file one f read 0 20)"
	same "links" 0 "$(file one f links)"
	file one f truncate 2
	caches
	same "size" 2 "$(file one f size)"
	file one f stop
	same "left" "" "$(left)"
}
# Replaced by a rename of the other client.
rename_over() {
	echo old >"$S/a"
	echo new >"$S/b"
	file one f start $one/a rw
	on two mv $two/b $two/a
	caches
	same "the old file" old "$(file one f read 0 3)"
	file one f write 0 odd
	file one f sync
	caches
	same "the old file" odd "$(file one f read 0 3)"
	same "the new file" new "$(cat "$S/a")"
	file one f stop
	same "left" a "$(left)"
	rm "$S/a"
}
# Renamed by the other client: open files stay what they are.
renamed() {
	echo here >"$S/a"
	mkdir "$S/d"
	file one f start $one/a rw
	on two mv $two/a $two/d/b
	caches
	file one f write 0 HERE
	file one f sync
	same "data" HERE "$(cat "$S/d/b")"
	file one f stop
	rm -r "$S/d"
}
exclusive() {
	local i pid won=0
	on one sh -c "set -C; echo 1 >$one/excl"
	fails_with "exist" on two sh -c "set -C; echo 2 >$two/excl"
	same "data" 1 "$(cat "$S/excl")"
	same "mode" 644 "$(stat -c %a "$S/excl")"
	# Both at once: each name has one winner.
	for i in 1 2 3 4 5 6 7 8; do
		(file one x$i start $one/race$i rwcx && touch $STATE/won.$i.one) >/dev/null 2>&1 &
		pid=$!
		! file two x$i start $two/race$i rwcx >/dev/null 2>&1 || touch $STATE/won.$i.two
		wait $pid || true
		same "winners" 1 "$(ls $STATE/won.$i.* | wc -l)"
		case $(ls $STATE/won.$i.*) in *one) file one x$i stop ;; *) file two x$i stop; won=$((won + 1)) ;; esac
	done
	echo "two won $won of 8"
	rm -f $STATE/won.* "$S"/*
}
modes() {
	echo text >"$S/m"
	file one m start $one/m r
	refused "Bad file descriptor" one m write 0 x
	file one m stop
	file one m start $one/m w
	refused "Bad file descriptor" one m read 0 1
	file one m write 0 T
	file one m stop
	same "data" Text "$(cat "$S/m")"
	# One client has it open for reading and for writing apart, and gives one back.
	file one r start $one/m r
	file one w start $one/m w
	file one r stop
	file one w write 0 X
	file one w sync
	file one r start $one/m r
	file one w stop
	same "data" Xext "$(file one r read 0 4)"
	file one r stop
	rm "$S/m"
}
truncated() {
	echo "long line" >"$S/t"
	file one t start $one/t rw
	on two truncate -s 4 $two/t
	caches
	same "size" 4 "$(file one t size)"
	same "data" long "$(file one t read 0 20)"
	on two sh -c ": >$two/t" # O_TRUNC
	caches
	same "size" 0 "$(file one t size)"
	file one t truncate 100000
	file one t stop
	caches
	same "size at the other" 100000 "$(on two stat -c %s $two/t)"
	on two sh -c "echo x >$two/t"
	same "size" 2 "$(stat -c %s "$S/t")"
	rm "$S/t"
}
# Access granted at OPEN stays granted.
permissions() {
	on one $as_1000 sh -c "umask 077; echo secret >$one/p"
	fails_with "Permission denied" on two $as_1001 cat $two/p
	fails_with "Permission denied" on two $as_1001 sh -c "echo x >>$two/p"
	on one $as_1000 "$VMPROG/vmfile" start one.p $one/p rw
	on two chmod 0 $two/p
	caches
	file one p write 0 SECRET
	file one p sync
	caches
	same "data" SECRET "$(file one p read 0 6)"
	file one p stop
	fails_with "Permission denied" on one $as_1000 cat $one/p
	rm "$S/p"
	# Made with a mode that forbids its maker to write, by a call that opens it for that.
	on one $as_1000 sh -c "umask 777; echo own >$one/q"
	same "mode" 0 "$(stat -c %a "$S/q")"
	same "data" own "$(cat "$S/q")"
	rm -f "$S/q"
}
# Both add to one file, each under a lock, as NFS asks for.
appended() {
	local n=10 pid c
	cat >$STATE/append.sh <<-EOF
		for i in \$(seq $n); do flock /mnt/\$1/open/log sh -c "echo \$1 \$i >>/mnt/\$1/open/log"; done
	EOF
	: >"$S/log"
	on one sh -c "$(cat $STATE/append.sh)" - one &
	pid=$!
	on two sh -c "$(cat $STATE/append.sh)" - two
	wait $pid
	for c in one two; do same "lines of $c, in order" "$(seq $n)" "$(sed -n "s/^$c //p" "$S/log")"; done
	same "lines" $((2 * n)) "$(wc -l <"$S/log")"
	rm "$S/log"
}
# A name that is a symbolic link, a directory, a fifo, or not there.
kinds() {
	mkdir "$S/dir"
	mkfifo "$S/fifo"
	echo target >"$S/target"
	ln -s target "$S/link"
	fails_with "Is a directory" on one sh -c "echo x >$one/dir"
	same "through a link" target "$(on one cat $one/link)"
	fails_with "No such file" on one cat $one/none
	on one sh -c "(echo x >$one/fifo) & timeout 10 cat $one/fifo"
	fails_with "File name too long" on one sh -c ": >$one/$(printf '%0256d' 0)"
	rm -r "${S:?}"/*
}
# Many at once, closed in another order.
many() {
	local n=60
	on one bash -ec "for i in {1..$n}; do exec {fd}>$one/many\$i; echo \$i >&\$fd; done
		rm $one/many{1..20}; for i in {1..20}; do eval \"exec \$((fd - i * 2 % $n))>&-\"; done"
	wait_until 60 eval "[ \$(left | wc -l) = $((n - 20)) ]" || die "left: $(left | head)"
	same "data" $n "$(cat "$S/many$n")"
	rm "$S"/*
}

t_run "removed by its own client" unlink_own
t_run "removed by another client" unlink_other
t_run "replaced by another client" rename_over
t_run "renamed by another client" renamed
t_run "exclusive creation" exclusive
t_run "open modes" modes
t_run "truncated" truncated
t_run "permissions at open" permissions
t_run "appended by both" appended
t_run "kinds of objects" kinds
t_run "many files" many
clients_umount
t_done
