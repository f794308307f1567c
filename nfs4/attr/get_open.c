/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attribute open_arguments (RFC 9754): what nfs4/open/ accepts in OPEN's arguments. A test sends
 * an OPEN with each of them (tests/unit/test_nfs4_open_arguments.c).
 */
#include "nfs4/attr/get.h"

#define BIT(n) (1u << (n))

#define SHARE_ACCESS                                                                               \
	(BIT(OPEN_ARGS_SHARE_ACCESS_READ) | BIT(OPEN_ARGS_SHARE_ACCESS_WRITE) |                    \
	 BIT(OPEN_ARGS_SHARE_ACCESS_BOTH))
#define SHARE_DENY                                                                                 \
	(BIT(OPEN_ARGS_SHARE_DENY_NONE) | BIT(OPEN_ARGS_SHARE_DENY_READ) |                         \
	 BIT(OPEN_ARGS_SHARE_DENY_WRITE) | BIT(OPEN_ARGS_SHARE_DENY_BOTH))
/* Wants for later are accepted, as RFC 8881 requires, but no client is told later. */
#define WANTS                                                                                      \
	(BIT(OPEN_ARGS_SHARE_ACCESS_WANT_ANY_DELEG) | BIT(OPEN_ARGS_SHARE_ACCESS_WANT_NO_DELEG) |  \
	 BIT(OPEN_ARGS_SHARE_ACCESS_WANT_CANCEL) |                                                 \
	 BIT(OPEN_ARGS_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION))
#define CLAIMS                                                                                     \
	(BIT(OPEN_ARGS_OPEN_CLAIM_NULL) | BIT(OPEN_ARGS_OPEN_CLAIM_PREVIOUS) |                     \
	 BIT(OPEN_ARGS_OPEN_CLAIM_DELEGATE_CUR) | BIT(OPEN_ARGS_OPEN_CLAIM_FH) |                   \
	 BIT(OPEN_ARGS_OPEN_CLAIM_DELEG_CUR_FH))
#define CREATE_MODES                                                                               \
	(BIT(OPEN_ARGS_CREATEMODE_UNCHECKED4) | BIT(OPEN_ARGS_CREATE_MODE_GUARDED) |               \
	 BIT(OPEN_ARGS_CREATEMODE_EXCLUSIVE4) | BIT(OPEN_ARGS_CREATE_MODE_EXCLUSIVE4_1))

NFS4_ATTR_GETTER(open_arguments)
{
	static const uint32_t bitmaps[NFS4_OPEN_ARGUMENTS] = { SHARE_ACCESS, SHARE_DENY, WANTS,
							       CLAIMS, CREATE_MODES };

	(void)src;
	for (unsigned i = 0; i < NFS4_OPEN_ARGUMENTS; i++) {
		xdr_put_u32(x, 1); /* words */
		xdr_put_u32(x, bitmaps[i]);
	}
}
