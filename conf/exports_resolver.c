/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conf/exports_addr.h"
#include "conf/exports_match.h"

struct system_resolver {
	pthread_mutex_t netgroups; /* libc walks one netgroup at a time */
};

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
		return -EAGAIN;
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
	int err = eai_errno(getaddrinfo(name, NULL, &hints, &list));

	(void)arg;
	if (err)
		return err;
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
	struct system_resolver *sys = arg;
	char *host, *user, *domain;
	char buf[1024];
	int found = 0;

	pthread_mutex_lock(&sys->netgroups);
	setnetgrent(group);
	while (!found && getnetgrent_r(&host, &user, &domain, buf, sizeof(buf)) == 1) {
		if (!host || !*host || !strcmp(host, "-"))
			continue;
		for (unsigned i = 0; i < n && !found; i++)
			found = !strcasecmp(host, names[i]);
	}
	endnetgrent();
	pthread_mutex_unlock(&sys->netgroups);
	return found;
}

static uint64_t system_now(void *arg)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int exp_resolver_system(struct exp_resolver *resolver)
{
	struct system_resolver *sys = calloc(1, sizeof(*sys));

	if (!sys)
		return -ENOMEM;
	pthread_mutex_init(&sys->netgroups, NULL);
	*resolver = (struct exp_resolver){
		.reverse = system_reverse,
		.forward = system_forward,
		.in_netgroup = system_in_netgroup,
		.now = system_now,
		.arg = sys,
	};
	return 0;
}

void exp_resolver_free(struct exp_resolver *resolver)
{
	struct system_resolver *sys = resolver->arg;

	if (!sys)
		return;
	pthread_mutex_destroy(&sys->netgroups);
	free(sys);
	memset(resolver, 0, sizeof(*resolver));
}
