/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Small data go through the socket. Of large ones only the addresses go: who gets the data reads
 * them from the other process's memory straight into place, one copy at the speed of memory. The
 * memory belongs to a work request that has not completed, or to a region whose deregistration
 * waits. Where the system does not let one process read another, all data go through the socket.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/qp.h"

#define PULL_FROM 8192u /* bytes of a message: below, the socket is as fast */

uint32_t sv_transfer_size(const struct sv_link *l, uint32_t left, uint32_t total, bool *pull)
{
	uint32_t most;

	*pull = l->peer_pulls && total >= PULL_FROM;
	most = *pull ? SV_PULL_DATA : SV_FRAME_DATA;
	return left < most ? left : most;
}

int sv_transfer_send(struct sv_link *l, struct sv_frame *f, const struct iovec *iov, int n)
{
	struct sv_pull pull[SV_PULL_IOVS];
	struct iovec one = { pull, (size_t)n * sizeof(*pull) };

	if (!(f->flags & SV_FLAG_PULL)) {
		f->len = f->bytes;
		return sv_link_send_data(l, f, iov, n);
	}
	for (int i = 0; i < n; i++)
		pull[i] = (struct sv_pull){ (uintptr_t)iov[i].iov_base, iov[i].iov_len };
	f->len = (uint32_t)one.iov_len;
	return sv_link_send_data(l, f, &one, 1);
}

static int pull_data(struct sv_link *l, const struct sv_frame *f, const uint8_t *data,
		     const struct iovec *iov, int n)
{
	struct iovec remote[SV_PULL_IOVS];
	struct sv_pull pull[SV_PULL_IOVS];
	size_t count = f->len / sizeof(*pull);

	if (!l->may_pull || count > SV_PULL_IOVS)
		return -EFAULT;
	memcpy(pull, data, count * sizeof(*pull));
	for (size_t i = 0; i < count; i++)
		remote[i] = (struct iovec){ (void *)(uintptr_t)pull[i].addr, pull[i].len };
	sv_fabric.moved += f->bytes;
	ssize_t got = process_vm_readv(l->pid, iov, (unsigned long)n, remote, count, 0);
	return got == (ssize_t)f->bytes ? 0 : -EFAULT;
}

int sv_transfer_receive(struct sv_link *l, const struct sv_frame *f, const uint8_t *data,
			const struct iovec *iov, int n)
{
	if (f->flags & SV_FLAG_PULL)
		return pull_data(l, f, data, iov, n);
	sv_fabric.moved += f->bytes;
	if (f->len != f->bytes)
		return -EFAULT;
	for (int i = 0; i < n; i++) {
		memcpy(iov[i].iov_base, data, iov[i].iov_len);
		data += iov[i].iov_len;
	}
	return 0;
}
