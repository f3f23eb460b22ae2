# SPDX-License-Identifier: MIT
"""Rewrites a trace.dat (version 6, from a 64-bit little-endian machine) as a machine of the other byte order, or
with longs of 32 bits, would have written the same trace: each number, each format, each record."""

import re
import struct

PAGE = 4096
HERE = 8  # bytes of a long in what is read
COMMIT, FLAGS, STORED = (1 << 27) - 1, 3 << 30, 1 << 30
PADDING, EXTEND, STAMP = 29, 30, 31  # types of a page's pieces that are no records
CLOCK_OPTION = 4
TEXT_OPTIONS = {2, CLOCK_OPTION, 5, 9, 10}  # those of trace-cmd's that are texts, and the same everywhere
OTHERS = [(True, 8), (False, 4), (True, 4)]  # is_big, long_bytes
FIELD = re.compile(r"(\s*field:\s*)([^;]*);(\s*offset:)(\d+);(\s*size:)(\d+);")


class Machine:
    def __init__(self, is_big, long_bytes):
        self.is_big, self.long_bytes = is_big, long_bytes
        self.order, self.name = (">", "big") if is_big else ("<", "little")

    def number(self, value, size):
        return (value & ((1 << 8 * size) - 1)).to_bytes(size, self.name)


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count:self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def text(self):
        end = self.data.index(b"\0", self.at) + 1
        return self.take(end - self.at)


def is_long(kind, size, system):
    """Has the field the length of a long? An argument of a system call has, whatever its type is."""
    return size == HERE and (system == "syscalls" or "*" in kind or
                             re.search(r"\blong\b(?!\s+long)(?<!long long)|\b(size_t|pgoff_t|ino_t)\b", kind))


def element_of(kind, size):
    """Bytes of each number in a field."""
    if "[" not in kind:
        return size
    if re.search(r"\blong\b|\*|cpumask_t|u64", kind):
        return 8
    if re.search(r"\bint\b|u32|\b__be32|\bpid_t", kind):
        return 4
    return 2 if re.search(r"\bshort\b|u16", kind) else 1


class Event:
    """The format of an event: as it is here, and as the machine has it."""

    def __init__(self, text, system, machine):
        self.fields, self.machine = [], machine
        self.length = new = 0
        lines = []
        for line in text.splitlines(True):
            match = FIELD.match(line)
            if not match:
                lines.append(line)
                continue
            kind, offset, size = match[2], int(match[4]), int(match[6])
            element = element_of(kind, size)
            is_dynamic = kind.startswith(("__data_loc", "__rel_loc"))
            narrow = element
            if not is_dynamic and (is_long(kind, size, system) or
                                   "[" in kind and element == HERE and "u64" not in kind):
                narrow = machine.long_bytes
            # a structure's bytes stand in this order, whatever the machine
            parts = 1 if is_dynamic else size // element if element in (1, 2, 4, 8) else 0
            fresh = 4 if is_dynamic else narrow * parts if parts else size
            align = 4 if is_dynamic else narrow if narrow in (1, 2, 4, 8) else 1
            new = (new + align - 1) // align * align if machine.long_bytes != HERE else offset
            self.fields.append((kind, offset, size, new, narrow, element, is_dynamic))
            lines.append(f"{match[1]}{kind};{match[3]}{new};{match[5]}{fresh};{line[match.end():]}")
            new += fresh
            self.length = max(self.length, offset + size)
        self.fresh_length = new if machine.long_bytes != HERE else self.length
        self.text = "".join(lines)
        self.number = int(re.search(r"^ID: (\d+)", text, re.M)[1])

    def record(self, data):
        """A record of the event. What stands behind its fields keeps its place from their end."""
        out = bytearray(self.fresh_length) + self._behind(data)
        for kind, offset, size, new, narrow, element, is_dynamic in self.fields:
            if is_dynamic:
                value = int.from_bytes(data[offset:offset + 4], "little")
                place, length = value & 0xffff, value >> 16
                moved = self.fresh_length - self.length
                base = offset + 4 if kind.startswith("__rel_loc") else 0
                if kind.startswith("__rel_loc"):
                    moved -= new - offset
                out[new:new + 4] = self.machine.number(place + moved | length << 16, 4)
                each = element_of(kind, size)
                begin = base + place
                if each > 1 and self.machine.is_big:
                    for at in range(begin, begin + length - each + 1, each):
                        to = at + self.fresh_length - self.length
                        out[to:to + each] = data[at:at + each][::-1]
                continue
            if element not in (1, 2, 4, 8) or offset + size > len(data):
                out[new:new + size] = data[offset:offset + size]
                continue
            for part in range(size // element):
                value = int.from_bytes(data[offset + part * element:][:element], "little")
                out[new + part * narrow:new + (part + 1) * narrow] = self.machine.number(value, narrow)
        return bytes(out)

    def _behind(self, data):
        """The bytes behind the fields; of the last field, if its length is left open, its elements."""
        rest = data[self.length:]
        kind, _, size, _, _, element, is_dynamic = self.fields[-1]
        if is_dynamic or size or element == 1:
            return rest
        narrow = self.machine.long_bytes if element == HERE else element
        return b"".join(self.machine.number(int.from_bytes(rest[at:at + element], "little"), narrow)
                        for at in range(0, len(rest) - element + 1, element))


def rewritten(file, is_big, long_bytes):
    return _Rewriter(file, Machine(is_big, long_bytes)).run()


class _Rewriter:
    def __init__(self, file, machine):
        self.reader, self.machine, self.out, self.events = Reader(file), machine, bytearray(), {}
        self.has_clock = False  # behind the places of the pages

    def _put(self, value, size):
        self.out += self.machine.number(value, size)

    def _file(self, size_bytes, change=lambda text: text):
        content = change(self.reader.take(self.reader.number(size_bytes)))
        self._put(len(content), size_bytes)
        self.out += content

    def _count(self):
        count = self.reader.number(4)
        self._put(count, 4)
        return count

    def _format(self, system):
        def change(content):
            event = Event(content.decode(), system, self.machine)
            self.events[event.number] = event
            return event.text.encode()

        self._file(8, change)

    def _header_page(self, content):
        data = 8 + self.machine.long_bytes
        text = re.sub(r"(commit;\s*offset:8;\s*size:)8", rf"\g<1>{self.machine.long_bytes}", content.decode())
        return re.sub(r"(char data;\s*offset:)16;(\s*size:)\d+", rf"\g<1>{data};\g<2>{PAGE - data}",
                      text).encode()

    def _symbols(self, content):
        digits = 2 * self.machine.long_bytes
        return b"".join(line[16 - digits:] for line in content.splitlines(True))

    def run(self):
        read = self.reader
        assert read.take(12) == b"\x17\x08\x44tracing6\0" and read.take(1) == b"\0" and read.number(1) == HERE
        assert read.number(4) == PAGE
        self.out += b"\x17\x08\x44tracing6\0" + bytes([self.machine.is_big, self.machine.long_bytes])
        self._put(PAGE, 4)
        self.out += read.text()  # header_page
        self._file(8, self._header_page)
        self.out += read.text()  # header_event
        self._file(8)
        for _ in range(self._count()):
            self._format("ftrace")
        for _ in range(self._count()):
            system = read.text()
            self.out += system
            for _ in range(self._count()):
                self._format(system[:-1].decode())
        self._file(4, self._symbols)
        self._file(4)  # printk_formats
        self._file(8)  # names of tasks
        cpus = self._count()
        kind = read.text()
        if kind == b"options  \0":
            self.out += kind
            self._options()
            kind = read.text()
        assert kind == b"flyrecord\0"
        self.out += kind
        places = [(read.number(8), read.number(8)) for _ in range(cpus)]
        self._pages(places, self._clock() if self.has_clock else b"")
        return bytes(self.out)

    def _clock(self):
        content = self.reader.take(self.reader.number(8))
        return self.machine.number(len(content), 8) + content

    def _options(self):
        while number := self.reader.number(2):
            content = self.reader.take(self.reader.number(4))
            self.has_clock |= number == CLOCK_OPTION
            if number in TEXT_OPTIONS:
                self._put(number, 2)
                self._put(len(content), 4)
                self.out += content
        self._put(0, 2)

    def _pages(self, places, clock):
        at = (len(self.out) + 16 * len(places) + len(clock) + PAGE - 1) // PAGE * PAGE
        for _, size in places:
            self._put(at, 8)
            self._put(size, 8)
            at += (size + PAGE - 1) // PAGE * PAGE
        self.out += clock
        self.out += bytes(-len(self.out) % PAGE)
        for place, size in places:
            for page in range(place, place + size, PAGE):
                self.out += self._page(self.reader.data[page:page + PAGE])

    def _page(self, page):
        clock, commit = struct.unpack_from("<QQ", page)
        used, machine = commit & COMMIT, self.machine
        data, out, at = page[16:16 + used], bytearray(), 0
        while at + 4 <= used:
            piece, at = self._piece(data, at)
            out += piece
        lost = b""
        if commit & STORED:
            lost = machine.number(int.from_bytes(page[16 + used:24 + used], "little"), machine.long_bytes)
        head = machine.number(clock, 8) + machine.number(len(out) | commit & FLAGS, machine.long_bytes)
        assert len(head + out + lost) <= PAGE
        return bytes((head + out + lost).ljust(PAGE, b"\0"))

    def _head(self, kind, ticks):
        return self.machine.number(kind << 27 | ticks if self.machine.is_big else kind | ticks << 5, 4)

    def _piece(self, data, at):
        """A piece of a page, and where the next one is."""
        word = int.from_bytes(data[at:at + 4], "little")
        kind, ticks, at = word & 31, word >> 5, at + 4
        if kind in (EXTEND, STAMP):
            return self._head(kind, ticks) + data[at:at + 4][::-1 if self.machine.is_big else 1], at + 4
        length = 4 * kind
        if kind in (0, PADDING):
            length = int.from_bytes(data[at:at + 4], "little") - 4
            at += 4
        if kind == PADDING:
            if ticks == 0:
                return b"", len(data)
            return self._head(kind, ticks) + self.machine.number(length + 4, 4) + bytes(length), at + length
        event = self.events[int.from_bytes(data[at:at + 2], "little")]
        record = event.record(data[at:at + length])
        record += bytes(-len(record) % 4)
        if len(record) <= 4 * 28:
            head = self._head(len(record) // 4, ticks)
        else:
            head = self._head(0, ticks) + self.machine.number(len(record) + 4, 4)
        return head + record, at + (length + 3) // 4 * 4
