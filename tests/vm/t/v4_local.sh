#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Changes by local processes that wait for nobody, of directories and files that the client has a delegation of: mode, extended attributes,
# names that were absent, names that have gone. The client returns the delegation and looks again within the second that it
# believes attributes for. Clients from Linux 6.19 on ask for delegations of directories.
. "$VMDIR/guest/lib.sh"
case $VERS in
3)
	t_begin "local changes"
	t_skip "NFSv3 has no delegations"
	t_done
	;;
esac
vm_up
TIMES=${TIMES:-5}
S=/export/$FS/local D=/mnt/t/local
rm -rf "$S"
mkdir "$S"
mnt_test actimeo=1 || die "no mount"

x() { vm_prog vmxattr "$@"; }
# known PATH: what the client shows of it, twice, so that it has a delegation.
known() {
	ls -la "$1" >/dev/null
	cat "$1"/* >/dev/null 2>&1 || true
	stat -c %a "$1"
}
later() { sleep 1.2; }

modes() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		mkdir "$S/m$i"
		echo data >"$S/m$i/f"
		known "$D/m$i" >/dev/null
		cat "$D/m$i/f" >/dev/null
		known "$D/m$i" >/dev/null
		chmod 700 "$S/m$i"
		chmod 600 "$S/m$i/f"
		later
		same "mode of directory $i" 700 "$(stat -c %a "$D/m$i")"
		same "mode of file $i" 600 "$(stat -c %a "$D/m$i/f")"
	done
}
# Who may not come in any more does not.
access() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		mkdir -m 755 "$S/a$i"
		echo data >"$S/a$i/f"
		same "list $i" f "$(setpriv --reuid 1005 --regid 100 --clear-groups ls "$D/a$i")"
		same "data $i" data "$(setpriv --reuid 1005 --regid 100 --clear-groups cat "$D/a$i/f")"
		chmod 700 "$S/a$i"
		later
		fails_with "Permission denied" setpriv --reuid 1005 --regid 100 --clear-groups ls "$D/a$i"
		chmod 755 "$S/a$i"
		later
		same "list $i, again" f "$(setpriv --reuid 1005 --regid 100 --clear-groups ls "$D/a$i")"
	done
}
absent() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		mkdir "$S/n$i"
		known "$D/n$i" >/dev/null
		fails_with "No such file" stat "$D/n$i/new"
		fails_with "No such file" stat "$D/n$i/new"
		echo new >"$S/n$i/new"
		later
		same "new name $i" new "$(cat "$D/n$i/new")"
		rm "$S/n$i/new"
		later
		fails_with "No such file" stat "$D/n$i/new"
		same "list $i" "" "$(ls "$D/n$i")"
	done
}
# A name that another file has got.
renamed() {
	local i
	for ((i = 0; i < TIMES; i++)); do
		mkdir "$S/r$i"
		echo old >"$S/r$i/f"
		known "$D/r$i" >/dev/null
		same "data $i" old "$(cat "$D/r$i/f")"
		echo new >"$S/r$i/tmp"
		mv "$S/r$i/tmp" "$S/r$i/f"
		later
		same "data $i of the new one" new "$(cat "$D/r$i/f")"
		same "list $i" f "$(ls "$D/r$i")"
	done
}
xattrs() {
	local i f
	for ((i = 0; i < TIMES; i++)); do
		mkdir "$S/x$i"
		echo data >"$S/x$i/f"
		for f in "x$i" "x$i/f"; do
			x set "$S/$f" user.a before
			known "$D/x$i" >/dev/null
			same "$f" before "$(x get "$D/$f" user.a)"
			same "$f" before "$(x get "$D/$f" user.a)"
			x set "$S/$f" user.a after
			later
			same "$f, changed" after "$(x get "$D/$f" user.a)"
			x remove "$S/$f" user.a
			later
			fails_with "No data available" x get "$D/$f" user.a
		done
	done
}

t_run "modes" modes
t_run "access" access
t_run "names that were absent" absent
t_run "a file put over another" renamed
[ "$VERS" != 4.2 ] || t_run "extended attributes" xattrs
t_run "no call was sent twice" assert_clean_stats /mnt/t
umnt_test
rm -rf "$S"
t_done
