# shellcheck shell=bash disable=SC2016 # apt-get and an inner shell expand what is quoted.
# SPDX-License-Identifier: BSD-2-Clause
#
# Counting, roots made by debootstrap, and running a server in one. $work is the folder of this run.

passed=0 failed=0 skipped=0

# judge WHAT COMMAND...: passes if the command succeeds; shows its output if it does not.
judge() {
	local text=$1 output
	shift
	if output=$("$@" 2>&1); then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAIL: %s\n%s\n' "$text" "$(tail -n 30 <<<"$output")"
		return 1
	fi
}

refused() { ! "$@"; }

equal() { # GOT WANTED
	[ "$1" = "$2" ] || { echo "'$1', not '$2'"; return 1; }
}

skip() {
	skipped=$((skipped + 1))
	echo "skip: $*"
}

# The archive and the release that this machine has its own packages of. Unstable calls itself by the name of the release that it will be.
archive() {
	local release targets
	release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	targets=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' "Created-By: Packages" "Component: main" "Label: Debian")
	awk -v release="$release" '$2 == release { print; found = 1; exit } { first = first ? first : $0 } END { if (!found && first) print first }' <<<"$targets"
}

# Roots as debootstrap makes them are kept, since that takes minutes. One of another release or of other packages has
# another name.
base_root() { # ROOT PACKAGE...
	local uri release kept=${RINGNFS_CACHE:-$source/.cache/vm}
	read -r uri release < <(archive)
	local IFS=,
	[ -n "$uri" ] || { echo "apt names no archive of Debian"; return 1; }
	kept=$kept/root-$release-$(sha256sum <<<"$uri ${*:2}" | head -c 12).tar
	if [ ! -e "$kept" ]; then
		debootstrap --variant=minbase ${2:+--include="${*:2}"} "$release" "$1" "$uri" || return
		mkdir -p "${kept%/*}" && tar -C "$1" -cf "$kept.new" . && mv "$kept.new" "$kept"
	else
		mkdir -p "$1" && tar -C "$1" -xf "$kept"
	fi
}

# make_root ROOT PACKAGE...: nothing that is installed in the root starts a service, and apt takes packages from where this
# machine does.
make_root() {
	base_root "$@" || return
	apt-config dump Acquire | grep -E '^Acquire::(https?::[^:]*[Pp]roxy|Check-)' >"$1/etc/apt/apt.conf.d/90here"
	cp -L /etc/resolv.conf "$1/etc/resolv.conf"
	printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
	chmod 755 "$1/usr/sbin/policy-rc.d"
	apt_in "$1" update
}

# in_root ROOT COMMAND...: in namespaces of its own, so that no process and no mount is left.
in_root() {
	local root=$1
	shift
	DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 unshare --mount --pid --fork --kill-child --propagation private sh -c \
		'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"
}

apt_in() { # ROOT ARGUMENTS...
	local root=$1
	shift
	in_root "$root" apt-get -q -y -o Dpkg::Options::=--force-confold "$@"
}

# install_in ROOT [OPTION]...: the packages in its folder /debs, with those that they depend on.
install_in() {
	local root=$1 debs
	shift
	debs=("$root"/debs/*.deb)
	apt_in "$root" install --no-install-recommends "$@" "${debs[@]#"$root"}"
}

# Exports a folder of the root, which everybody may write to, to this machine.
export_in() { # ROOT
	mkdir -p "$1/srv/data"
	chmod 1777 "$1/srv/data"
	rm -f "$1/srv/data/by-1000"
	echo '/srv/data 127.0.0.1(rw,insecure)' >"$1/etc/exports"
}
