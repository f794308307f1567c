/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MESSAGE_ID of what people alert on, as systemd.journal-fields(7) has it. An id never changes its meaning. ringnfsd(8)
 * lists them; tests/man-pages compares.
 */
#ifndef RN_LIB_LOG_IDS_H
#define RN_LIB_LOG_IDS_H

/* The server serves its exports. */
#define RN_ID_READY "a4236c3b92544a31843c98a5b71f8ed9"
/* An export is not served, with the reason. */
#define RN_ID_EXPORT_FAILED "7eb1e7207e8247d2b746ea8a2445fe6b"
/* An export is served again, or from now on. */
#define RN_ID_EXPORT_SERVED "5a1ce97c223f4acc8bf918942cd9e73b"
/* A reload was refused; the old exports stay in force. */
#define RN_ID_RELOAD_REFUSED "d204517f89084bb090e0a820f61f3084"
/* Opens and locks were revoked, as their export is gone. */
#define RN_ID_STATE_REVOKED "d42bca1124b0459fa78ec049a355ecf3"
/* A host that no export admits. */
#define RN_ID_HOST_REFUSED "b628cbbd6f0b49d19ff8240a08d8450d"
/* A MNT, or the use of an export by NFSv4, was refused, with the reason and the line of the exports. */
#define RN_ID_MOUNT_REFUSED "d18505c8e6114f948aa9e21ac2c80391"
/* A MNT was granted (level info). */
#define RN_ID_MOUNT_GRANTED "6dc195f7566f4b9b82c29f7e3cfd4456"
/* A client of NFSv4 has registered (level info). */
#define RN_ID_CLIENT_REGISTERED "4c21a6a7e7c7465cb145058d40f1a29e"
/* A file system does not answer. */
#define RN_ID_FS_STUCK "9927f8b037e342dc99e48eb298d1e8f8"
/* A file system that did not answer does so again. */
#define RN_ID_FS_ANSWERS "cabc37d234154c52860c4fd41fda9033"
/* Written data did not reach the disk; clients are told to send them again. */
#define RN_ID_DATA_LOST "ec64246b5b6d440fa373d6001fae4e1f"
/* Records of NFSv4 clients cannot be written: clients may lose their locks at a restart. */
#define RN_ID_RECORDS_FAIL "cb99e6ad5a164c72b40492d59d00d979"
/* Records of NFSv4 clients can be written again. */
#define RN_ID_RECORDS_AGAIN "3847dca7bb0f4e999135bce4757a1d68"
/* A client did not return delegations in time. */
#define RN_ID_DELEGATIONS_REVOKED "c5dba7ce68c84d3581998ea596993a0c"
/* Two clients of NFSv4 have one name. */
#define RN_ID_CLIENT_CONFLICT "c87f8f9f78864cf8b466bcd6aa62501d"
/* A name service is slow. */
#define RN_ID_NAMES_SLOW "1f63c555bf874dbb8cf7d7430317f1a7"
/* An event thread does not turn. */
#define RN_ID_THREAD_STUCK "d2156e32341f4687b8663679fe1babb3"
/* An administrator has changed something, by the control socket. */
#define RN_ID_CHANGE "a408e48264db42f490616ff1e995bf54"

#endif
