#!/bin/sh
# make and a C compiler: builds a second of 16 files with two jobs.
set -eu
src=$1/compile
if [ ! -d "$src" ]; then
    mkdir "$src"
    awk 'BEGIN {
        print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>"
        for (i = 0; i < 60; i++)
            printf "int f%d(int a, int b) { for (int i = 0; i < a; i++) b = b * %d + (b >> 3 ^ i); return printf(\"%%d\", b); }\n", i, i
    }' >"$src/part.c"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do cp "$src/part.c" "$src/part$i.c"; done
    rm "$src/part.c"
    printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\n%%.o: %%.c\n\tcc -O1 -c $< -o $@\n' >"$src/Makefile"
fi
rm -f "$src"/*.o
from=$(date +%s%N)
make -s -j2 -C "$src"
to=$(date +%s%N)
echo "$from $to" | awk '{ printf "figure rate %.6f\n", 1e9 / ($2 - $1) }'
