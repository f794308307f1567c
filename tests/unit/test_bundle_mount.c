/* SPDX-License-Identifier: BSD-2-Clause */
/* Passwords that file systems show among their mount options are left out of support bundles. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/bundle.h"

static void expect(const char *line, const char *wanted)
{
	char *got = NULL;
	size_t len;
	FILE *out = open_memstream(&got, &len);

	bundle_put_mount(out, line);
	fclose(out);
	cr_expect_str_eq(got, wanted, "%s: %s", line, got);
	free(got);
}

Test(bundle_mount, plain_lines_stay)
{
	static const char *const lines[] = {
		"29 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,errors=remount-ro\n",
		"30 1 0:5 / /srv rw - overlay overlay rw,lowerdir=/a:/b,upperdir=/c\n",
		"31 1 0:6 / /srv/n rw - nfs4 host:/a@b rw,vers=4.2,addr=192.0.2.1",
		"",
		"\n",
		",, =\n",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		expect(lines[i], lines[i]);
}

Test(bundle_mount, secrets_go)
{
	expect("3 1 0:5 / /srv rw - fuse https://me:pw@host/dav rw,user_id=0\n",
	       "3 1 0:5 / /srv rw - fuse https://<hidden>@host/dav rw,user_id=<hidden>\n");
	expect("- fuse x#ftp://me:p/w@x@host/ rw\n", "- fuse x#ftp://<hidden>@host/ rw\n");
	expect("- ceph mon:/ rw,name=a,secret=AQ==,Password=p w\n",
	       "- ceph mon:/ rw,name=a,secret=<hidden>,Password=<hidden> w\n");
	expect("- fuse s rw,access_token=t,rootcred=c,x=u://t:u@h\n",
	       "- fuse s rw,access_token=<hidden>,rootcred=<hidden>,x=u://<hidden>@h\n");
	expect("secret=", "secret=<hidden>");
}
