#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# compile.sh DIR LOG: makes a program of four files in DIR again and again, each time with another answer, and runs it. The number of times is in
# LOG. Ends with an error as soon as a step or an answer is wrong.
set -eE
trap 'echo "${0##*/}: line $LINENO: failed: $BASH_COMMAND" >&2' ERR
cd "$1"
cat >main.c <<'C'
#include <stdio.h>
int f1(void);
int f2(void);
int f3(void);
int main(void)
{
	return printf("%d\n", f1() + f2() + f3()) < 0;
}
C
printf 'prog: main.o f1.o f2.o f3.o\n\tcc -o $@ $^\n' >Makefile
for ((n = 1; ; n++)); do
	for i in 1 2 3; do echo "int f$i(void) { return $((n * i)); }" >f$i.c; done
	make -s -B prog
	[ "$(./prog)" = $((n * 6)) ]
	echo $n >"$2"
done
