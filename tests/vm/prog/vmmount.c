/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mounts by mount(2) with the options as they are: mount.nfs refuses vers=2, which the kernel's client still has.
 *
 *   vmmount SOURCE DIRECTORY OPTIONS
 */
#include <err.h>
#include <sys/mount.h>

int main(int argc, char **argv)
{
	if (argc != 4)
		errx(2, "usage: vmmount SOURCE DIRECTORY OPTIONS");
	if (mount(argv[1], argv[2], "nfs", 0, argv[3]) != 0)
		err(1, "%s on %s", argv[1], argv[2]);
	return 0;
}
