#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Names and links: rename, unlink of open files, links, long names and targets, special files.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/names S=/export/$FS/names
rm -rf $S
mkdir $D

# letters COUNT LETTER
letters() {
	local s
	printf -v s '%*s' "$1" ''
	echo "${s// /$2}"
}

rename_over_open() {
	echo old >$D/a
	echo new >$D/b
	exec 5<$D/a 6<>$D/b
	mv $D/b $D/a
	same "the file that was replaced" old "$(cat <&5)"
	echo more >&6
	same "the new file, through a descriptor from before" more "$(cat $D/a)"
	exec 5<&- 6<&-
	[ ! -e $D/b ]
	same "what is left" a "$(ls -A $S)"
}
# Replaced on the server behind the client's back: the old handle is stale, the name is not.
stale() {
	echo one >$D/stale
	exec 5<$D/stale
	rm $S/stale
	drop_caches
	# A server of NFSv4 may keep what is open, as the kernel's does.
	if [ "$VERS" = 3 ]; then
		fails_with "Stale file handle" cat <&5
	else
		same "a removed file" one "$(cat <&5 || echo one)"
	fi
	exec 5<&-
	sleep 3.1
	[ ! -e $D/stale ]
}
unlink_open() {
	echo data >$D/gone
	exec 5<>$D/gone
	rm $D/gone
	[ ! -e $D/gone ]
	same "an unlinked open file" data "$(cat <&5)"
	exec 5<&-
	wait_until 60 eval "[ -z \"\$(ls -A $S | grep gone)\" ]"
}
renames() {
	mkdir -p $D/d1/d2 $D/e
	echo x >$D/d1/d2/f
	mv $D/d1 $D/e/moved
	same "file in a moved directory" x "$(cat $D/e/moved/d2/f)"
	fails_with "subdirectory of itself" mv $D/e $D/e/moved/
	mkdir $D/empty
	mv -T $D/empty $D/e/moved/d2.new
	fails_with "not empty" rmdir $D/e/moved/d2
	# ENOTEMPTY or EEXIST, as the file system likes.
	fails_with "cannot move" mv -T $D/e/moved/d2.new $D/e/moved/d2
	[ -e $D/e/moved/d2/f ]
	echo y >$D/file
	fails_with "cannot overwrite" mv -T $D/file $D/e
	rm -r $D/e
	[ ! -e $S/e ]
}
hard_links() {
	local i
	echo linked >$D/l0
	for i in 1 2 3 4 5; do ln $D/l0 $D/l$i; done
	same "links" 6 "$(stat -c %h $D/l3)"
	same "links on the server" 6 "$(stat -c %h $S/l3)"
	same "one file" "$(stat -c %i $D/l0)" "$(stat -c %i $D/l5)"
	rm $D/l0
	same "links after removal of one" 5 "$(stat -c %h $D/l5)"
	same "data" linked "$(cat $D/l5)"
	fails_with "exists" ln $D/l1 $D/l2
}
symlinks() {
	local n target
	for n in 1 60 1023 1024 4000 4095; do
		target=$(letters $n t)
		# xfs holds targets of less than 1024 bytes.
		if [ $FS = xfs ] && [ $n -ge 1024 ]; then
			fails_with "File name too long" ln -s "$target" $D/s$n
			continue
		fi
		ln -s "$target" $D/s$n
	done
	drop_caches
	for n in 1 60 1023 1024 4000 4095; do
		if [ $FS = xfs ] && [ $n -ge 1024 ]; then continue; fi
		target=$(letters $n t)
		same "target of $n bytes" "$target" "$(readlink $D/s$n)"
		same "its size" $n "$(stat -c %s $D/s$n)"
	done
	ln -s ../names/l5 $D/follow
	same "a relative link" linked "$(cat $D/follow)"
	# The server must not follow this one: it means the client's file.
	echo client >/run/client-file
	ln -s /run/client-file $D/abs
	same "an absolute link" client "$(cat $D/abs)"
}
long_names() {
	local n255 odd
	n255=$(letters 255 n)
	echo 255 >"$D/$n255"
	mkdir "$D/${n255%n}d"
	drop_caches
	same "name of 255 bytes" 255 "$(cat "$D/$n255")"
	[ -d "$S/${n255%n}d" ]
	fails_with "File name too long" touch "$D/${n255}n"
	fails_with "File name too long" mkdir "$D/${n255}n"
	for odd in $'a\nb' ' ' $'\xff\xfe' '*?[' 'ünï' '...' '-' "\\"; do
		echo "$odd" >"$D/odd$odd"
		drop_caches
		same "odd name" "$odd" "$(cat "$S/odd$odd")"
		[ -e "$D/odd$odd" ]
	done
	same "odd names listed" 8 "$(find $D -maxdepth 1 -name 'odd*' -print0 | tr -dc '\0' | wc -c)"
}
special() {
	local n
	mkfifo $D/fifo
	mknod $D/chr c 1 3
	mknod $D/blk b 7 200
	drop_caches
	same fifo fifo "$(stat -c %F $D/fifo)"
	same "character device" "character special file 1 3" "$(stat -c '%F %t %T' $D/chr)"
	same "block device" "block special file 7 c8" "$(stat -c '%F %t %T' $S/blk)"
	echo discarded >$D/chr
	fails_with "File exists" mkfifo $D/fifo
}
attributes() {
	echo x >$D/attr
	touch -d '2001-02-03 04:05:06.123456789 UTC' $D/attr
	drop_caches
	same "modification time" 981173106.123456789 "$(stat -c %.9Y $S/attr)"
	chmod 4751 $D/attr
	same mode 4751 "$(stat -c %a $S/attr)"
	chown 12:34 $D/attr
	same owner 12:34 "$(stat -c %u:%g $S/attr)"
	# The client of 7.2 shows time_create; that of 6.12 does not.
	case $KERNEL/$VERS in 6.* | */3) ;; *) same "birth" "$(stat -c %.9W $S/attr)" "$(stat -c %.9W $D/attr)" ;; esac
	# The client counts in blocks of its own.
	same "total space in MiB" "$(stat -f -c '%b %S' $S | awk '{ print int($1 * $2 / 2 ^ 20 + .5) }')" \
		"$(stat -f -c '%b %S' $D | awk '{ print int($1 * $2 / 2 ^ 20 + .5) }')"
}
exclusive() {
	(set -C; echo 1 >$D/excl)
	fails_with "cannot overwrite" bash -c "set -C; echo 2 >$D/excl"
	same data 1 "$(cat $S/excl)"
}
errors() {
	fails_with "No such file" cat $D/nothing
	fails_with "Not a directory" ls $D/attr/x
	fails_with "No such file" rmdir $D/nothing
	fails_with "Not a directory" rmdir $D/attr
	mkdir $D/dir
	fails_with "Is a directory" unlink $D/dir
	fails_with "File exists" mkdir $D/dir
}

t_run "rename over open files" rename_over_open
t_run "stale handle" stale
t_run "unlink of an open file" unlink_open
t_run "renames" renames
t_run "hard links" hard_links
t_run "symbolic links" symlinks
t_run "long and odd names" long_names
t_run "special files" special
t_run "attributes" attributes
t_run "exclusive create" exclusive
t_run "errors" errors
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $D
umnt_test
t_done
