#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
#
# A source tree is unpacked, built and removed over the mount.
. "$VMDIR/guest/lib.sh"
vm_up
mnt_test
D=/mnt/t/tree S=/export/$FS/tree
rm -rf $S
mkdir $D

# 150 files: 8 sources, each of which includes a folder of headers.
make_tree() {
	local m h top=/run/tree/src
	[ ! -e /run/tree.tar ] || return 0
	mkdir -p $top
	printf 'OBJ = m1.o m2.o m3.o m4.o m5.o m6.o m7.o main.o\nprog: $(OBJ)\n\t$(CC) -o $@ $(OBJ)\n' \
		>$top/Makefile
	printf '%%.o: %%.c\n\t$(CC) -O0 -Wall -c -o $@ $<\nclean:\n\trm -f prog *.o\n' >>$top/Makefile
	{
		for m in 1 2 3 4 5 6 7; do echo "int m$m(void);"; done
		echo '#include <stdio.h>'
		printf '%s\n' 'int main(void) { printf("%d\n", m1() + m2() + m3() + m4() + m5() + m6() + m7()); return 0; }'
	} >$top/main.c
	for m in 1 2 3 4 5 6 7; do
		mkdir $top/h$m
		for h in {1..20}; do
			echo "static inline int f_${m}_$h(void) { return $m * $h; }" >$top/h$m/h$h.h
			echo "#include \"h$m/h$h.h\"" >>$top/m$m.c
		done
		{
			echo "int m$m(void) { return 0"
			for h in {1..20}; do echo "+ f_${m}_$h()"; done
			echo '; }'
		} >>$top/m$m.c
	done
	tar -C /run/tree -cf /run/tree.tar src
	same "files in the tree" 149 "$(find $top -type f | wc -l)"
}
unpack() {
	make_tree
	tar -C $D -xf /run/tree.tar
	drop_caches
	diff -r /run/tree/src $D/src
}
build() {
	make -s -j2 -C $D/src
	same "what the program prints" 5880 "$($D/src/prog)"
	drop_caches
	same "the same, read anew" 5880 "$($D/src/prog)"
	make -s -C $D/src clean
	[ ! -e $S/src/prog ]
}
copy() {
	cp -a $D/src $D/copy
	drop_caches
	diff -r $S/src $D/copy
	same "times" "$(stat -c %y $S/src/main.c)" "$(stat -c %y $D/copy/main.c)"
}
remove() {
	rm -r $D/src $D/copy
	same "what is left" "" "$(ls -A $S)"
}

t_run "unpack a source tree" unpack
t_run "build it" build
t_run "copy it" copy
t_run "remove it" remove
t_run "no call was sent twice" assert_clean_stats /mnt/t
rm -rf $D
umnt_test
t_done
