# shellcheck shell=bash disable=SC2154,SC2016 # run and lib.sh assign the variables.
# SPDX-License-Identifier: BSD-2-Clause
#
# Packages in a clean root: installed, used, upgraded, removed, purged. Nothing is left.

root=$work/root

install_debs() { # NUMBER
	copy_debs "$1" "$root/debs" && install_in "$root"
}

# Dependencies first, so that the list of files knows them.
install_dependencies() {
	local names
	names=$(install_in "$root" -s | awk '/^Inst/ && $2 !~ /^ringnfs/ { print $2 }')
	# shellcheck disable=SC2086 # Several packages.
	apt_in "$root" install --no-install-recommends $names
}

# Files of the root but for records of dpkg, apt and the log, and copies that tools keep of /etc/group.
list_files() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./debs -o -path ./tmp -o -path ./var/lib/dpkg -o -path ./var/lib/apt \
		-o -path ./var/cache -o -path ./var/log -o -path ./root \) -prune -o -print) | grep -vE '^\./etc/(group|gshadow|passwd|shadow)-$' | sort
}

package_state() { in_root "$root" dpkg-query -W -f '${db:Status-Status} ${Version}' "$1"; }

serve_once() {
	rm -f "$root/srv/data/by-1000"
	"$here/serve" "$root" "$work/server.log" "2049 /srv/data" chroot "$root" ringnfsd --no-rpcbind || { cat "$work/server.log"; return 1; }
}

# A second server on the port that the first one has says so and ends.
port_taken() {
	local SECOND="$work/second.log"
	rm -f "$root/srv/data/by-1000"
	if WHILE="chroot $root ringnfsd --no-rpcbind --state-dir /tmp/second --control-socket '' --mount-port 0 >$SECOND 2>&1; [ \$? = 69 ]" \
		"$here/serve" "$root" "$work/server.log" "2049 /srv/data" chroot "$root" ringnfsd --no-rpcbind; then
		grep -q "2049.*in use" "$SECOND" && return
	fi
	cat "$SECOND" "$work/server.log"
	return 1
}

not_enabled() { equal "$(find "$root/etc/systemd/system" -name 'ringnfsd*')" ""; }

use_installed() {
	judge "the installation has made the group" grep -q '^ringnfs:' "$root/etc/group"
	judge "the installation enables no service" not_enabled
	judge "the installation makes no /etc/exports" [ ! -e "$root/etc/exports" ]
	judge "the samples are there" [ -s "$root/usr/share/doc/ringnfs/examples/exports" -a -s "$root/usr/share/doc/ringnfs/examples/ringnfs.conf" ]
	export_in "$root"
	printf '[server]\nlog_level = info\n' >"$root/etc/ringnfs.conf"
	judge "--check-config accepts the exports" in_root "$root" ringnfsd --check-config
	judge "the server starts and answers" serve_once
	judge "a server whose port is taken ends with status 69 and the reason" port_taken
	judge "ringnfsctl runs" in_root "$root" ringnfsctl --version
	judge "rpcrdma-conform runs" in_root "$root" rpcrdma-conform --list
	judge "nfs-kernel-server may be installed beside it" beside_kernel_server
}

beside_kernel_server() {
	local plan
	plan=$(apt_in "$root" install -s nfs-kernel-server) && grep -q '^Inst nfs-kernel-server' <<<"$plan" && refused grep '^Remv' <<<"$plan"
}

# Of the administrator's files and the key.
keep() { (cd "$root" && sha256sum etc/exports etc/ringnfs.conf var/lib/ringnfs/handle.key); }

use_upgraded() {
	local before
	before=$(keep)
	judge "a later version is installed over it" install_debs 2
	judge "the later version is there" equal "$(package_state ringnfs)" "installed $later"
	judge "the upgrade keeps exports, settings and the key of handles" equal "$(keep)" "$before"
	judge "the upgraded server starts and answers" serve_once
	judge "packages are removed" apt_in "$root" remove ringnfs ringnfs-tools ringnfs-doc
	judge "a removal keeps exports, settings and the key of handles" equal "$(keep)" "$before"
	judge "a removal removes the program" [ ! -e "$root/usr/sbin/ringnfsd" ]
}

judge "a clean root is made" make_root "$root" || return 0
judge "package lists are fetched" apt_in "$root" update
copy_debs 1 "$root/debs"
judge "dependencies are installed" install_dependencies
list_files >"$work/files.before"
judge "packages are installed" install_debs 1 || return 0
judge "the package is there" equal "$(package_state ringnfs)" "installed $version"
use_installed
use_upgraded
judge "packages are purged" apt_in "$root" purge ringnfs ringnfs-tools ringnfs-doc
judge "a purge leaves the administrator's files" [ -e "$root/etc/exports" -a -e "$root/etc/ringnfs.conf" ]
rm -rf "$root/etc/exports" "$root/etc/ringnfs.conf" "$root/srv/data" "$root/run/ringnfs"
list_files >"$work/files.after"
judge "a purge leaves nothing" diff "$work/files.before" "$work/files.after"
