# SPDX-License-Identifier: MIT
"""The recording file, read twice: by the library, and by the reader that was written from
doc/format.md alone. Both have to find the same."""

import os
import random
import signal
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import format_reader
from conftest import BUILD, PATIENCE, wait_until

TOOL = BUILD / "tests" / "recording_tool"
READER = Path(format_reader.__file__)
END, KERNEL, OPTIONAL, KERNEL_FILE = 7, 9, 2, 2  # numbers of doc/format.md

# seed, writers, sub-buffers of each, words of each, functions, clock differences of any length
SAMPLES = {
    "one_thread": (1, 1, 20, 1500, 40, 0),
    "many_threads": (2, 60, 3, 60, 40, 1),
    "many_functions": (3, 3, 4, 5000, 15000, 1),
    "empty": (4, 0, 0, 50, 0, 0),
}


def make(path, sample, compress, pressure=0):
    subprocess.run([TOOL, "make", path, *map(str, sample), str(compress), str(pressure)],
                   check=True, timeout=PATIENCE)


def dumps(path):
    """What each of the two readers prints, and whether it complained."""
    library = subprocess.run([TOOL, "dump", path], capture_output=True, timeout=PATIENCE, text=True)
    reader = subprocess.run([sys.executable, READER, path], capture_output=True, timeout=PATIENCE,
                            text=True)
    return library, reader


@pytest.mark.parametrize("packing", ["plain", "bare", "packed"])
@pytest.mark.parametrize("sample", SAMPLES)
def test_both_readers_find_the_same(tmp_path, sample, packing):
    path = tmp_path / "graftrace.data"
    make(path, SAMPLES[sample], int(packing != "plain"), 60 if packing == "bare" else 0)
    library, reader = dumps(path)
    assert library.returncode == reader.returncode == 0
    assert library.stderr == reader.stderr == ""
    assert library.stdout == reader.stdout
    assert library.stdout.count("\nsub_buffer ") == SAMPLES[sample][1] * SAMPLES[sample][2]


def test_both_readers_find_the_same_in_what_is_left_of_a_file(tmp_path):
    path = tmp_path / "graftrace.data"
    make(path, (5, 4, 12, 400, 30, 1), 1)
    whole = path.read_bytes()
    choose = random.Random(1)
    for _ in range(40):
        if choose.random() < 0.5:
            path.write_bytes(whole[:choose.randrange(400, len(whole))])
        else:
            changed = bytearray(whole)
            changed[choose.randrange(400, len(whole))] ^= 1 << choose.randrange(8)
            path.write_bytes(changed)
        library, reader = dumps(path)
        assert library.returncode == reader.returncode == 0
        assert library.stderr and reader.stderr
        lost = set(library.stdout.splitlines()) ^ set(reader.stdout.splitlines())
        # A damaged group costs the library that group, the simple reader the rest of the block.
        assert all(line in library.stdout for line in lost)


def test_damage_is_refused_with_its_offset(tmp_path):
    path = tmp_path / "graftrace.data"
    make(path, (6, 1, 3, 100, 5, 0), 0)
    changed = bytearray(path.read_bytes())
    changed[1000] ^= 1
    path.write_bytes(changed)
    with pytest.raises(format_reader.Damaged, match="byte [0-9]+"):
        format_reader.read(path)


@pytest.mark.parametrize("compress", [0, 1])
def test_parse_trace_of_a_recording_gives_each_call_its_row(graftrace, tmp_path, compress):
    wanted = subprocess.run([TOOL, "tree", tmp_path / "graftrace.data", "3", "5000", "150",
                             str(compress)], capture_output=True, text=True, check=True).stdout
    assert wanted.count("\n") == 5001
    done = graftrace("parse-trace", "graftrace.data")
    assert (tmp_path / "trace.csv").read_text() == wanted
    assert done.stderr == "graftrace parse-trace: 5000 calls from graftrace.data to trace.csv\n"
    with open(tmp_path / "graftrace.data", encoding="latin-1") as recording:
        graftrace_with_stdin = subprocess.run(
            [graftrace.path, "parse-trace", "-o", "-", "-"], stdin=recording, text=True,
            capture_output=True, check=True, timeout=PATIENCE)
    assert graftrace_with_stdin.stdout == wanted


def test_parse_trace_of_a_damaged_recording_gives_no_row_that_is_wrong(graftrace, tmp_path):
    path = tmp_path / "graftrace.data"
    wanted = subprocess.run([TOOL, "tree", path, "3", "20000", "500", "0"], capture_output=True,
                            text=True, check=True).stdout.splitlines()
    whole = path.read_bytes()
    changed = bytearray(whole)
    changed[len(whole) // 2] ^= 1
    path.write_bytes(changed)
    done = graftrace("parse-trace", "-q", "graftrace.data", code=1)
    rows = (tmp_path / "trace.csv").read_text().splitlines()
    assert 1000 < len(rows) < len(wanted)
    left = iter(wanted)
    assert all(row in left for row in rows)
    assert "damaged (checksum)" in done.stderr and "bytes" in done.stderr
    path.write_bytes(whole[:len(whole) // 2])
    done = graftrace("parse-trace", "-q", "graftrace.data", code=1)
    rows = (tmp_path / "trace.csv").read_text().splitlines()
    assert set(rows) <= set(wanted)
    assert f"cut off at byte {len(whole) // 2}" in done.stderr


def test_info_reads_the_whole_trace_to_check_it(graftrace, tmp_path):
    path = tmp_path / "graftrace.data"
    subprocess.run([TOOL, "tree", path, "3", "20000", "500", "0"], capture_output=True, check=True)
    sound = graftrace("info", "--check")
    assert sound.stderr == "" and sound.stdout.endswith("nothing in it is damaged\n")
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 1
    path.write_bytes(changed)
    facts = graftrace("info").stdout
    done = graftrace("info", "--check", code=1)
    assert done.stdout == facts
    assert "damaged (checksum)" in done.stderr and "bytes" in done.stderr


def put_kernel_file(path):
    """Adds a file of Linux, which makes the recording one with the kernel's part."""
    data, at = path.read_bytes(), 16
    while (block := format_reader.block_header(data, at)).type != END:
        at += 64 + (block.payload_bytes + 7) // 8 * 8
    payload = struct.pack("<IIIIQ", KERNEL_FILE, 0, 2, 0, 6) + b"x\0" + b"nobody"

    def header(at, number, kind, flags, payload):
        fields = struct.pack("<QQHHIQQIII", at, number, kind, 1, flags, len(payload), len(payload), 0, 0,
                             format_reader.crc32c(payload))
        made = format_reader.BLOCK_MAGIC + fields
        return made + struct.pack("<I", format_reader.crc32c(made))
    end = data[at + 64:]
    added = header(at, block.number, KERNEL, OPTIONAL, payload) + payload
    path.write_bytes(data[:at] + added + header(at + len(added), block.number + 1, END, 0, end) + end)


def test_the_programs_part_is_not_shown_for_the_kernels(graftrace, tmp_path):
    path = tmp_path / "graftrace.data"
    subprocess.run([TOOL, "tree", path, "3", "2000", "50", "0"], capture_output=True, check=True)
    shown = graftrace("report", "--no-pager").stdout
    put_kernel_file(path)
    assert graftrace("info", "--check").stderr == ""
    nowhere = {"TMPDIR": "/nowhere"}
    both = graftrace("report", "--no-pager", env=nowhere)
    assert both.stdout == shown and "what the kernel recorded is left out" in both.stderr
    kernels = graftrace("report", "--no-pager", "--kernel", code=1, env=nowhere)
    assert kernels.stdout == ""
    assert "cannot make a directory below '/nowhere'" in kernels.stderr


def test_parse_trace_of_no_recording_at_all_is_refused(graftrace, tmp_path):
    (tmp_path / "graftrace.data").write_bytes(b"graftrace.data\n\0" + b"x" * 1000)
    done = graftrace("parse-trace", "graftrace.data", code=1)
    assert "is no graftrace recording" in done.stderr or "clock" in done.stderr
    assert not (tmp_path / "trace.csv").exists()


SLOW = """
#include <unistd.h>
__attribute__((noinline)) int step(int x) { __asm__ volatile(""); return x + 1; }
int main(void) {
    int x = 0;
    for (int round = 0; round < 3000; round++) {
        for (int i = 0; i < 5000; i++) x = step(x);
        usleep(1000);
    }
    return x == 0;
}
"""


def test_a_recording_whose_recorder_was_killed_holds_what_was_written(graftrace, tmp_path):
    (tmp_path / "slow.c").write_text(SLOW)
    subprocess.run(["gcc", "-O2", "-fpatchable-function-entry=5", "slow.c", "-o", "slow"],
                   cwd=tmp_path, check=True)
    path = tmp_path / "graftrace.data"
    process = graftrace.start("record", "./slow", start_new_session=True)
    try:
        wait_until(lambda: path.exists() and path.stat().st_size > 100_000, "the file")
        process.kill()
        process.wait(timeout=PATIENCE)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    recording = format_reader.read(path, strict=False)
    calls = sum(1 for writer in recording.writers for sub_buffer in writer.sub_buffers
                for word in sub_buffer.words
                if 0 < word >> 33 < 0x7fffff00 and not word >> 32 & 1)
    assert calls > 100_000
    shown = graftrace("report", "--format", "csv", code=None)
    # a kill can come between two pages of a write
    assert shown.returncode == ("cut off" in shown.stderr)
    assert "not ended" in shown.stderr
    column = shown.stdout.splitlines()[0].split(",").index("calls")
    counted = sum(int(line.split(",")[column]) for line in shown.stdout.splitlines()[1:])
    assert counted == calls


THREADS = """
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
static jmp_buf out[8];
__attribute__((noinline)) int leaf(int x) { __asm__ volatile(""); return x + 1; }
__attribute__((noinline)) int tree(int x) { return x ? tree(x - 1) + tree(x - 1) + leaf(x) : 1; }
__attribute__((noinline)) void leave(long i) { __asm__ volatile(""); longjmp(out[i], 1); }
static void *work(void *index) {
    long i = (long)index;
    for (int round = 0; round < 20; round++) {
        if (!setjmp(out[i])) leave(i);
        tree(6 + i % 3);
    }
    return NULL;
}
int main(void) {
    pthread_t threads[8];
    for (long i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (long i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    return 0;
}
"""


@pytest.mark.parametrize("options", [["--compress"], ["--no-compress"], ["-p", "function"]])
def test_both_readers_find_the_same_in_what_was_recorded(graftrace, tmp_path, options):
    (tmp_path / "threads.c").write_text(THREADS)
    subprocess.run(["gcc", "-O1", "-fpatchable-function-entry=5", "-pthread", "threads.c", "-o",
                    "threads"], cwd=tmp_path, check=True)
    graftrace("record", *options, "--", "./threads")
    library, reader = dumps(tmp_path / "graftrace.data")
    assert library.returncode == reader.returncode == 0
    assert library.stderr == reader.stderr == ""
    assert library.stdout == reader.stdout
    assert library.stdout.count("\nwriter ") == 9


def test_a_file_that_cannot_be_written_any_more_does_not_hold_the_program_up(graftrace, tmp_path):
    """Written into a pipe whose reader goes away: as good as a full disk, without root."""
    (tmp_path / "fast.c").write_text(SLOW.replace("usleep(1000)", "(void)usleep"))
    subprocess.run(["gcc", "-O2", "-fpatchable-function-entry=5", "fast.c", "-o", "fast"],
                   cwd=tmp_path, check=True)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received = []

    def take_some():
        with open(pipe, "rb", buffering=0) as end:
            while sum(map(len, received)) < 300_000:
                received.append(end.read(65536))

    reader = threading.Thread(target=take_some)
    reader.start()
    done = graftrace("record", "--no-compress", "-o", "pipe", "--", "./fast", code=None,
                     timeout=PATIENCE)
    reader.join(timeout=PATIENCE)
    assert "cannot write 'pipe': Broken pipe" in done.stderr
    assert "the program goes on" in done.stderr and "incomplete" in done.stderr
    (tmp_path / "received.data").write_bytes(b"".join(received))
    recording = format_reader.read(tmp_path / "received.data", strict=False)
    assert recording.writers and recording.end is None
