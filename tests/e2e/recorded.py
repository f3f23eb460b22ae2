# SPDX-License-Identifier: MIT
"""Reads the calls of a recording by the rules of include/graftrace/record.h, and by nothing else of
the project: who called what, at which depth, and whether the records fit together."""

import collections
import heapq
import itertools
import re

import format_reader

RETURN = 1 << 32
SPECIAL = 0x7fffff00
CLOCK, UNWOUND, CONTEXT, CPU, PAD, EVENT, LOST, RESUMED = range(1, 9)
LONG_RETURN, ENTRY_ONLY, MARKER, SWITCH, LONG_CALL = range(1, 6)

RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")


def short_name(name):
    """A function's own name: no parameters, no namespace, no symbol versions."""
    name = RUST_HASH.sub("", name)
    name = name.replace("(anonymous namespace)", "anonymous")
    name = name.split("(")[0].split(" [")[0].split("@")[0]
    name = re.sub(r"\.(isra|part|constprop|lto_priv)\.\d+$", "", name)
    return name.split("::")[-1]


# What a writer's words come down to.
OPENED, ENTERED, RETURNED, LONG_RETURNED, ENTERED_ONLY, SWITCHED, TAKEN_OFF, LEFT = range(8)


class Context:
    """One call stack: the numbers of the functions that are open; None is one not known, from
    before a fork for example."""

    __slots__ = ("stack", "counted", "known")

    def __init__(self, header, others):
        self.stack = []
        self.counted = [0]  # of stack[:i], how many are of counted functions
        self.known = header is not None and header.depth == len(header.open)
        if header is not None:
            self.know(header.depth)
            for depth, (_, number, _) in enumerate(header.open, header.depth - len(header.open)):
                self.stack[depth] = number
            for depth, number in enumerate(self.stack):
                self.counted[depth + 1] = self.counted[depth] + (number not in others)

    def push(self, number, counted):
        self.stack.append(number)
        self.counted.append(self.counted[-1] + counted)

    def know(self, depth):
        """So many calls are open; those not known are taken for counted ones."""
        while depth > len(self.stack):
            self.push(None, True)
        del self.stack[depth:]
        del self.counted[depth + 1:]


class Recorded:
    """All calls of a recording.

    counted     Counter (pid, name) -> calls, of the functions that the program counts
    depths      (pid, name) -> Counter depth -> calls; the depth among counted functions
    names       Counter name -> calls, of all functions
    open        generation -> names of the calls still open when the writer ended, outermost first
    unwound     calls taken off without a return
    errors      records that fit to nothing
    lost        by cause
    """

    def __init__(self, path, counted_names, interrupted=False):
        """interrupted: signals came between any two instructions, so what sub-buffers' headers say
        of the depth may differ by calls that were being recorded."""
        self.interrupted = interrupted
        recording = format_reader.read(path)
        self.functions = {number: short_name(name)
                          for number, name in recording.names.items()}
        self.counting = counted_names
        self.others = {number for number, name in self.functions.items()
                       if name not in counted_names}
        self.counted = collections.Counter()
        self.depths = collections.defaultdict(collections.Counter)
        self.names = collections.Counter()
        self.contexts = {}
        self.open = {}
        self.unwound = 0
        self.errors = []
        self.lost = recording.lost
        self.writers = recording.writers
        for pid in sorted({writer.pid for writer in recording.writers}):
            self.read_process(pid, [w for w in recording.writers if w.pid == pid])

    def error(self, writer, text):
        if len(self.errors) < 100:
            self.errors.append(f"tid {writer.tid}, writer {writer.generation}: {text}")

    def read_process(self, pid, writers):
        """The writers one by one; in order of time if contexts move between them."""
        streams = [self.events(writer) for writer in writers]
        if len(writers) > 1 and any(word >> 33 == SPECIAL + CONTEXT for writer in writers
                                    for sub_buffer in writer.sub_buffers
                                    for word in sub_buffer.words):
            merged = heapq.merge(*streams, key=lambda event: event[0])
        else:
            merged = itertools.chain(*streams)
        running = {}
        for _, writer, kind, a, b in merged:
            if kind == OPENED:
                self.opened(writer, a, b, running)
                continue
            context = running.get(writer.generation)
            if kind == ENTERED:
                self.entered(pid, context, a)
                context.push(a, a not in self.others)
            elif kind == RETURNED:
                self.returned(writer, context, a)
            elif kind == LONG_RETURNED:
                if len(context.stack) != b + 1 and not (self.interrupted and context.stack and
                                                        context.stack[-1] == a):
                    self.error(writer, f"a long return of {self.name(a)} that leaves {b} open "
                                       f"where {len(context.stack)} are")
                self.returned(writer, context, a)
            elif kind == ENTERED_ONLY:
                self.entered(pid, context, a)
            elif kind == SWITCHED:
                running[writer.generation] = self.contexts.setdefault((pid, a), Context(None, self.others))
            elif kind == TAKEN_OFF:
                if a > len(context.stack):
                    self.error(writer, f"unwound {a} of {len(context.stack)} calls")
                self.unwound += a
                context.know(max(0, len(context.stack) - a))
            elif kind == LEFT:
                if a > len(context.stack) and context.known:
                    self.error(writer, f"resumed with {a} open calls where {len(context.stack)} "
                                       "are known")
                context.know(a)
        for writer in writers:
            if writer.generation in running:
                self.open[writer.generation] = [
                    self.name(number) for number in running[writer.generation].stack]

    def opened(self, writer, header, first, running):
        """The start of a sub-buffer: what its header says has to be what was followed."""
        key = (header.pid, header.context)
        if first:
            context = self.contexts[key] = Context(header, self.others)
        elif key not in self.contexts:
            # a switch to a new one may be what opened the sub-buffer
            if header.depth:
                self.error(writer, f"sub-buffer {header.sequence} begins in an unknown context")
            context = self.contexts[key] = Context(header, self.others)
        else:
            context = self.contexts[key]
        running[writer.generation] = context
        if self.interrupted and not first:
            return
        if len(context.stack) != header.depth:
            self.error(writer, f"sub-buffer {header.sequence} says {header.depth} open calls "
                               f"where {len(context.stack)} are")
        shown = [number for _, number, _ in header.open]
        # 0: a signal came while the call was being recorded
        if shown and len(context.stack) == header.depth and context.known and any(
                said not in (0, followed)
                for said, followed in zip(shown, context.stack[-len(shown):])):
            self.error(writer, f"sub-buffer {header.sequence} lists other open calls")

    def entered(self, pid, context, number):
        name = self.name(number)
        self.names[name] += 1
        if name in self.counting:
            key = (pid, name)
            self.counted[key] += 1
            self.depths[key][context.counted[-1]] += 1

    def returned(self, writer, context, number):
        if not context.stack:
            self.error(writer, f"{self.name(number)} returns, but nothing is open")
            return
        top = context.stack.pop()
        context.counted.pop()
        if top is not None and top != number:
            self.error(writer, f"{self.name(number)} returns where {self.name(top)} is innermost")

    def name(self, number):
        if number is None:
            return "?"
        return self.functions.get(number, f"#{number}")

    def events(self, writer):
        """What a writer's words say, in their order: (clock, writer, kind, two arguments)."""
        expected = 0
        latest = 0
        for sub_buffer in writer.sub_buffers:
            header = sub_buffer.header
            if header.sequence != expected:
                self.error(writer, f"sub-buffer {header.sequence} follows {expected - 1}")
            expected = header.sequence + 1
            high = header.clock >> 32 << 32
            latest = max(latest, header.clock)
            yield latest, writer, OPENED, header, header.sequence == 0
            words = iter(sub_buffer.words)
            for word in words:
                if not word:
                    continue
                function = word >> 33
                if function < SPECIAL:
                    clock = high | word & 0xffffffff
                    if latest - clock > 1 << 31:
                        clock += 1 << 32
                    if clock > latest:
                        latest = clock
                    yield latest, writer, RETURNED if word & RETURN else ENTERED, function, 0
                    continue
                kind, argument = function - SPECIAL, word & 0xffffffff
                if kind == CLOCK:
                    high = argument << 32
                elif kind == UNWOUND:
                    yield latest, writer, TAKEN_OFF, argument, 0
                elif kind == CONTEXT:
                    yield latest, writer, SWITCHED, argument, 0
                elif kind == RESUMED:
                    yield latest, writer, LEFT, argument, 0
                elif kind == LOST:
                    self.error(writer, f"{argument} records lost")
                elif kind == PAD:
                    for _ in range(argument):
                        next(words, 0)
                elif kind == EVENT:
                    data = [next(words, 0) for _ in range(argument & 0xffff)]
                    if argument >> 16 in (LONG_RETURN, LONG_CALL) and data[0]:
                        yield latest, writer, LONG_RETURNED, data[0] >> 33, data[2]
                    elif argument >> 16 == ENTRY_ONLY and data[0]:
                        yield latest, writer, ENTERED_ONLY, data[0] >> 33, 0
                elif kind != CPU:
                    self.error(writer, f"unknown word {word:#x}")
