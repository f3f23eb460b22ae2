#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the kernel's table of functions as assembly: symbols.py KERNEL OUTPUT (no KERNEL: empty)."""

import re
import subprocess
import sys

# What gcc adds to the name of a static function where files are compiled as one.
LTO_ENDING = re.compile(r"\.lto_priv\.\d+")
KERNEL_BASE = 0xFFFFFFFF80000000


def functions(kernel):
    """(start, bytes, name) of each function, by address; one name for each address."""
    listed = subprocess.run(["nm", "-S", "--defined-only", kernel], check=True,
                            capture_output=True, text=True).stdout
    found = {}
    for line in listed.splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwW":
            start, size = int(words[0], 16), int(words[1], 16)
            if size and start >= KERNEL_BASE:
                # A global name rather than a local alias of it.
                if start not in found or words[2] == "T":
                    found[start] = (size, LTO_ENDING.sub("", words[3]))
    return [(start, *found[start]) for start in sorted(found)]


def main():
    table = functions(sys.argv[1]) if len(sys.argv) == 3 else []
    names = 0
    with open(sys.argv[-1], "w", encoding="utf-8") as out:
        out.write('\t.section .symbols, "aw", @progbits\n\t.p2align 3\n'
                  '\t.globl symbol_count, symbol_table, symbol_names\n'
                  f'symbol_count:\n\t.long {len(table)}\nsymbol_table:\n')
        for start, size, name in table:
            out.write(f'\t.long {start - KERNEL_BASE:#x}, {size}, {names}\n')
            names += len(name) + 1
        out.write('symbol_names:\n')
        for _, _, name in table:
            out.write(f'\t.asciz "{name}"\n')
        out.write('\t.section .note.GNU-stack, "", @progbits\n')


if __name__ == "__main__":
    main()
