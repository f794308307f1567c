#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# The data tests once more with io_mode = direct: past the server's page cache, by O_DIRECT.
. "$VMDIR/guest/lib.sh"
[ "$SERVER" = ringnfsd ] || { t_begin "direct mode"; t_skip "$SERVER has none"; t_done; }
net_up
mkdir -p "$STATE"
[ ! -e "$STATE/kind" ] || server_stop
server_start "$(standard_exports)" "[vfs]
io_mode = direct"
bash "$VMDIR/t/data.sh" >/run/direct.out 2>&1
sed 's/^\(ok\|FAIL\|skip\) \[/&direct:/' /run/direct.out | sed '$d'
server_stop
rm "$STATE/ringnfs.conf"
server_start "$(standard_exports)"
tail -n 1 /run/direct.out
