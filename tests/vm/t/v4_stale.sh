#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Nobody reads stale data: four clients (one for each version) and local processes write and read the same files, and each
# open shows what was closed before. VERS makes no difference to it.
export KNFSD_V4=1
. "$VMDIR/guest/lib.sh"
vm_up
S=/export/$FS/stale
rm -rf "$S"
mkdir "$S"
chmod 777 "$S"
all="3 4.0 4.1 4.2" ways=$S
for v in $all; do
	nfs_mount $v "$PROTO" "/export/$FS" /mnt/v$v || die "no mount of $v"
	ways+=" /mnt/v$v/stale"
done

# watch FILES GAP WAY...: GAP as vmstale has it. Linux's client sends CLOSE with GETATTR after close(2) has returned, and takes the change attribute
# that it finds for that of its own data: what another writes meanwhile it does not see (with any server). So the next write comes later.
TICK=50
watch() {
	local said files=$1
	shift
	set -- "$files" "${STALE_SECONDS:-6}" "$@"
	said=$(vm_prog vmstale "$@") || die "$said"
	t_note "$(tr '\n' ';' <<<"$said")"
}
# A client with a delegation has read the file before, and nobody has changed it.
reread() {
	local v i
	echo old >"$S/again"
	for i in 1 2 3; do
		for v in $all; do same "data $i, $v" old "$(cat "/mnt/v$v/stale/again")"; done
	done
	for v in $all; do
		echo "$v" >"/mnt/v$v/stale/again"
		for i in $all; do same "data of $v by $i" "$v" "$(cat "/mnt/v$i/stale/again")"; done
		same "data of $v" "$v" "$(cat "$S/again")"
	done
	echo local >"$S/again"
	for v in $all; do same "local data by $v" local "$(cat "/mnt/v$v/stale/again")"; done
}

t_run "one after the other" reread
# shellcheck disable=SC2086 # Several ways.
t_run "at the same time, few files" watch 2 $TICK $ways
# shellcheck disable=SC2086
t_run "at the same time, more files" watch 40 $TICK $ways
# shellcheck disable=SC2086
t_run "at the same time, without NFSv3" watch 2 $TICK ${ways/ \/mnt\/v3\/stale/}

# alone FILES GAP VERSION...: where no local process takes part, files are also delegated to write, to the clients of
# 4.1 and 4.2.
alone() {
	local v N=/export/$FS/stale_nfs nfs=() files=$1 gap=$2
	shift 2
	rm -rf "$N"
	mkdir "$N"
	chmod 777 "$N"
	echo "$N *(rw,sync,no_subtree_check,insecure,no_root_squash,nfs_only,fsid=92)" >"$STATE/exports.d/stale.exports"
	server_reload
	for v; do
		nfs_mount "$v" "$PROTO" "$N" "/mnt/n$v" || die "no mount of $v"
		nfs+=("/mnt/n$v")
	done
	watch "$files" "$gap" "${nfs[@]}"
	for v; do umount "/mnt/n$v"; done
	rm -rf "$N" "$STATE/exports.d/stale.exports"
	server_reload
}
# shellcheck disable=SC2086
t_run "clients alone, few files" alone 2 $TICK $all
t_run "clients alone, more files" alone 40 $TICK 4.0 4.1 4.2
for v in $all; do umount /mnt/v$v; done
rm -rf "$S"
t_done
