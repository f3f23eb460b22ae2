# SPDX-License-Identifier: MIT
"""Unwind data that is written by hand in the recording path's assembly says at each instruction what
the instructions before it have done to the stack, on every path, also where no test comes by."""

import re
import subprocess

import tree

AGENT = tree.BUILD / "port/program/agent.elf"
BY_HAND = (("gt_hot_start", "gt_hot_end"), ("gt_glue_entry", "gt_arch_clock"),
           ("gt_trap_entry", "gt_trap_restorer"))
ENDS = ("ret", "jmp", "int3", "hlt")


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def rules():
    """Address -> (bytes from the stack pointer to the CFA, or None if that is found otherwise; where the
    return address is), of each row; and where the entries end."""
    rows, ends = {}, []
    text = output("readelf", "--debug-dump=frames-interp", AGENT)
    for entry in re.split(r"\n\n(?=\w+ \w+ \w+ (?:FDE|CIE))", text):
        head = re.search(r"FDE cie=\w+ pc=(\w+)\.\.(\w+)", entry)
        if not head:
            continue
        ends.append(int(head[2], 16))
        found = re.findall(r"^(\w{16}) (\S+) .*?(\S+) *$", entry, re.M)
        for address, cfa, back in found or [(head[1], "rsp+8", "c-8")]:
            depth = re.fullmatch(r"rsp\+(\d+)", cfa)
            rows[int(address, 16)] = (int(depth[1]) if depth else None, back)
    return rows, ends


def instructions():
    """(address, name, operands) of what is in assembly, in order."""
    symbols = {line.split()[2]: int(line.split()[0], 16)
               for line in output("nm", AGENT).splitlines()}
    ranges = [(symbols[first], symbols[end]) for first, end in BY_HAND]
    found = []
    for line in output("objdump", "-d", "--no-show-raw-insn", AGENT).splitlines():
        at = re.match(r" *(\w+):\t(\S+) *(.*?) *$", line.split("#")[0])
        if at and any(first <= int(at[1], 16) < end for first, end in ranges):
            found.append((int(at[1], 16), at[2], at[3]))
    return found


def after(name, operands, depth):
    """What an instruction makes of the depth."""
    if name in ("push", "pushf"):
        return depth + 8
    if name in ("pop", "popf"):
        return depth - 8
    if (name, operands) == ("lea", "0x8(%rsp),%rsp"):
        return depth - 8
    if (name, operands) == ("lea", "0x10(%rsp),%rsp"):
        # A hook whose function is done: two words less, and a return address is on top again.
        return depth
    assert not operands.endswith("%rsp") or name in ("cmp", "test"), f"{name} {operands}"
    return depth


def test_unwind_data_of_the_assembly_follows_the_stack_on_every_path():
    rows, ends = rules()
    found = instructions()
    assert len(found) > 600
    state, at_each = (None, ""), {}
    for address, name, operands in found:
        state = rows.get(address, state)
        at_each[address] = (state, name, operands)
    assert max(at_each) < max(ends)
    addresses = list(at_each)
    checked = 0
    for index, address in enumerate(addresses):
        (depth, back), name, operands = at_each[address]
        # Padding, which nobody reaches; and where the CFA is found by rbp.
        if name.startswith(("nop", "cs", "data16", "xchg")) or depth is None:
            continue
        where = f"{address:x}: {name} {operands}"
        if name == "ret":
            # The return address is what is left.
            assert depth == 8, where
        then = after(name, operands, depth) if name not in ("and", "mov") else depth
        to = re.match(r"(\w+) <", operands) if name.startswith("j") else None
        if to and int(to[1], 16) in at_each:
            (there, back_there), *_ = at_each[int(to[1], 16)]
            assert (there, back_there) == (depth, back), f"{where}: there it is {there}, {back_there}"
        if name.startswith(ENDS) or index + 1 == len(addresses):
            continue
        (there, back_there), *_ = at_each[addresses[index + 1]]
        if there is not None:
            assert (there, back_there) == (then, back), f"{where}: then it is {there}, {back_there}"
            checked += 1
    assert checked > 400
