/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hosts that another lock manager of this machine, the kernel's client, has monitored (SM_MON): servers that
 * it has locks of. When such a host restarts, that lock manager is told. When this machine has restarted, the
 * host is told, and then forgotten.
 *
 * Callers of these procedures are on this machine (nsm/serve.c). A host is named by its address, as Linux does:
 * no name is looked up. The lock manager is called on this machine.
 */
#ifndef RN_NSM_MONITOR_H
#define RN_NSM_MONITOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "nsm/nsm_records.h"
#include "rpc/address.h"
#include "rpc/xdr_in.h"

#define NSM_MONITORS_MAX 256u
#define NSM_MON_NAME_MAX 64u /* bytes of an address as text */
#define NSM_MY_NAME_MAX 255u
#define NSM_PRIV_BYTES 16u
#define NSM_BOOT_BYTES 36u /* of the kernel's boot id */

struct nsm;

/* The lock manager's name for this machine, and its procedure. */
struct nsm_my_id {
	uint8_t name[NSM_MY_NAME_MAX];
	uint32_t name_len;
	uint32_t prog, vers, proc;
};

/* Under nsm.lock. */
struct nsm_monitor {
	LIST_ENTRY(nsm_monitor) link;
	uint64_t serial;     /* unique */
	uint64_t generation; /* of the table, when it was added */
	struct rpc_address addr;
	uint8_t name[NSM_MON_NAME_MAX];
	uint32_t name_len;
	struct nsm_my_id my;
	uint8_t priv[NSM_PRIV_BYTES];
	uint32_t state; /* that the host has told of last, or 0 */
	bool former;	/* the host is to be told of a restart, and to be forgotten */
	bool due; /* somebody is to be called: the host if it is former, else the lock manager */
	bool calling;
	unsigned tries;
	uint64_t due_ns;
};
LIST_HEAD(nsm_monitor_list, nsm_monitor);

/* Decoders. False: garbage. */
bool nsm_get_mon_id(struct xdr_in *x, struct nsm_monitor *out); /* name and my */
bool nsm_get_my_id(struct xdr_in *x, struct nsm_my_id *out);

/* True if the name is an address, which is then set. */
bool nsm_name_address(const uint8_t *name, uint32_t len, struct rpc_address *out);

/* Adds a monitor with the members that SM_MON gives. 0; -RN_ESOON: the record is being written, call again;
 * -EINVAL: the name is no address; -ENOSPC; -ENOMEM. */
int nsm_monitor_add(struct nsm *n, const struct nsm_monitor *m);
/* Forgets those of that lock manager; name NULL: all hosts. */
void nsm_monitor_remove(struct nsm *n, const struct nsm_my_id *my, const uint8_t *name,
			uint32_t len);
/* Acts as if the machine had restarted. */
void nsm_monitor_crash(struct nsm *n);
/* The host has restarted. Returns the number of monitors of it. */
unsigned nsm_monitor_rebooted(struct nsm *n, const struct rpc_address *addr, uint32_t state);
/* Calls those that are due, on the messenger's thread. Returns the time of the next look, ns. */
uint64_t nsm_monitors_tick(struct nsm *n, uint64_t now);

/* The record file, state_dir/nsm-monitors. Reading sets `former` of all if the machine has
 * restarted since. */
void nsm_monitors_put(const struct nsm_monitor_list *list, struct nsm_text *t);
int nsm_monitors_read(const char *data, size_t len, struct nsm_monitor_list *out);
void nsm_monitors_free(struct nsm_monitor_list *list);

#endif
