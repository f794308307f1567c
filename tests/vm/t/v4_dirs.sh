#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# What a client believes of a directory that it has a delegation of (Linux from 6.19 on asks for these) while another client and local
# processes change it: names that are there, names that are not, the listing, the directory's mode. It asks nothing as long as nobody
# changes anything.
. "$VMDIR/guest/lib.sh"
. "$VMDIR/guest/clients.sh"
case $VERS in
3 | 4.0)
	t_begin "directories"
	t_skip "only clients of 4.1 and 4.2 are given delegations of directories"
	t_done
	;;
esac
vm_up
server_anew # no delegations are given during a grace period
S=/export/$FS/dirdeleg
rm -rf "$S"
mkdir "$S"
clients_mount actimeo=1 || die "no mount"
D=/mnt/one/dirdeleg T=/mnt/two/dirdeleg

calls() { on one op_stats /mnt/one | awk '{ n += $2 } END { print n + 0 }'; }
later() { sleep 1.2; }
exists() { if on one test -e "$1"; then echo yes; else echo no; fi; }
listing() { on one ls "$D/$1" | xargs; }
looks() { # DIRECTORY: everything that client one may keep of it
	listing "$1"
	on one stat -c %a "$D/$1"
	exists "$D/$1/kept"
	exists "$D/$1/absent"
	exists "$D/$1/new"
}
# made DIRECTORY: with two files, and well known to client one.
made() {
	mkdir "$S/$1"
	touch "$S/$1/kept" "$S/$1/old"
	looks "$1" >/dev/null
}
# What is done to a directory $d, with one file beside it, $o; and its listing afterwards.
changes=("create kept new old" 'echo x >$d/new'
	"mkdir kept new old" 'mkdir $d/new'
	"symlink kept new old" 'ln -s kept $d/new'
	"link kept new old" 'ln $d/kept $d/new'
	"fifo kept new old" 'mkfifo $d/new'
	"unlink kept" 'rm $d/old'
	"out kept" 'mv $d/old $o'
	"in kept new old" 'mv $o $d/new'
	"within kept new" 'mv $d/old $d/new'
	"over kept" 'mv $d/old $d/kept'
	"onto kept old" 'mv $o $d/old'
	"mode kept old" 'chmod 711 $d'
	"owner kept old" 'chown 1005 $d')
# all_changes PREFIX ROOT COMMAND...: each to a directory of its own, by the shell that the command starts.
all_changes() {
	local i how dir want name prefix=$1 root=$2
	shift 2
	mkdir -p "$S/aside"
	for ((i = 0; i < ${#changes[@]}; i += 2)); do
		dir=$prefix.${changes[i]%% *}
		touch "$S/aside/$dir"
		made "$dir"
	done
	later
	for ((i = 0; i < ${#changes[@]}; i += 2)); do
		dir=$prefix.${changes[i]%% *}
		looks "$dir" >/dev/null
		"$@" "d=$root/$dir o=$root/aside/$dir; ${changes[i + 1]}"
	done
	later
	for ((i = 0; i < ${#changes[@]}; i += 2)); do
		dir=$prefix.${changes[i]%% *} want=${changes[i]#* } how=${changes[i + 1]}
		for name in kept old new; do
			case " $want " in
			*" $name "*) same "$name after $how" yes "$(exists "$D/$dir/$name")" ;;
			*) same "$name after $how" no "$(exists "$D/$dir/$name")" ;;
			esac
		done
		same "listing after $how" "$want" "$(listing "$dir")"
		same "attributes after $how" "$(stat -c '%a %h %u %s' "$S/$dir")" "$(on one stat -c '%a %h %u %s' "$D/$dir")"
	done
}

# With the delegation the client looks a name up, present or absent, lists and stats without a call. It may have been recalled for what
# was done to the directory just before, so there are several tries.
kept() {
	local n try
	case $KERNEL in 6.1 | 6.12) echo "Linux $KERNEL does not ask for them"; exit 77 ;; esac
	made quiet
	for try in {1..5}; do
		later
		n=$(calls)
		looks quiet >/dev/null
		n=$(($(calls) - n))
		t_note "$n calls in try $try"
		[ $n -gt 3 ] || return 0
	done
	die "$n calls of a client that has a delegation"
}
by_the_other() { all_changes two "$T" on two sh -c; }
by_a_local_process() { all_changes local "$S" sh -c; }
removed() {
	made gone
	later
	looks gone >/dev/null
	on two sh -c "rm -r $T/gone"
	later
	same "the directory" no "$(exists "$D/gone")"
	mkdir "$S/gone"
	later
	same "another of that name" "" "$(listing gone)"
}
renamed() {
	made away
	later
	looks away >/dev/null
	on two mv "$T/away" "$T/there"
	later
	same "the old name" no "$(exists "$D/away")"
	same "the new name" "kept old" "$(listing there)"
	on two touch "$T/there/new"
	later
	same "and a new entry" "kept new old" "$(listing there)"
}
# Both clients change what both list.
both_work() {
	local i
	made both
	for i in {1..15}; do
		on one touch "$D/both/one$i"
		on two touch "$T/both/two$i"
		on one ls "$D/both" >/dev/null
		on two ls "$T/both" >/dev/null
		[ $((i % 3)) != 0 ] || { on one mv "$D/both/two$i" "$D/both/kept.$i"; on two rm "$T/both/one$i"; }
	done
	later
	same "listing of one" "$(ls "$S/both")" "$(on one ls "$D/both")"
	same "listing of two" "$(ls "$S/both")" "$(on two ls "$T/both")"
}

t_run "no calls for what is delegated" kept
t_run "changes by another client" by_the_other
t_run "changes by a local process" by_a_local_process
t_run "removed by another client" removed
t_run "renamed by another client" renamed
t_run "both change it" both_work
clients_umount
rm -rf "$S"
t_done
