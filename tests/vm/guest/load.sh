# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Two clients at work: each writes by NFSv3 and by this version all the time, into files of the folder $S of the export that it reads back. A script
# that has sourced clients.sh sources this file, and sets SIZE, the bytes of a file, and PAUSE between two of them.
#   load_begin     mounts and begins
#   goes_on        waits until each has done two files more
#   verified       ends them, and looks for every byte at the server and through the other client
#   load_end       unmounts
rm -f /run/load.*
loads="one.3 two.3"
[ "$VERS" = 3 ] || loads="$loads one.$VERS two.$VERS"
at() { echo "/mnt/${1%%.*}/$1"; } # where the load of that name has its mount
# load NAME: one file after the other, each of which is read back.
load() {
	local n=0 client=${1%%.*} file
	until [ -e /run/load.stop ]; do
		n=$((n + 1))
		file=$(at "$1")/${S##*/}/$1.$n
		on "$client" vm_prog vmio gen $n $SIZE "$file" && on "$client" vm_prog vmio check $n $SIZE "$file" || return
		echo $n >"/run/load.$1"
		sleep "${PAUSE:-0.3}"
	done
}
count() { cat "/run/load.$1" 2>/dev/null || echo 0; }
beyond() { [ "$(count "$1")" -gt "$2" ]; }
at_work() { kill -0 "$(cat "/run/load.pid.$1")" 2>/dev/null; }
load_begin() {
	local name
	clients_up
	for name in $loads; do client_mount "${name%%.*}" "${name#*.}" "/export/$FS" nosharecache "$(at "$name")"; done
	for name in $loads; do
		load "$name" &
		echo $! >"/run/load.pid.$name"
	done
	goes_on
}
# get_on: two files more of each, so that one of them is from now.
get_on() {
	local name
	declare -A before=()
	for name in $loads; do before[$name]=$(count "$name"); done
	for name in $loads; do
		wait_until 120 eval "beyond $name $((before[$name] + 1)) || ! at_work $name" || die "$name does not get on: $(count "$name") files"
		at_work "$name" || die "$name has failed"
	done
}
goes_on() {
	local start=$EPOCHREALTIME
	get_on
	t_note "all got on within $(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }') s"
}
verified() {
	local name n other total=0
	touch /run/load.stop
	for name in $loads; do
		wait_until 120 eval "! at_work $name" || die "$name does not end"
		total=$((total + $(count "$name")))
	done
	for name in $loads; do
		case $name in one.*) other=two.${name#*.} ;; *) other=one.${name#*.} ;; esac
		n=$(count "$name")
		# Nothing that was refused or came twice: each file and no other.
		same "files of $name" "$n" "$(find "$S" -name "$name.*" | wc -l)"
		for ((; n; n--)); do
			vm_prog vmio check $n $SIZE "$S/$name.$n"
			echo "$VMPROG/vmio check $n $SIZE $(at "$other")/${S##*/}/$name.$n || exit"
		done >"/run/load.check.$name"
		# The other client reads what this one has written.
		cp "/run/load.check.$name" "/share/peer.$(peer_of "${other%%.*}")/check"
		on "${other%%.*}" sh /share/check
	done
	t_note "$total files"
}
load_end() {
	local name
	touch /run/load.stop
	for name in $loads; do on "${name%%.*}" timeout 60 umount "$(at "$name")"; done
}
