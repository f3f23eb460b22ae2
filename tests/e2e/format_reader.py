#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Reads recording files by doc/format.md, and by nothing else of the project: an independent judge
of what graftrace writes. Needs Python's standard library and the command `zstd`.

    recording = format_reader.read("graftrace.data")
    format_reader.py FILE           prints what is in it, one line each

A checksum that differs, a length that cannot be, anything that the specification forbids raises
Damaged with the byte offset, unless read(path, strict=False) is asked for: then what is damaged is
left out and listed in recording.problems.
"""

import collections
import os
import re
import struct
import subprocess
import sys
from types import SimpleNamespace

FILE_MAGIC = b"graftrace.data\n\0"
BLOCK_MAGIC = b"GRFTBLK\n"
START, OPTIONS, OBJECT, FUNCTIONS, WRITERS, SUB_BUFFERS, END, SWITCHES = range(1, 9)
KERNEL = 9
EVENT = 15
ZSTD, OPTIONAL = 1, 2
BLOCK_MAX = 64 << 20
STRING_TAGS = {1: "arguments", 2: "program", 3: "directory", 4: "system", 5: "host", 6: "cpu",
               7: "made_by", 8: "options"}


class Damaged(Exception):
    pass


def make_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = make_table()


def crc32c(data):
    table = TABLE
    crc = 0xffffffff
    for byte in data:
        crc = table[(crc ^ byte) & 0xff] ^ crc >> 8
    return crc ^ 0xffffffff


assert crc32c(b"123456789") == 0xe3069283


def decompress(frames):
    """Zstd frames [(bytes, raw length)], all in one run of the command."""
    if not frames:
        return []
    done = subprocess.run(["zstd", "-d", "-c", "-q"], input=b"".join(data for data, _ in frames),
                          capture_output=True, check=False)
    if done.returncode:
        raise Damaged("zstd: " + done.stderr.decode(errors="replace").strip())
    if len(done.stdout) != sum(length for _, length in frames):
        raise Damaged("zstd frames have other lengths than stated")
    parts, at = [], 0
    for _, length in frames:
        parts.append(done.stdout[at:at + length])
        at += length
    return parts


def check(condition, text):
    if not condition:
        raise Damaged(text)


def padded(count):
    return (count + 7) // 8 * 8


class SubBuffer:
    """header: the fields of the specification's table, and open: [(clock, function, depth)].
    words: decoded when first asked for."""

    def __init__(self, header, decode):
        self.header = header
        self._decode = decode
        self._words = None

    @property
    def words(self):
        if self._words is None:
            self._words = self._decode()
            self._decode = None
        return self._words


class Recording:
    def __init__(self):
        self.problems = []
        self.clock = None
        self.names = {}        # function number -> name
        self.functions = {}    # function number -> (pid, address, size, name, object)
        self.objects = []      # (pid, start, end, bias, build ID, path)
        self.writers = []      # generation, pid, tid, comm, start, end, opened, lost, sub_buffers
        self.strings = {name: [] for name in STRING_TAGS.values()}
        self.realtime_ns = self.tracer = self.cpu_count = None
        self.events = []       # number, system, name, fields: name, type, bytes, flags, kind
        self.end = None
        self.switches = None   # (clock, tid, processor, left it, was preempted); None: not watched
        self.lost = [0] * 8
        self.kernel_files = {}  # name -> bytes
        self.kernel_pages = collections.defaultdict(list)  # processor -> pages, the oldest first
        self._by_generation = {}

    def writer(self, generation):
        if generation not in self._by_generation:
            writer = SimpleNamespace(generation=generation, pid=0, tid=0, comm="", start=0, end=0,
                                     opened=0, lost=[0] * 8, described=False, sub_buffers=[])
            self._by_generation[generation] = writer
            self.writers.append(writer)
        return self._by_generation[generation]

    def ns(self, tsc):
        base, ns_base, mult, shift = self.clock
        if tsc < base:
            return ns_base - ((base - tsc) * mult >> shift)
        return ns_base + ((tsc - base) * mult >> shift)


def read(path, strict=True):
    with open(path, "rb") as file:
        data = file.read()
    recording = Recording()

    def problem(text):
        if strict:
            raise Damaged(text)
        recording.problems.append(text)

    if data[:16] != FILE_MAGIC:
        problem("bytes 0 to 16: not the file magic")
    at, number = 16, 0
    while at < len(data):
        if recording.end is not None:
            problem(f"byte {at}: bytes behind END")
            break
        try:
            block = block_header(data, at)
        except Damaged as damaged:
            problem(f"byte {at}: {damaged}")
            at = next_block(data, at)
            number = None
            continue
        if number is not None and block.number != number:
            problem(f"byte {at}: block {block.number} where {number} should be")
        number = block.number + 1
        end = at + 64 + padded(block.payload_bytes)
        if end > len(data):
            problem(f"byte {at}: cut off at byte {len(data)}")
            break
        try:
            take_block(recording, block, data[at + 64:end])
        except Damaged as damaged:
            problem(f"byte {at}, block of type {block.type}: {damaged}")
        at = end
    if recording.end is None:
        recording.problems.append(f"no END: the file ends at byte {len(data)}")
    check(recording.clock is not None, "no clock")
    finish(recording, problem)
    return recording


def records_of(words):
    """Of a sub-buffer's words: each that begins a record, with an event's data behind it (else nothing).
    Places that are passed over are left out."""
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        function, argument = word >> 33, word & 0xffffffff
        length = argument & 0xffff if function == 0x7fffff06 else 0
        if function == 0x7fffff05:
            at += argument
        else:
            yield word, words[at:at + length]
        at += length


def block_header(data, at):
    check(len(data) - at >= 64, "the header is cut off")
    header = data[at:at + 64]
    check(header[:8] == BLOCK_MAGIC, "no block magic")
    check(crc32c(header[:60]) == struct.unpack_from("<I", header, 60)[0], "header checksum")
    block = SimpleNamespace(**dict(zip(
        ("offset", "number", "type", "version", "flags", "payload_bytes", "raw_bytes", "head_bytes",
         "head_crc", "body_crc"), struct.unpack("<QQHHIQQIII", header[8:60]))))
    check(block.offset == at, "the header has another offset")
    check(block.payload_bytes <= BLOCK_MAX and block.raw_bytes <= BLOCK_MAX
          and block.head_bytes <= block.payload_bytes, "lengths")
    return block


def next_block(data, at):
    at = (at + 8) // 8 * 8
    while at < len(data):
        at = data.find(BLOCK_MAGIC, at)
        if at < 0:
            break
        if at % 8 == 0:
            try:
                block_header(data, at)
                return at
            except Damaged:
                pass
        at += 1
    return len(data)


def take_block(recording, block, stored):
    head, body = stored[:block.head_bytes], stored[block.head_bytes:]
    check(crc32c(head) == block.head_crc, "checksum of the head")
    if block.type == SUB_BUFFERS:
        check(not block.flags & ZSTD and block.body_crc == 0, "flags of a SUB_BUFFERS block")
        take_sub_buffers(recording, head, body)
        return
    check(crc32c(body) == block.body_crc, "checksum")
    check(not any(stored[block.payload_bytes:]), "padding")
    payload = stored[:block.payload_bytes]
    if block.flags & ZSTD:
        check(block.raw_bytes <= 4096 + 64 * block.payload_bytes, "raw bytes")
        payload, = decompress([(payload, block.raw_bytes)])
    check(len(payload) == block.raw_bytes, "raw bytes")
    if block.type == START:
        take_start(recording, payload)
    elif block.type == OPTIONS:
        take_strings(recording, payload)
    elif block.type == OBJECT:
        take_object(recording, payload)
    elif block.type == FUNCTIONS:
        take_functions(recording, payload)
    elif block.type == WRITERS:
        take_writers(recording, payload)
    elif block.type == END:
        take_end(recording, payload)
    elif block.type == SWITCHES:
        take_switches(recording, block, payload)
    elif block.type == EVENT:
        take_event(recording, block, payload)
    elif block.type == KERNEL:
        take_kernel(recording, block, payload)
    else:
        check(block.flags & OPTIONAL, "unknown type")


def take_strings(recording, payload):
    at = 0
    while at < len(payload):
        check(len(payload) - at >= 8, "strings")
        tag, length = struct.unpack_from("<II", payload, at)
        end = at + 8 + padded(length + 1)
        check(end <= len(payload) and not any(payload[at + 8 + length:end]), "strings")
        if tag in STRING_TAGS:
            recording.strings[STRING_TAGS[tag]].append(
                payload[at + 8:at + 8 + length].decode(errors="surrogateescape"))
        at = end


def take_clock(payload, at):
    base, ns_base, mult, shift, _ = struct.unpack_from("<QQQII", payload, at)
    check(mult and shift < 64, "clock")
    return base, ns_base, mult, shift


def take_start(recording, payload):
    check(len(payload) >= 64, "length")
    major, _minor = struct.unpack_from("<II", payload, 0)
    check(major == 1, f"major version {major}")
    recording.clock = take_clock(payload, 8)
    (recording.realtime_ns, recording.tracer, recording.cpu_count, recording.sub_buffer_bytes,
     strings) = struct.unpack_from("<QIIII", payload, 40)
    check(len(payload) >= 64 + strings, "strings")
    take_strings(recording, payload[64:64 + strings])


def take_object(recording, payload):
    check(len(payload) >= 40, "length")
    pid, id_bytes, start, end, bias, path_bytes, _ = struct.unpack_from("<IIQQQII", payload)
    check(len(payload) >= 40 + id_bytes + path_bytes + 1, "length")
    path = payload[40 + id_bytes:40 + id_bytes + path_bytes]
    recording.objects.append((pid, start, end, bias, payload[40:40 + id_bytes].hex(),
                              path.decode(errors="surrogateescape")))


def take_switches(recording, block, payload):
    check(block.flags & OPTIONAL, "switches that are not optional")
    count, length, _, _ = struct.unpack_from("<IIQQ", payload)
    check(length >= 16 and 24 + count * length <= len(payload), "switches are cut off")
    if recording.switches is None:
        recording.switches = []
    clock = 0
    for at in range(24, 24 + count * length, length):
        difference, tid, cpu, flags = struct.unpack_from("<QIHH", payload, at)
        clock = (clock + difference) % 2 ** 64
        recording.switches.append((clock, tid, cpu, bool(flags & 1), bool(flags & 2)))


def take_functions(recording, payload):
    check(len(payload) >= 16, "length")
    pid, first, count, name_bytes = struct.unpack_from("<IIII", payload)
    check(first >= 1 and first + count <= 0x7fffff00, "numbers")
    names = payload[16 + 16 * count:16 + 16 * count + name_bytes]
    check(len(names) == name_bytes and name_bytes and names[-1] == 0, "names")

    def name_at(offset):
        check(offset < name_bytes, "name outside the names")
        return names[offset:names.index(b"\0", offset)].decode(errors="surrogateescape")

    path = name_at(0)
    for i, (address, size, name) in enumerate(
            struct.iter_unpack("<QII", payload[16:16 + 16 * count])):
        check(first + i not in recording.functions, f"function {first + i} twice")
        recording.functions[first + i] = pid, address, size, name_at(name), path
        recording.names[first + i] = name_at(name)


def take_kernel(recording, block, payload):
    check(block.flags & OPTIONAL, "flags of KERNEL")
    kind, cpu, name_bytes, _, count = struct.unpack_from("<IIIIQ", payload)
    check(24 + name_bytes + count <= len(payload), "lengths of KERNEL")
    content = payload[24 + name_bytes:24 + name_bytes + count]
    if kind == 1:
        recording.kernel_pages[cpu] += pages_of(recording, content)
    elif kind == 2:
        name = payload[24:24 + name_bytes - 1].decode()
        recording.kernel_files[name] = recording.kernel_files.get(name, b"") + content
    elif kind == 3:
        recording.kernel_pages[cpu] += unpack_pages(content)
    elif kind == 4:
        files = Bytes(content)
        while not files.is_used_up():
            name_bytes, count = files.unpack("<II")
            name = files.take(name_bytes)
            check(name_bytes and name[-1] == 0, "a file's name")
            recording.kernel_files[name[:-1].decode()] = files.take(count)


def pages_of(recording, content):
    size = int(re.search(rb"data;\s+offset:(\d+);\s+size:(\d+)",
                         recording.kernel_files["events/header_page"])[2]) + 16
    return [content[at:at + size] for at in range(0, len(content), size)]


class Bytes:
    """Bytes that are taken from the front."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def take(self, count):
        check(count <= len(self.content) - self.at, "bytes of packed pages")
        self.at += count
        return self.content[self.at - count:self.at]

    def unpack(self, layout):
        return struct.unpack(layout, self.take(struct.calcsize(layout)))

    def number(self):
        number, shift, byte = 0, 0, 0x80
        while byte & 0x80:
            byte, = self.take(1)
            number |= (byte & 0x7f) << shift
            shift += 7
        return number

    def is_used_up(self):
        return self.at == len(self.content)


def rows_of(packed, rows, width):
    """The values of a column, each as the bytes that stand in the page."""
    values, count = packed.unpack("<II")
    content = Bytes(packed.take(count))
    if values:
        dictionary = [content.take(width) for _ in range(values)]
        column = [dictionary[int.from_bytes(content.take(1 if values <= 256 else 2), "little")]
                  for _ in range(rows)]
    else:
        value, column = 0, []
        for _ in range(rows):
            number = content.number()
            value += -(number + 1) // 2 if number & 1 else number // 2
            column.append((value % 2 ** (8 * width)).to_bytes(width, "little"))
    check(content.is_used_up(), "a column")
    return column


def unpack_pages(content):
    packed = Bytes(content)
    page_bytes, count, class_count, code_count, extra_bytes, clock_bytes = packed.unpack("<6I")
    classes = [packed.unpack("<4I") for _ in range(class_count)]
    codes = packed.take(code_count)
    extra, clocks = Bytes(packed.take(extra_bytes)), Bytes(packed.take(clock_bytes))
    records = []  # of each class: the data of its records, one after the other
    for kind, length, rows, _ in classes:
        data_bytes = 4 * kind if kind else (length - 4 + 3) // 4 * 4
        columns = [rows_of(packed, rows, min(8, data_bytes - offset))
                   for offset in range(0, data_bytes, 8)]
        records.append(map(b"".join, zip(*columns)))
    pages = []
    for code in codes:
        if code == 255:
            pages.append(extra.take(16))
        elif code == 254:
            pages[-1] += extra.take(*extra.unpack("<I"))
        else:
            kind, length = classes[code][:2]
            pages[-1] += struct.pack("<I", clocks.number() << 5 | kind)
            pages[-1] += (b"" if kind else struct.pack("<I", length)) + next(records[code])
    check(len(pages) == count and all(len(page) <= page_bytes for page in pages), "pages")
    check(packed.is_used_up() and extra.is_used_up() and clocks.is_used_up(), "unused bytes")
    check(all(next(rest, None) is None for rest in records), "unused records")
    return [page.ljust(page_bytes, b"\0") for page in pages]


def take_event(recording, block, payload):
    check(block.flags & OPTIONAL, "flags of EVENT")
    number, count, _, system, name, _, string_bytes = struct.unpack_from("<IIQIIII", payload)
    strings = payload[32 + 16 * count:32 + 16 * count + string_bytes]
    check(len(strings) == string_bytes and string_bytes and strings[-1] == 0, "names of EVENT")

    def text_at(offset):
        check(offset < string_bytes, "name outside the names")
        return strings[offset:strings.index(b"\0", offset)].decode(errors="surrogateescape")

    fields = [{"name": text_at(field), "type": text_at(kind), "bytes": size, "flags": flags, "kind": shown}
              for field, kind, size, flags, shown, _, _ in struct.iter_unpack("<IIHHBBH", payload[32:32 + 16 * count])]
    recording.events.append({"number": number, "system": text_at(system), "name": text_at(name), "fields": fields})


def take_writers(recording, payload):
    check(len(payload) >= 8, "length")
    count, size = struct.unpack_from("<II", payload)
    check(size >= 120 and len(payload) >= 8 + count * size, "length")
    for i in range(count):
        generation, pid, tid, _, comm, opened, start, end, *lost = struct.unpack_from(
            "<IIII16sQQQ8Q", payload, 8 + i * size)
        check(generation, "generation 0")
        writer = recording.writer(generation)
        writer.pid, writer.tid, writer.opened = pid, tid, opened
        writer.comm = comm.split(b"\0")[0].decode(errors="surrogateescape")
        writer.start, writer.end, writer.lost, writer.described = start, end, lost, True


def take_end(recording, payload):
    check(len(payload) >= 144, "length")
    end = SimpleNamespace(**dict(zip(
        ("words", "calls", "sub_buffers", "ns", "threads", "processes", "exit_status", "functions"),
        struct.unpack_from("<QQQQIIiI", payload))))
    end.lost = list(struct.unpack_from("<8Q", payload, 48))
    recording.end = end
    recording.clock = take_clock(payload, 112)


def take_sub_buffers(recording, head, body):
    check(len(head) >= 16, "head")
    groups, count, _ = struct.unpack_from("<IIQ", head)
    check(len(head) == 16 + 32 * groups + 16 * count, "length of the head")
    entries = list(struct.iter_unpack("<QIHH", head[16 + 32 * groups:]))
    at = entry = 0
    for generation, own, sequence, encoding, stored, crc, _ in struct.iter_unpack(
            "<IIQIIII", head[16:16 + 32 * groups]):
        check(generation and own and stored % 8 == 0 and at + stored <= len(body)
              and entry + own <= count, "a group's counts")
        group, lengths = body[at:at + stored], entries[entry:entry + own]
        at += stored
        entry += own
        check(all(words <= 2097152 and calls <= 16 for _, words, calls, _ in lengths), "lengths")
        check(8 * sum(words for _, words, _, _ in lengths) <= BLOCK_MAX, "words of a group")
        check(crc32c(group) == crc, "checksum of a group")
        check(encoding in (0, 1), f"encoding {encoding}")
        made = (plain if encoding == 0 else columns)(group, lengths)
        for (clock, words, calls, _), sub_buffer in zip(lengths, made):
            header = sub_buffer.header
            check((header.magic, header.generation, header.sequence, header.clock, header.used,
                   len(header.open)) == (0x42535447, generation, sequence, clock, words, calls),
                  "a sub-buffer's header is not what the head says")
            recording.writer(generation).sub_buffers.append(sub_buffer)
            sequence += 1
    check(at == len(body) and entry == count, "the groups are not all of the block")


def sub_buffer_header(data, at, calls):
    """The header and the open calls that stand at `at`; 128 + 16 * calls bytes."""
    check(len(data) >= at + 128 + 16 * calls, "headers of sub-buffers")
    values = struct.unpack_from("<IIIIIIIIQQIHHII8Q", data, at)
    header = SimpleNamespace(**dict(zip(
        ("magic", "bytes", "stream", "generation", "pid", "tid", "cpu", "context", "sequence",
         "clock", "depth", "tracer", "open_calls", "used", "reserved"), values)))
    header.lost = list(values[15:])
    check(header.open_calls == calls, "open calls of a sub-buffer's header")
    header.open = list(struct.iter_unpack("<QII", data[at + 128:at + 128 + 16 * calls]))
    return header


def plain(group, lengths):
    made, at = [], 0
    for _, words, calls, _ in lengths:
        header = sub_buffer_header(group, at, calls)
        at += 128 + 16 * calls
        part = group[at:at + 8 * words]
        check(len(part) == 8 * words, "a plain group's length")
        made.append(SubBuffer(header, lambda part=part: struct.unpack(f"<{len(part) // 8}Q", part)))
        at += 8 * words
    check(at == len(group), "a plain group's length")
    return made


def columns(group, lengths):
    check(len(group) >= 40, "columns")
    table = list(struct.iter_unpack("<II", group[:40]))
    at, sections = 40, []
    for stored, raw in table:
        check(stored <= raw <= BLOCK_MAX, "a section's lengths")
        sections.append(group[at:at + stored])
        at += stored
    check(sum(raw for _, raw in table) <= 4096 + 1024 * len(group), "raw bytes of a group")
    check(padded(at) == len(group) and not any(group[at:]), "lengths of the sections")
    unpacked = iter(decompress([(section, raw) for section, (stored, raw) in zip(sections, table)
                                if stored != raw]))
    meta, codes, clocks, code_extra, clock_extra = (
        section if stored == raw else next(unpacked)
        for section, (stored, raw) in zip(sections, table))

    check(len(meta) >= 8, "META")
    symbols, _ = struct.unpack_from("<II", meta)
    at = 8 + padded(symbols * 9)
    check(symbols <= 12239 and len(meta) >= at, "META")
    values = struct.unpack_from(f"<{symbols}Q", meta, 8)
    kinds = meta[8 + 8 * symbols:8 + 9 * symbols]
    check(all(kind <= 2 for kind in kinds), "kind of a symbol")
    made, word, code_at, clock_at = [], 0, 0, 0
    for _, words, calls, _ in lengths:
        check(len(meta) >= at + 8, "META")
        code_bytes, clock_bytes = struct.unpack_from("<II", meta, at)
        header = sub_buffer_header(meta, at + 8, calls)
        parts = (codes[word:word + words], clocks[word:word + words],
                 code_extra[code_at:code_at + code_bytes],
                 clock_extra[clock_at:clock_at + clock_bytes])
        check([len(part) for part in parts] == [words, words, code_bytes, clock_bytes], "columns")
        made.append(SubBuffer(header, lambda header=header, parts=parts: decode(
            header, values, kinds, *parts)))
        at += 8 + 128 + 16 * calls
        word += words
        code_at += code_bytes
        clock_at += clock_bytes
    check((at, word, word, code_at, clock_at) == tuple(map(len, (
        meta, codes, clocks, code_extra, clock_extra))), "columns are longer than their parts")
    return made


def decode(header, values, kinds, codes, clocks, code_extra, clock_extra):
    clock = header.clock & 0xffffffff
    stack = [0] * 1024
    top = code_at = clock_at = 0
    words = []
    for _, function, _ in header.open:
        top += 1
        stack[top % 1024] = function << 33 | 1 << 32
    for code, clock_code in zip(codes, clocks):
        size = 0 if clock_code < 192 else 1 if clock_code < 240 else 2 if clock_code < 255 else 4
        extra = int.from_bytes(clock_extra[clock_at:clock_at + size], "little")
        clock_at += size
        base = (clock_code if size == 0 else 192 + (clock_code - 192) * 256 if size == 1
                else 12480 + (clock_code - 240) * 65536 if size == 2 else 0)
        clock = clock + base + extra & 0xffffffff
        if code == 0:
            words.append(stack[top % 1024] | clock)
            top -= 1
            continue
        if code == 255:
            check(code_at + 8 <= len(code_extra), "CODE_EXTRA is too short")
            words.append(int.from_bytes(code_extra[code_at:code_at + 8], "little"))
            code_at += 8
            continue
        if code < 208:
            symbol = code - 1
        else:
            check(code_at < len(code_extra), "CODE_EXTRA is too short")
            symbol = 207 + (code - 208) * 256 + code_extra[code_at]
            code_at += 1
        check(symbol < len(values), "a code without a symbol")
        value, kind = values[symbol], kinds[symbol]
        if kind == 2:
            words.append(value)
            continue
        words.append(value | clock)
        if kind == 0:
            top += 1
            stack[top % 1024] = value | 1 << 32
        else:
            top -= 1
    check(code_at == len(code_extra) and clock_at == len(clock_extra),
          "the extra columns are not used up")
    return words


def finish(recording, problem):
    total = 0
    for writer in recording.writers:
        writer.sub_buffers.sort(key=lambda sub_buffer: sub_buffer.header.sequence)
        total += len(writer.sub_buffers)
        for before, after in zip(writer.sub_buffers, writer.sub_buffers[1:]):
            if after.header.sequence != before.header.sequence + 1:
                problem(f"writer {writer.generation}: sub-buffer {after.header.sequence} follows "
                        f"{before.header.sequence}")
        if not writer.described and writer.sub_buffers:
            first, last = writer.sub_buffers[0].header, writer.sub_buffers[-1].header
            writer.pid, writer.tid = first.pid, first.tid
            writer.start, writer.lost = first.clock, last.lost
    if recording.end is not None:
        recording.lost = recording.end.lost
        if recording.end.sub_buffers != total:
            problem(f"{total} of {recording.end.sub_buffers} sub-buffers are in the file")
    else:
        recording.lost = [sum(causes) for causes in zip([0] * 8, *(
            writer.lost for writer in recording.writers))]


def dump(recording, out):
    """One line for each thing, in the order of numbers; the words as a checksum."""
    for name, strings in recording.strings.items():
        for string in strings:
            if name in ("arguments", "options", "program"):
                print(name, string, file=out)
    for pid, start, end, bias, build_id, path in recording.objects:
        print(f"object {pid} {start:x} {end:x} {bias:x} {build_id} {path}", file=out)
    for number, (_, address, size, name, path) in sorted(recording.functions.items()):
        print(f"function {number} {address:x} {size} {path} {name}", file=out)
    for writer in sorted(recording.writers, key=lambda writer: writer.generation):
        print(f"writer {writer.generation} {writer.pid} {writer.tid} {writer.comm} {writer.start} "
              f"{writer.end} {','.join(map(str, writer.lost))}", file=out)
        for sub_buffer in writer.sub_buffers:
            header = sub_buffer.header
            calls = ",".join(f"{clock}:{function}:{depth}" for clock, function, depth in header.open)
            words = struct.pack(f"<{len(sub_buffer.words)}Q", *sub_buffer.words)
            print(f"sub_buffer {header.sequence} {header.pid} {header.tid} {header.clock} "
                  f"{header.context} {header.depth} {header.tracer} {header.used} "
                  f"{','.join(map(str, header.lost))} [{calls}] {crc32c(words):08x}", file=out)
    if recording.end is not None:
        end = recording.end
        print(f"end {end.calls} {end.ns} {end.threads} {end.processes} {end.exit_status} "
              f"{','.join(map(str, end.lost))}", file=out)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: format_reader.py FILE")
    try:
        recording = read(sys.argv[1], strict=False)
        dump(recording, sys.stdout)
    except Damaged as damaged:
        sys.exit(f"{os.path.basename(sys.argv[1])}: {damaged}")
    except BrokenPipeError:
        sys.exit(1)
    for text in recording.problems:
        print("problem:", text, file=sys.stderr)


if __name__ == "__main__":
    main()
