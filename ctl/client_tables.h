/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients for people. */
#ifndef RN_CTL_CLIENT_TABLES_H
#define RN_CTL_CLIENT_TABLES_H

#include <jansson.h>

/* Print rows of /v1/clients and /v1/nfs3_clients. Exit statuses. */
int client_table_nfs4(const json_t *rows);
int client_table_nfs3(const json_t *rows);
/* Prints the numbers by operation, and the connections, of a row that was asked for alone. */
void client_print_detail(const json_t *row);
/* Prints the sum of the NFSv3 clients that the server has forgotten, if there are any. */
void client_print_others(const json_t *others);

#endif
