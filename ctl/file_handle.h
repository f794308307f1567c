/* SPDX-License-Identifier: BSD-2-Clause */
/* A file by its handle, by which the server knows it whether it has it open or not. */
#ifndef RN_CTL_FILE_HANDLE_H
#define RN_CTL_FILE_HANDLE_H

#define FILE_HANDLE_MAX 128 /* bytes, as of the kernel */

struct file_handle_text {
	char handle[2 * (4 + FILE_HANDLE_MAX) + 1]; /* as the server shows it */
	char device[32];			    /* MAJOR:MINOR */
};

/* Looks the path up, with the rights of the caller; symbolic links are followed. 0; -ETIMEDOUT: its file system does
 * not answer; or another -errno. */
int file_handle_of(const char *path, struct file_handle_text *out);

#endif
