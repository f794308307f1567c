/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_GSS_MECH_PRIVATE_H
#define RN_GSS_MECH_PRIVATE_H

#include <gssapi/gssapi.h>

#include "gss/mech.h"

struct gss_mech_ctx {
	gss_ctx_id_t id;
	size_t mic_len; /* of the last MIC that was made; 0: none was */
	bool numbered;	/* the client looks at its tokens' numbers */
};

#endif
