/* SPDX-License-Identifier: BSD-2-Clause */
/* The running daemon with all its threads, and clients that misbehave: see tests/fuzz/README.md and
 * session/step.h. Needs root and namespaces; without them inputs are ignored. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/util.h"
#include "tests/fuzz/session/mutate.h"
#include "tests/fuzz/session/run.h"
#include "tests/fuzz/session/step.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size,
				 unsigned int seed);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/*
 * libFuzzer's leak check after each input would report memory that the server keeps between calls,
 * so it is off. The driver checks for leaks after it has stopped the server. The driver also
 * reports a server that makes no progress for 90 s.
 */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char more[][24] = { "-detect_leaks=0", "-timeout=300", "-max_len=16384",
				   "-handle_xfsz=0" };
	char **args = calloc((size_t)*argc + rn_array_size(more) + 1, sizeof(*args));
	const char *why = ss_start();

	if (why)
		fprintf(stderr, "skip: inputs are ignored: %s\n", why);
	else
		atexit(ss_stop);
	if (!args)
		return 0;
	for (int i = 0; i < *argc; i++)
		args[i] = (*argv)[i];
	for (size_t i = 0; i < rn_array_size(more); i++)
		args[(*argc)++] = more[i];
	*argv = args;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!ss_start())
		ss_run(data, size);
	return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	return ss_mutate(data, size, max_size, seed, LLVMFuzzerMutate);
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t *data1, size_t size1, const uint8_t *data2,
				 size_t size2, uint8_t *out, size_t max_out_size, unsigned int seed)
{
	return ss_cross(data1, size1, data2, size2, out, max_out_size, seed);
}
