/* SPDX-License-Identifier: BSD-2-Clause */
/* The file has a head, and the image encrypted by XChaCha20-Poly1305, which authenticates the head, too. */
#include "daemon/cluster_state.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/saved_file.h"
#include "lib/util.h"

#define STATE_VERSION 1u
#define STATE_HEAD (8u + 4u + 4u + 8u + NONCE)
#define NONCE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG crypto_aead_xchacha20poly1305_ietf_ABYTES
#define AD_MAX (STATE_HEAD + 256u)
#define STATE_MOST (1ull << 30) /* bytes of an image; far above what clients' memory may take */

static const uint8_t state_magic[8] = { 'r', 'i', 'n', 'g', 'n', 'f', 's', 'M' };

/* Additional data of the encryption: the file's head and the member's name, so that the file of another run or member is refused. */
struct state_ad {
	uint8_t bytes[AD_MAX];
	size_t len;
};

static void state_key(const struct cluster_state_of *of,
		      uint8_t key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES])
{
	static const char purpose[] = "ringnfs cluster: state of a member that is moved";

	crypto_generichash(key, crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
			   (const uint8_t *)purpose, sizeof(purpose), of->secret,
			   sizeof(of->secret));
}

static void state_ad_fill(struct state_ad *ad, const uint8_t head[STATE_HEAD], const char *member)
{
	const size_t len = strnlen(member, AD_MAX - STATE_HEAD);

	memcpy(ad->bytes, head, STATE_HEAD);
	memcpy(ad->bytes + STATE_HEAD, member, len);
	ad->len = STATE_HEAD + len;
}

static void state_head_fill(const struct cluster_state_of *of, uint8_t head[STATE_HEAD])
{
	memcpy(head, state_magic, sizeof(state_magic));
	rn_put32(head + 8, STATE_VERSION);
	rn_put32(head + 12, 0);
	rn_put64(head + 16, of->incarnation);
	randombytes_buf(head + 24, NONCE);
}

/* Encrypts the image into *out, which is the caller's to free. 0 or -errno. */
static int state_encrypt(const struct cluster_state_of *of, int fd, uint8_t **out, size_t *len)
{
	uint8_t key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES];
	unsigned long long n = 0;
	struct state_ad ad;
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0 || (uint64_t)st.st_size > STATE_MOST)
		return -EFBIG;
	const size_t size = (size_t)st.st_size;
	uint8_t *image = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	if (image == MAP_FAILED)
		return -errno;
	*out = malloc(STATE_HEAD + size + TAG);
	if (*out) {
		state_head_fill(of, *out);
		state_ad_fill(&ad, *out, of->member);
		state_key(of, key);
		crypto_aead_xchacha20poly1305_ietf_encrypt(*out + STATE_HEAD, &n, image, size,
							   ad.bytes, ad.len, NULL, *out + 24, key);
		sodium_memzero(key, sizeof(key));
		*len = STATE_HEAD + (size_t)n;
	}
	munmap(image, size);
	return *out ? 0 : -ENOMEM;
}

int cluster_state_write(const struct cluster_state_of *of, int fd)
{
	const int dirfd = open(of->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint8_t *bytes = NULL;
	size_t len = 0;
	int rc;

	if (dirfd < 0)
		return -errno;
	rc = state_encrypt(of, fd, &bytes, &len);
	if (!rc)
		rc = rn_file_replace(dirfd, CLUSTER_STATE_NAME, bytes, len);
	/* No state is better than one that a crash may take back, or than that of an earlier run. */
	if (rc)
		(void)unlinkat(dirfd, CLUSTER_STATE_NAME, 0);
	free(bytes);
	close(dirfd);
	return rc;
}

/* ---- the next run ---- */

static int state_read_all(int fd, uint8_t *bytes, size_t len)
{
	while (len > 0) {
		const ssize_t n = read(fd, bytes, len);

		if (n == 0)
			return -EBADMSG;
		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Reads the whole file, whose name is removed already. The caller frees *out. */
static int state_read_file(int fd, uint8_t **out, size_t *len)
{
	struct stat st;
	int rc;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077))
		return -EPERM;
	if (st.st_size < (off_t)(STATE_HEAD + TAG) ||
	    (uint64_t)st.st_size > STATE_HEAD + TAG + STATE_MOST)
		return -EBADMSG;
	*len = (size_t)st.st_size;
	*out = malloc(*len);
	if (!*out)
		return -ENOMEM;
	rc = state_read_all(fd, *out, *len);
	if (rc) {
		free(*out);
		*out = NULL;
	}
	return rc;
}

/* Makes a file in memory for the image, as image_read() takes it: its descriptor and mapping, or -errno. */
static int state_memory_file(size_t len, uint8_t **map)
{
	const int fd = memfd_create("ringnfs-moved", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, (off_t)len) < 0)
		rc = -errno;
	*map = rc ? MAP_FAILED : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!rc && *map == MAP_FAILED)
		rc = -errno;
	if (rc)
		close(fd);
	return rc ? rc : fd;
}

static int state_decrypt(const struct cluster_state_of *of, const uint8_t *bytes, size_t len,
			 int *image)
{
	uint8_t key[crypto_aead_xchacha20poly1305_ietf_KEYBYTES], *map = NULL;
	const size_t size = len - STATE_HEAD - TAG;
	struct state_ad ad;
	int fd, rc;

	if (memcmp(bytes, state_magic, sizeof(state_magic)) != 0 ||
	    rn_get32(bytes + 8) != STATE_VERSION || size == 0)
		return -EBADMSG;
	if (rn_get64(bytes + 16) != of->incarnation)
		return -ESTALE;
	fd = state_memory_file(size, &map);
	if (fd < 0)
		return fd;
	state_ad_fill(&ad, bytes, of->member);
	state_key(of, key);
	rc = crypto_aead_xchacha20poly1305_ietf_decrypt(map, NULL, NULL, bytes + STATE_HEAD,
							len - STATE_HEAD, ad.bytes, ad.len,
							bytes + 24, key) == 0
		     ? 0
		     : -EBADMSG;
	sodium_memzero(key, sizeof(key));
	munmap(map, size);
	if (!rc &&
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		rc = -errno;
	if (rc)
		close(fd);
	else
		*image = fd;
	return rc;
}

/* Opens the file and removes its name, on disk, too: a descriptor, or -errno. */
static int state_take_file(const char *dir)
{
	const int dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd, rc = 0;

	if (dirfd < 0)
		return -errno;
	/* A run that died while it wrote has left this. */
	(void)unlinkat(dirfd, CLUSTER_STATE_NAME RN_FILE_NEW, 0);
	fd = openat(dirfd, CLUSTER_STATE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		rc = -errno;
	if (rc != -ENOENT && (unlinkat(dirfd, CLUSTER_STATE_NAME, 0) < 0 || fsync(dirfd) < 0))
		rc = -errno;
	if (rc && fd >= 0)
		close(fd);
	close(dirfd);
	return rc ? rc : fd;
}

int cluster_state_take(const struct cluster_state_of *of, struct image_reader **out,
		       enum image_fault *fault)
{
	const int fd = state_take_file(of->dir);
	uint8_t *bytes = NULL;
	size_t len = 0;
	int image, rc;

	if (fd < 0)
		return fd;
	rc = state_read_file(fd, &bytes, &len);
	close(fd);
	if (!rc)
		rc = state_decrypt(of, bytes, len, &image);
	free(bytes);
	if (rc)
		return rc;
	const int bad = image_read(image, out);

	if (bad)
		*fault = (enum image_fault)bad;
	return bad ? -EPROTO : 0;
}
