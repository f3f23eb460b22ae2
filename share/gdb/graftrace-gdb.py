# SPDX-License-Identifier: MIT
"""Lets gdb walk through the calls of a program that graftrace traces:

    (gdb) source /usr/local/share/graftrace/graftrace-gdb.py

A traced function returns into its stub, and the address of its caller is kept in the mirror of the
stack. gdb finds no unwind data for stubs; this tells it what they look like. The stub of a function
(include/graftrace/agent.h), and where the return address of the caller is at each instruction,
S being the function's return slot:

    T+0   e8 ........       call  entry             at S = SP
    T+5   0f 82 ........    jc    body              at S = SP
    T+11  48 8d 64 24 08    lea   8(%rsp),%rsp      at S = SP
    T+16  e8 ........       call  body              at S = SP - 8
    T+21  68 ........       push  $number           at the mirror of S = SP - 8
    T+26  e9 ........       jmp   exit              at the mirror of S = SP
"""

import gdb
import gdb.frames
import gdb.unwinder

MIRROR = 1 << 46 | 0x8000
STUB_BYTES = 32

# Instruction's offset in the stub -> (slot less stack pointer, is the address in the mirror).
INSTRUCTIONS = {0: (0, False), 5: (0, False), 11: (0, False), 16: (-8, False), 21: (-8, True),
                26: (0, True)}

# What a call keeps, besides the stack pointer.
KEPT = ("rbx", "rbp", "r12", "r13", "r14", "r15")


def read(address, count):
    """Bytes of the program's memory, or None."""
    try:
        return bytes(gdb.selected_inferior().read_memory(address, count))
    except gdb.MemoryError:
        return None


def is_stub(text):
    return (text is not None and text[0] == 0xe8 and text[5:7] == b"\x0f\x82"
            and text[11:16] == b"\x48\x8d\x64\x24\x08" and text[16] == 0xe8 and text[21] == 0x68
            and text[22] & 1 and text[26] == 0xe9 and text[31] == 0xcc)


def stub_offset(pc):
    """Where in a stub pc is, or None if it is in none."""
    offset = pc % STUB_BYTES
    if offset in INSTRUCTIONS and is_stub(read(pc - offset, STUB_BYTES)):
        return offset
    return None


class FrameId:
    """What tells a frame from others."""

    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class StubUnwinder(gdb.unwinder.Unwinder):
    """From a stub to the caller of its function."""

    def __init__(self):
        super().__init__("graftrace")

    def __call__(self, pending_frame):
        if not pending_frame.architecture().name().startswith("i386:x86-64"):
            return None
        pc = int(pending_frame.read_register("rip")) & 0xffffffffffffffff
        offset = stub_offset(pc)
        if offset is None:
            return None
        sp = pending_frame.read_register("rsp")
        place, mirrored = INSTRUCTIONS[offset]
        slot = (int(sp) + place) & 0xffffffffffffffff
        caller = read(slot ^ MIRROR if mirrored else slot, 8)
        if caller is None:
            return None
        unwound = pending_frame.create_unwind_info(FrameId(gdb.Value(slot + 8), gdb.Value(pc)))
        unwound.add_saved_register("rip", gdb.Value(int.from_bytes(caller, "little")))
        unwound.add_saved_register("rsp", gdb.Value(slot + 8))
        for name in KEPT:
            unwound.add_saved_register(name, pending_frame.read_register(name))
        return unwound


class StubFilter:
    """Leaves the stubs' own frames out of a backtrace: they are no calls of the program."""

    def __init__(self):
        self.name = "graftrace"
        self.priority = 100
        self.enabled = True
        gdb.frame_filters[self.name] = self

    def filter(self, frames):
        return (frame for frame in frames
                if stub_offset(frame.inferior_frame().pc()) is None)


gdb.unwinder.register_unwinder(None, StubUnwinder(), replace=True)
StubFilter()
