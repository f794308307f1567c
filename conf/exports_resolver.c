/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#include "conf/exports_addr.h"
#include "conf/exports_match.h"
#include "lib/clock.h"
#include "lib/error.h"

/* libc walks one netgroup at a time in a process; the lock protects that state of libc, so it
 * belongs to no resolver. */
static pthread_mutex_t netgroups_lock = PTHREAD_MUTEX_INITIALIZER;

static int eai_errno(int eai)
{
	switch (eai) {
	case 0:
		return 0;
	case EAI_NONAME:
	case EAI_NODATA:
	case EAI_ADDRFAMILY:
		return -ENOENT;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -RN_ELATER;
	default:
		return -EIO;
	}
}

static int system_reverse(void *arg, const struct exp_addr *addr, char name[EXP_NAME_MAX])
{
	struct sockaddr_storage sa;

	(void)arg;
	exp_addr_to_sockaddr(addr, &sa);
	return eai_errno(getnameinfo((struct sockaddr *)&sa, sizeof(sa), name, EXP_NAME_MAX, NULL,
				     0, NI_NAMEREQD));
}

static int system_forward(void *arg, const char *name, struct exp_addr *addrs, unsigned max)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	unsigned n = 0;
	int rc = eai_errno(getaddrinfo(name, NULL, &hints, &list));

	(void)arg;
	if (rc)
		return rc;
	for (struct addrinfo *ai = list; ai && n < max; ai = ai->ai_next)
		if (exp_addr_from_sockaddr(ai->ai_addr, &addrs[n]))
			n++;
	freeaddrinfo(list);
	return (int)n;
}

/*
 * The group is walked, as innetgr(3) would take an entry with an empty host for every machine;
 * exports(5) says that such entries are ignored.
 */
static int system_in_netgroup(void *arg, const char *group, const char *const *names, unsigned n)
{
	char *host, *user, *domain;
	char buf[1024];
	int found = 0;

	(void)arg;
	pthread_mutex_lock(&netgroups_lock);
	setnetgrent(group);
	while (!found && getnetgrent_r(&host, &user, &domain, buf, sizeof(buf)) == 1) {
		if (!host || !*host || !strcmp(host, "-"))
			continue;
		for (unsigned i = 0; i < n && !found; i++)
			found = !strcasecmp(host, names[i]);
	}
	endnetgrent();
	pthread_mutex_unlock(&netgroups_lock);
	return found;
}

static int system_has_netgroup(void *arg, const char *group)
{
	char *host, *user, *domain;
	char buf[1024];

	(void)arg;
	pthread_mutex_lock(&netgroups_lock);
	setnetgrent(group);
	int found = getnetgrent_r(&host, &user, &domain, buf, sizeof(buf)) == 1;

	endnetgrent();
	pthread_mutex_unlock(&netgroups_lock);
	return found;
}

static uint64_t system_now(void *arg)
{
	(void)arg;
	return rn_now_ms();
}

void exp_resolver_system(struct exp_resolver *resolver)
{
	*resolver = (struct exp_resolver){
		.reverse = system_reverse,
		.forward = system_forward,
		.in_netgroup = system_in_netgroup,
		.has_netgroup = system_has_netgroup,
		.now = system_now,
	};
}
