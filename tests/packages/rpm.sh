# shellcheck shell=bash disable=SC2154 # run and lib.sh assign the variables.
# SPDX-License-Identifier: BSD-2-Clause
#
# The spec is read, and builds packages from a release's tarball.

rpms=$work/rpm
# Macros of the package systemd-rpm-macros, which Debian has not. From Fedora 42 on the server is in the folder of the tools.
macros=(--define "_topdir $rpms" --define "_sbindir %{_bindir}" --define "systemd_post() :" --define "systemd_preun() :" --define "systemd_postun() :")

build_rpms() {
	mkdir -p "$rpms"
	tar -C "$work/dist" -cJf "$rpms/ringnfs-$version.tar.xz" "ringnfs-$version" || return
	rpmbuild -tb --nodeps "${macros[@]}" "$rpms/ringnfs-$version.tar.xz" >"$rpms/build.log" 2>&1 || { tail -n 40 "$rpms/build.log"; return 1; }
}

files_of() { rpm -qpl "$rpms"/RPMS/*/"$1-$version"-*.rpm; }

has() { # PACKAGE PATH...
	local list path
	list=$(files_of "$1") || return
	shift
	for path; do
		grep -q "^$path" <<<"$list" || { echo "no $path in: $list"; return 1; }
	done
}

judge "the spec can be read" rpmspec -P "${macros[@]}" "$source/packaging/ringnfs.spec"
judge "packages are built from the tarball" build_rpms || return 0
judge "ringnfs has the server, its unit, group and pages" has ringnfs /usr/bin/ringnfsd /usr/lib/systemd/system/ringnfsd.service \
	/usr/lib/sysusers.d/ringnfs.conf /usr/share/man/man8/ringnfsd.8 /usr/share/man/man5/ringnfs.conf.5
judge "ringnfs-tools has the tools and their pages" has ringnfs-tools /usr/bin/ringnfsctl /usr/bin/rpcrdma-conform \
	/usr/share/man/man8/ringnfsctl.8 /usr/share/man/man8/rpcrdma-conform.8
judge "ringnfs-doc has the documents" has ringnfs-doc '/usr/share/doc/.*/README.md' '/usr/share/doc/.*/design/rdma.md'
