# shellcheck shell=bash disable=SC2154 # run and lib.sh assign the variables.
# SPDX-License-Identifier: BSD-2-Clause
#
# Debian packages out of clean copies of the tree: $work/debs/1 has them, $work/debs/again those of a second build in another
# folder, $work/debs/2 those of a later version.

build_debs() { # NUMBER FOLDER OPTIONS...
	local into=$work/debs/$1 tree=$work/$2
	shift 2
	mkdir -p "$into" "$tree"
	[ -e "$tree/source" ] || cp -a "$work"/dist/ringnfs-* "$tree/source" || return
	(cd "$tree/source" && DEB_BUILD_OPTIONS="parallel=$(nproc)" dpkg-buildpackage -us -uc -b "$@") >"$into/build.log" 2>&1 ||
		{ tail -n 40 "$into/build.log"; return 1; }
	mv "$tree"/*.deb "$tree"/*.changes "$tree"/*.buildinfo "$into"
}
is_reproducible() {
	build_debs again again && diff <(cd "$work/debs/1" && sha256sum ./*.deb) <(cd "$work/debs/again" && sha256sum ./*.deb)
}

# Copies the packages without those with debugging symbols.
copy_debs() { # NUMBER FOLDER
	rm -rf "$2" && mkdir "$2" && cp "$work/debs/$1"/ringnfs*.deb "$2" && rm -f "$2"/*-dbgsym_*.deb
}

# With the objects of the first: only what the packages say of themselves is new.
build_later_version() {
	local changelog=$work/tree/source/debian/changelog
	{
		printf 'ringnfs (%s) unstable; urgency=medium\n\n  * A later version.\n\n' "$later"
		printf ' -- ringnfs maintainers <nobody@ringnfs.invalid>  %s\n\n' "$(date -R)"
		cat "$changelog"
	} >"$changelog.new" && mv "$changelog.new" "$changelog"
	rm -f "$work"/tree/source/debian/*.debhelper.log "$work"/tree/source/debian/files
	build_debs 2 tree -nc
}

# Root has to say that it knows what it does.
run_lintian() { lintian --allow-root --fail-on error,warning "$work"/debs/1/*.changes; }

# What belongs to others is in no package.
ships_nothing_of_others() {
	local deb
	for deb in "$work"/debs/1/*.deb; do
		! dpkg-deb -c "$deb" | grep -E ' \./(etc/exports|etc/ringnfs\.conf|srv|var/lib/ringnfs)' || return 1
	done
}

# NEWS may begin with what the next release will have.
versions_agree() {
	local news
	news=$(sed -n '/(not released)/d; s/^ringnfs \([0-9.]*\).*/\1/p' "$source/NEWS" | head -n 1)
	equal "$news" "$version" &&
		equal "$(sed -n 's/^AC_INIT(\[ringnfs\], \[\(.*\)\])$/\1/p' "$source/configure.ac")" "$version" &&
		equal "$(sed -n 's/^Version: *//p' "$source/packaging/ringnfs.spec")" "$version"
}

later=$version+later1
judge "NEWS, configure.ac, the spec and the changelog have one version" versions_agree
judge "packages are built" build_debs 1 tree || return 0
judge "a second build, in another folder, makes the same packages" is_reproducible
judge "lintian finds no error and no warning" run_lintian
judge "no package has files of the administrator" ships_nothing_of_others
judge "a later version is built" build_later_version
