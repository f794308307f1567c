/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"
#include "tools/softverbs/sinks.h"
#include "tools/softverbs/sv_device.h"
#include "tools/softverbs/sv_memory.h"

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define REMOTE_RIGHTS (REMOTE_CHANGES | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)
#define REMOTE_CHANGES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)
#define PULL_WAIT_SEC 2 /* longest wait for a stopped peer that takes a Read's data */

SV_EXPORT struct ibv_pd *ibv_alloc_pd(struct ibv_context *context)
{
	struct sv_context *ctx = sv_context_of(context);
	struct sv_pd *pd = calloc(1, sizeof(*pd));

	if (!pd)
		return NULL;
	pd->ibv.context = context;
	sv_lock();
	pd->ibv.handle = ++ctx->users;
	sv_fabric.pds++;
	sv_unlock();
	return &pd->ibv;
}

SV_EXPORT int ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct sv_pd *pd = sv_pd_of(ibv);

	sv_lock();
	if (pd->users) {
		sv_unlock();
		return EBUSY;
	}
	sv_context_of(ibv->context)->users--;
	sv_fabric.pds--;
	sv_unlock();
	free(pd);
	return 0;
}

static struct sv_mr *mr_find(uint32_t key)
{
	const struct sv_mr_table *t = &sv_fabric.mrs;
	uint32_t index = key >> 8;
	struct sv_mr *mr = index < t->size ? t->mr[index] : NULL;

	return mr && mr->ibv.lkey == key ? mr : NULL;
}

static int mr_table_grow(struct sv_mr_table *t)
{
	uint32_t size = t->size ? t->size * 2 : 1024;
	struct sv_mr **mr = size > SV_MAX_MR ? NULL : realloc(t->mr, size * sizeof(*mr));

	if (!mr)
		return -ENOMEM;
	for (uint32_t i = t->size; i < size; i++)
		mr[i] = NULL;
	t->mr = mr;
	t->size = size;
	return 0;
}

/* Index 0 stays free, so that key 0 is never valid. */
static int table_add(struct sv_mr *mr)
{
	static const uint32_t tag_step = 0x3b;
	struct sv_mr_table *t = &sv_fabric.mrs;

	if (t->used + 1 >= t->size) {
		int err = mr_table_grow(t);
		if (err)
			return err;
	}
	do
		t->hint = t->hint + 1 < t->size ? t->hint + 1 : 1;
	while (t->mr[t->hint]);
	t->mr[t->hint] = mr;
	t->used++;
	sv_fabric.mr_tag += tag_step;
	mr->ibv.lkey = mr->ibv.rkey = t->hint << 8 | (sv_fabric.mr_tag & 0xff);
	mr->ibv.handle = t->hint;
	return 0;
}

/* Fails for memory that is not mapped, as the kernel does when it pins the pages. */
static int check_mapped(void *addr, size_t length)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = (uintptr_t)addr & ~(page - 1);
	uintptr_t to = (uintptr_t)addr + length;

	if (to < (uintptr_t)addr)
		return -EINVAL;
	return length && msync((void *)from, to - from, MS_ASYNC) < 0 ? -EFAULT : 0;
}

static int mr_check_access(unsigned access)
{
	return access & REMOTE_CHANGES && !(access & IBV_ACCESS_LOCAL_WRITE) ? -EINVAL : 0;
}

SV_EXPORT struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *ibv, void *addr, size_t length,
					  uint64_t iova, unsigned int access)
{
	struct sv_mr *mr = calloc(1, sizeof(*mr));
	int err = mr ? mr_check_access(access) : -ENOMEM;

	if (!err)
		err = check_mapped(addr, length);
	sv_lock();
	if (!err && sv_device_of(ibv->context->device)->removed)
		err = -EIO;
	if (!err)
		err = sv_fault_mr(SV_AT_REG_MR);
	if (!err) {
		mr->ibv.context = ibv->context;
		mr->ibv.pd = ibv;
		mr->ibv.addr = addr;
		mr->ibv.length = length;
		mr->iova = access & IBV_ACCESS_ZERO_BASED ? 0 : iova;
		mr->access = access;
		err = table_add(mr);
	}
	if (!err) {
		sv_pd_of(ibv)->users++;
		sv_fabric.mrs.remote += (access & REMOTE_RIGHTS) != 0;
		sv_fabric.mrs.remote_ever += (access & REMOTE_RIGHTS) != 0;
	}
	sv_unlock();
	if (!err)
		return &mr->ibv;
	free(mr);
	errno = -err;
	return NULL;
}

SV_EXPORT struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

SV_EXPORT struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
					 uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

/* Waits for the peers that are still reading from the region. */
static void wait_pulls(struct sv_mr *mr)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PULL_WAIT_SEC;
	while (mr->pulls)
		if (pthread_cond_timedwait(&sv_fabric.pulled, &sv_fabric.lock, &until) == ETIMEDOUT)
			return;
}

SV_EXPORT int ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct sv_mr *mr = (struct sv_mr *)ibv;

	sv_lock();
	int err = -sv_fault_mr(SV_AT_DEREG_MR);
	if (err) {
		sv_unlock();
		return err;
	}
	mr->invalid = true; /* lets no new Reads start */
	wait_pulls(mr);
	sv_fabric.mrs.mr[ibv->lkey >> 8] = NULL;
	sv_fabric.mrs.used--;
	sv_fabric.mrs.remote -= (mr->access & REMOTE_RIGHTS) != 0;
	sv_pd_of(ibv->pd)->users--;
	sv_unlock();
	free(mr);
	return 0;
}

SV_EXPORT unsigned softverbs_sinks(struct softverbs_sink *out, unsigned max)
{
	const struct sv_sinks *s = &sv_fabric.sinks;
	unsigned n;

	sv_lock();
	n = s->count < SV_SINKS ? (unsigned)s->count : SV_SINKS;
	n = n < max ? n : max;
	for (unsigned i = 0; i < n; i++)
		out[i] = s->last[(s->count - 1 - i) % SV_SINKS];
	sv_unlock();
	return n;
}

void *sv_mr_map(const struct ibv_pd *pd, const struct sv_range *r, struct sv_mr **out)
{
	struct sv_mr *mr = mr_find(r->key);

	if (!mr || mr->invalid || mr->ibv.pd != pd || (mr->access & r->access) != r->access)
		return NULL;
	uint64_t from = r->addr - mr->iova;
	if (r->addr < mr->iova || from > mr->ibv.length || r->len > mr->ibv.length - from)
		return NULL;
	if (out)
		*out = mr;
	return (uint8_t *)mr->ibv.addr + from;
}

int sv_sge_map(const struct ibv_pd *pd, const struct sv_sge_part *part, unsigned access,
	       struct iovec *iov)
{
	const struct ibv_sge *sge = part->sge;
	uint32_t offset = part->offset, len = part->len;
	int n = 0;

	for (int i = 0; i < part->nsge && len; i++) {
		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		struct sv_range r = { sge[i].addr, sge[i].length, sge[i].lkey, access };
		uint8_t *p = sv_mr_map(pd, &r, NULL);
		if (!p)
			return -EFAULT;
		uint32_t bytes = sge[i].length - offset < len ? sge[i].length - offset : len;
		iov[n++] = (struct iovec){ p + offset, bytes };
		len -= bytes;
		offset = 0;
	}
	return len ? -EFAULT : n;
}

bool sv_mr_invalidate(const struct ibv_pd *pd, uint32_t rkey)
{
	struct sv_mr *mr = mr_find(rkey);

	if (!mr || mr->invalid || mr->ibv.pd != pd)
		return false;
	mr->invalid = true;
	return true;
}

void sv_mr_unpull(uint32_t rkey)
{
	struct sv_mr *mr = mr_find(rkey);

	if (mr && mr->pulls && --mr->pulls == 0)
		pthread_cond_broadcast(&sv_fabric.pulled);
}
