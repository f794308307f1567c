/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/error.h"

#include <string.h>

const char *rn_error_text(int rc)
{
	switch (-rc) {
	case RN_EUNNAMED:
		return "the name service has not answered yet";
	case RN_EDELEG:
		return "a client has a delegation";
	case RN_EYIELDS:
		return "a client is about to lose what is in the way";
	case RN_EYIELDED:
		return "what was in the way is gone";
	case RN_ESOON:
		return "something is under way";
	case RN_ESILENT:
		return "its file system does not answer, or is not mounted yet";
	case RN_ELEASE:
		return "a local process has a lease";
	case RN_EGRACE:
		return "clients may reclaim what they had";
	case RN_EFULL:
		return "too many at a time";
	case RN_ELATER:
		return "the other side is busy";
	case RN_ENOTNOW:
		return "not now";
	case RN_EGONE:
		return "the client has gone";
	case RN_ECHANGED:
		return "it was replaced meanwhile";
	case RN_ESHARE:
		return "another client's open denies it";
	case RN_EDENIED:
		return "another lock is in the way";
	case RN_ELABEL:
		return "the security label is wrong";
	default:
		return strerror(-rc);
	}
}
