#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A root on NFS: Debian's, as debootstrap makes it, unpacked by the client, and its package manager in a chroot there. Packages are
# installed, upgraded, installed anew while their programs run, removed; dpkg is killed on the way. ROOT_TAR is an archive of the
# root with the packages in its apt cache (tests/vm/prepare root).
. "$VMDIR/guest/lib.sh"
ROOT_TAR=${ROOT_TAR:-$VMROOT}
if [ ! -e "$ROOT_TAR" ]; then
	t_begin "root"
	t_skip "no archive of a root"
	t_done
fi
vm_up
server_with "[nfs4]
lease_time = 10
grace_time = 10"
S=/export/$FS/root R=/mnt/t/root
rm -rf "$S"
mkdir "$S"
mnt_test || die "no mount"
CACHE=/var/cache/apt/archives

enter=(chroot "$R" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C)
inside() { "${enter[@]}" "$@"; }
# deb NAME: its archive in the root.
deb() { (cd "$R" && echo ".$CACHE/$1"_*.deb | sed 's/^\.//'); }
version() { inside dpkg-query -W -f '${Version}' "$1"; }
# consistent: all packages are configured, and their files as they should be.
consistent() {
	same "packages in a state of their own" "" "$(inside dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' | grep -v '^ii ' || true)"
	same "audit" "" "$(inside dpkg --audit)"
	inside dpkg --verify >/run/verify
	same "verify" "" "$(cat /run/verify)"
	same "left from files removed while open" "" "$(find "$S" -name '.nfs*')"
}

unpack() {
	tar -C "$R" --numeric-owner -xpf "$ROOT_TAR"
	drop_caches
	tar -C "$R" --numeric-owner -df "$ROOT_TAR" --exclude=./dev >/run/diff 2>&1 || true
	same "differences" "" "$(grep -v 'socket ignored' /run/diff || true)"
	tar -C "$S" --numeric-owner -df "$ROOT_TAR" >/run/diff 2>&1 || true
	same "differences on the server" "" "$(cat /run/diff)"
	mkdir -p "$R"/{proc,dev}
	mount -t proc proc "$R/proc"
	mount --bind /dev "$R/dev"
}
install() {
	inside dpkg -i "$(deb hello)" "$(deb less)" "$(deb tree)"
	same "hello" "Hello, world!" "$(inside hello)"
	inside tree /etc/apt | grep -q sources.list
	consistent
}
# A repository in the root, with what is installed in a newer version.
upgrade() {
	local p size sum
	mkdir -p "$R/repo"
	for p in hello less; do
		rm -rf "/run/$p" # another run's
		dpkg-deb -R "$R$(deb $p)" "/run/$p"
		sed -i 's/^Version: .*/&+newer1/' "/run/$p/DEBIAN/control"
		echo "newer" >"/run/$p/usr/share/doc/$p/newer"
		dpkg-deb --root-owner-group -b "/run/$p" "$R/repo/$p.deb" >/dev/null
		size=$(stat -c %s "$R/repo/$p.deb") sum=$(sum "$R/repo/$p.deb")
		dpkg-deb -f "$R/repo/$p.deb"
		printf 'Filename: ./%s.deb\nSize: %s\nSHA256: %s\n\n' $p "$size" "$sum"
	done >"$R/repo/Packages"
	echo 'deb [trusted=yes] file:/repo ./' >"$R/etc/apt/sources.list"
	inside apt-get update
	inside apt-get -y upgrade
	for p in hello less; do
		case $(version $p) in *+newer1) ;; *) die "$p is $(version $p)" ;; esac
		same "a new file of $p" newer "$(cat "$R/usr/share/doc/$p/newer")"
	done
	consistent
}
# Programs and libraries are replaced under those who run them.
running() {
	local pid
	"${enter[@]}" sleep 1000 &
	pid=$!
	wait_until 20 sh -c "readlink /proc/$pid/exe | grep -q sleep"
	inside dpkg -i "$(deb coreutils)" "$(deb libc6)" "$(deb bash)"
	drop_caches
	kill -0 $pid
	kill $pid
	wait $pid || true
	consistent
}
killed() {
	local i pid
	for i in 0.3 1 2; do
		"${enter[@]}" dpkg -i "$(deb perl-base)" "$(deb coreutils)" >/run/dpkg.out 2>&1 &
		pid=$!
		sleep $i
		kill -9 $pid 2>/dev/null || true
		wait $pid 2>/dev/null || true
		wait_until 60 sh -c "! pidof dpkg dpkg-deb"
		inside dpkg --configure -a
		inside dpkg -i "$(deb perl-base)" "$(deb coreutils)"
	done
	consistent
}
restarted() {
	local pid
	"${enter[@]}" dpkg -i "$(deb perl-base)" "$(deb tar)" >/run/dpkg.out 2>&1 &
	pid=$!
	sleep 1
	server_crash && server_again
	wait $pid || { cat /run/dpkg.out; die "dpkg failed"; }
	consistent
}
remove() {
	inside apt-get -y remove tree
	inside apt-get -y purge hello less
	[ ! -e "$R/usr/bin/hello" ] && [ ! -e "$R/usr/bin/tree" ] && [ ! -e "$S/usr/share/doc/hello" ]
	fails_with "no packages found" inside dpkg-query -W hello
	consistent
}

t_run "unpack a root" unpack
t_run "install" install
t_run "upgrade" upgrade
t_run "replace what runs" running
t_run "dpkg is killed" killed
t_run "the server restarts" restarted
t_run "remove" remove
umount "$R/dev" "$R/proc"
rm -rf "$S"
umnt_test
t_done
