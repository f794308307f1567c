/* SPDX-License-Identifier: BSD-2-Clause */
/* Set-up and checks that the groups about Kerberos share. Files are made under AUTH_SYS: set-up must not depend on what is tested. */
#ifndef RN_CONFORM_GSS_CHECK_H
#define RN_CONFORM_GSS_CHECK_H

#include "tools/conform/conform_gss.h"
#include "tools/conform/nfs3.h"

#define CF_GSS_NAME "gss"

/* A file of size bytes of the pattern that everybody may read and write: the principal need not be the user of the set-up. */
bool cf_gss_file(struct cf_test *t, uint32_t size, struct cf_fh *fh);

/* A protected WRITE of len bytes of the pattern from byte `from` on, to the start of the file. */
struct cf_call *cf_gss_write(struct cf_test *t, const struct cf_fh *fh, uint32_t from, uint32_t len,
			     enum cf_service s);
struct cf_call *cf_gss_read(struct cf_test *t, const struct cf_fh *fh, uint32_t count,
			    enum cf_service s);
struct cf_call *cf_gss_getattr(struct cf_test *t, enum cf_service s);
/* r's data are the first bytes of the file, as many as asked for. */
bool cf_gss_read_is(struct cf_test *t, struct cf_reply *r, uint32_t count);
bool cf_gss_file_is(struct cf_test *t, const struct cf_fh *fh, uint32_t from, uint32_t len);

/* Takes len bytes and their pad out of the stream, and offers them as a Read chunk of that position. */
bool cf_gss_cut(struct cf_test *t, struct cf_call *c, uint32_t at, uint32_t len);

/* Sends c, which must be denied with this auth_stat, and the connection must go on. */
bool cf_gss_denied(struct cf_test *t, struct cf_call *c, uint32_t stat);
/* A GETATTR under the context works. */
bool cf_gss_works(struct cf_test *t, enum cf_service s);

/* A connection wide enough for as many calls as the server lets be under way. */
bool cf_gss_open_wide(struct cf_test *t);

#endif
