/* SPDX-License-Identifier: BSD-2-Clause */
/* ringnfsctl clients */
#include <stdio.h>
#include <string.h>

#include "ctl/client_tables.h"
#include "ctl/ctl.h"
#include "ctl/pages.h"
#include "ctl/put_json.h"

/* Clients of both kinds. */
struct clients {
	json_t *nfs4, *nfs3; /* rows */
	json_t *last;	     /* of the pages of nfs3: it has those that the server has forgotten */
};

/* The id of an NFSv4 client is a number. */
static bool clients_is_address(const char *what)
{
	return strpbrk(what, ".:") != NULL;
}

/* what: an id, an address, or NULL for all. */
static int clients_get(const struct ctl *ctl, const char *what, struct clients *out)
{
	const bool address = what && clients_is_address(what);
	const struct pages_query nfs4 = {
		.path = "/v1/clients",
		.list = "clients",
		.name = "id",
		.value = what,
	};
	const struct pages_query nfs3 = {
		.path = "/v1/nfs3_clients",
		.list = "nfs3_clients",
		.name = "address",
		.value = what,
		.last = &out->last,
	};
	int status = CTL_DONE;

	if (!address)
		status = pages_get(ctl, &nfs4, &out->nfs4);
	if (status == CTL_DONE && (address || !what))
		status = pages_get(ctl, &nfs3, &out->nfs3);
	return status;
}

static int clients_print_json(const struct clients *c)
{
	json_t *all = json_object();
	const json_t *others = json_object_get(c->last, "others");

	if (c->nfs4)
		json_object_set(all, "clients", c->nfs4);
	if (c->nfs3)
		json_object_set(all, "nfs3_clients", c->nfs3);
	if (others)
		json_object_set(all, "others", (json_t *)others);
	const int rc = put_json(all, JSON_INDENT(2));

	json_decref(all);
	putchar('\n');
	return rc ? pages_no_memory() : CTL_DONE;
}

static int clients_print(const struct clients *c, bool detail)
{
	int status = CTL_DONE;

	if (c->nfs4)
		status = client_table_nfs4(c->nfs4);
	if (status == CTL_DONE && json_array_size(c->nfs4) > 0 && json_array_size(c->nfs3) > 0)
		putchar('\n');
	if (status == CTL_DONE && c->nfs3)
		status = client_table_nfs3(c->nfs3);
	if (status == CTL_DONE && detail)
		client_print_detail(json_array_get(c->nfs4 ? c->nfs4 : c->nfs3, 0));
	else if (status == CTL_DONE)
		client_print_others(json_object_get(c->last, "others"));
	return status;
}

int ctl_clients(const struct ctl *ctl, int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : NULL;
	struct clients c = { .nfs4 = NULL };

	if (argc > 2) {
		fprintf(stderr,
			"ringnfsctl: clients takes an id or an address at most, and not '%s'\n",
			argv[2]);
		return CTL_USAGE;
	}
	int status = clients_get(ctl, what, &c);

	if (status == CTL_DONE && what && json_array_size(c.nfs4 ? c.nfs4 : c.nfs3) == 0) {
		fprintf(stderr, "ringnfsctl: there is no client %s\n", what);
		status = CTL_REFUSED;
	}
	if (status == CTL_DONE)
		status = ctl->json ? clients_print_json(&c) : clients_print(&c, what != NULL);
	json_decref(c.nfs4);
	json_decref(c.nfs3);
	json_decref(c.last);
	return status;
}
