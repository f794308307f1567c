/* SPDX-License-Identifier: BSD-2-Clause */
/* The image of NFSv4's state: nfs4_save() of nfs4/nfs4_server.h, and its counterpart for nfs4_server_new(). */
#ifndef RN_NFS4_NFS4_IMAGE_H
#define RN_NFS4_NFS4_IMAGE_H

#include "nfs4/nfs4_private.h"

/* Before the server's parts are made: the keys of its tables. 0; -EPROTO; -ENOENT: the image has no clients. */
int nfs4_image_begin(struct nfs4_server *srv, struct image_reader *image);
/* When all parts are there. 0; -EPROTO, -ENOMEM. */
int nfs4_image_load(struct nfs4_server *srv, struct image_reader *image);

#endif
