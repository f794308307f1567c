# shellcheck shell=bash disable=SC2154 # run and lib.sh assign the variables.
# SPDX-License-Identifier: BSD-2-Clause
#
# Packages in a virtual machine with systemd as process 1 and the Linux client: guest/test.sh is what runs there.

guest=$work/guest share=$work/share
# What a guest has beside the packages' dependencies.
guest_packages=(systemd systemd-sysv udev dbus nfs-common netbase kmod procps iproute2 krb5-kdc krb5-admin-server krb5-user openssl)

configure_guest() {
	local unit
	cat >"$guest/etc/fstab" <<-'END'
		LABEL=root / ext4 rw 0 0
		share /share 9p trans=virtio,version=9p2000.L,msize=512000 0 0
		LABEL=data /srv/data ext4 nofail,x-systemd.requires=slow.service,x-systemd.after=slow.service 0 0
		LABEL=late /srv/late ext4 noauto 0 0
		/dev/disk/by-label/nowhere /srv/broken ext4 nofail,x-systemd.device-timeout=5s 0 0
	END
	cat >"$guest/etc/exports" <<-'END'
		/srv/data *(rw,insecure,no_root_squash)
		/srv/late *(rw,insecure,mountpoint)
		/srv/plain *(ro,insecure)
		/srv/broken *(ro,insecure)
		/srv/unit *(ro,insecure)
		/srv/krb *(rw,insecure,sec=krb5p)
	END
	printf '[nfs4]\nlease_time = 20\n[server]\nlog_level = info\n' >"$guest/etc/ringnfs.conf"
	mkdir -p "$guest"/srv/{data,late,plain,broken,krb} "$guest/share" "$guest/opt/ringnfs-test"
	echo guest >"$guest/etc/hostname"
	cp -r "$source/tests/vm/guest" "$guest/opt/ringnfs-test/guest"
	cp "$here"/guest/{test.sh,verdict} "$guest/opt/ringnfs-test/"
	cp "$here"/guest/*.{service,mount} "$guest/etc/systemd/system/"
	rm "$guest/usr/sbin/policy-rc.d" # here services run
	for unit in {apt-daily,apt-daily-upgrade,dpkg-db-backup,e2scrub_all,fstrim}.timer {e2scrub_reap,systemd-binfmt,getty@tty1,serial-getty@ttyS0,krb5-kdc,krb5-admin-server}.service; do
		ln -sf /dev/null "$guest/etc/systemd/system/$unit"
	done
	in_root "$guest" systemctl enable ringnfs-test.service ringnfsd.service names.service
}

# Has calls that the unit forbids noted in the journal instead, so that none of them is missed in silence.
log_calls() {
	local unit=$guest/lib/systemd/system/ringnfsd.service into=$guest/etc/systemd/system/ringnfsd.service.d
	mkdir -p "$into"
	{
		printf '[Service]\nSystemCallFilter=\n'
		printf 'SystemCallLog=~%s\n' "$(sed -n 's/^SystemCallFilter=//p' "$unit" | tr '\n' ' ')"
	} >"$into/log.conf"
}

make_guest() {
	make_root "$guest" "${guest_packages[@]}" && copy_debs 1 "$guest/debs" &&
		install_in "$guest" && apt_in "$guest" clean && rm -r "$guest/debs" &&
		configure_guest && log_calls && mkdir "$share" && copy_debs 2 "$share/debs"
}

boot_guest() { "$here/boot" "$guest" "$share" 2400; }

count_guest() {
	local line
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$share/output" | tail -n 1)
	grep -E -A 20 '^(FAIL|skip)' "$share/output"
	read -r p _ f _ s _ <<<"${line:-0 passed, 1 failed, 0 skipped}"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

judge "a root for the guest is made" make_guest || return 0
judge "the guest boots and runs its test" boot_guest
count_guest
