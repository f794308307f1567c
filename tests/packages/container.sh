# shellcheck shell=bash disable=SC2154 # run and lib.sh assign the variables.
# SPDX-License-Identifier: BSD-2-Clause
#
# What packaging/Containerfile makes, run as packaging/README.md says: with the capabilities that it names, its seccomp
# profile, a root that is read-only, and namespaces of its own for processes, mounts and the network.

image=$work/image
readme=$source/packaging/README.md

build_image() {
	make_root "$image" && copy_debs 1 "$work/context" && rm "$work"/context/ringnfs-doc_* &&
		"$here/containerfile.py" "$source/packaging/Containerfile" "$work/context" "$image" >"$work/entry"
}

documented() { sed -n 's/.*--cap-add \([A-Z_,]*\).*/\1/p' "$readme"; }

run_image() { # CAPABILITIES
	local entry
	mapfile -t entry <"$work/entry"
	export_in "$image"
	RO=1 VOLUMES="/srv /var/lib/ringnfs" "$here/serve" "$image" "$work/image.log" "2049 /srv/data" \
		"$here/confined.py" "$source/packaging/seccomp.json" "$1" "$image" "${entry[@]}" || { cat "$work/image.log"; return 1; }
}

has_no() { [ -z "$(in_root "$image" sh -c "command -v $1")" ]; }

judge "the image is built" build_image || return 0
judge "the image has no systemd" has_no systemctl
judge "the image has no rpcbind" has_no rpcbind
judge "packaging/README.md names capabilities" [ -n "$(documented)" ]
judge "the image serves with the capabilities that are documented" run_image "$(documented)"
judge "io_uring is used with the seccomp profile" refused grep -q 'io_uring is not available' "$work/image.log"
judge "the image serves a user with the least that is documented" run_image DAC_READ_SEARCH,SETUID,SETGID
for needed in DAC_READ_SEARCH SETUID SETGID; do
	least=$(sed "s/\b$needed\b//; s/^,//; s/,$//; s/,,/,/" <<<DAC_READ_SEARCH,SETUID,SETGID)
	judge "the image needs $needed" refused run_image "$least"
done
