# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
#
# Which acceleration virtual machines run with, and what QEMU and the kernel are told for each.

accel_arguments() {
	if [ "$1" = kvm ]; then
		printf '%s\n' -M microvm,acpi=on,rtc=on -accel kvm -cpu host
	else
		printf '%s\n' -M microvm,acpi=on,rtc=on -accel tcg,thread=multi -cpu max,-la57
	fi
}

# With software emulation and a busy host the kernel may fail to calibrate its clock. A timer that is set anew for each
# event has been seen to be lost, and a machine with one processor then stands still: so it ticks regularly.
clock_arguments() {
	local khz
	[ "$1" = tcg ] || return 0
	khz=$(awk '/^cpu MHz/ { printf "%d", $4 * 1000; exit }' /proc/cpuinfo)
	echo "tsc=reliable tsc_early_khz=${khz:-2000000} no_timer_check nohz=off highres=off"
}

# A processor that shows no virtualization of its own may offer /dev/kvm all the same (a guest of
# some clouds); Linux does not boot under that.
kvm_usable() {
	[ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo
}

# accels [KERNEL]: what to try, one after the other.
accels() {
	case ${1:-} in
	uml | native) echo uml uml; return ;;
	arm64 | s390x) echo foreign; return ;;
	esac
	case ${RINGNFS_VM_ACCEL:-auto} in
	kvm) echo kvm kvm ;;
	tcg) echo tcg tcg ;;
	*) if kvm_usable; then echo kvm tcg; else echo tcg tcg; fi ;;
	esac
}
