#!/bin/sh
# SPDX-License-Identifier: MIT
#
# names.sh [KERNEL]: the table of a kernel's functions as C, in the order of their addresses.
echo 'struct name { unsigned long address; const char *name; };'
echo 'extern const struct name names[]; extern const unsigned name_count;'
echo '#define LAST __attribute__((section(".names")))'
echo 'const struct name names[] LAST = {'
[ $# -eq 0 ] || nm -n --defined-only "$1" | awk '$2 ~ /[tT]/ { printf "\t{ 0x%s, \"%s\" },\n", $1, $3 }'
echo '	{ ~0ul, "" } };'
echo 'const unsigned name_count LAST = sizeof(names) / sizeof(names[0]) - 1;'
