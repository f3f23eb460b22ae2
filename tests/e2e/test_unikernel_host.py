# SPDX-License-Identifier: MIT
"""`record --from` a kernel with `--kernel`: the guest and this machine's Linux in one recording, on one line.
What happened first is known from outside: a client sends before the guest answers, and receives after it. Where
tracefs may not be used, the guest alone is recorded."""

import csv
import http.server
import io
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from conftest import BUILD, PATIENCE, wait_until
from unikernel import machine
from test_unikernel_trace import put, visit

pytestmark = pytest.mark.usefixtures("alone_with_tracefs")
GRAFTRACE = BUILD / "cli" / "graftrace"
SEND, RECEIVE = "k:syscalls:sys_enter_sendto", "k:syscalls:sys_exit_recvfrom"
CLOCK = re.compile(r"kernel-clock(-at-start)?=(x86-tsc|mono): (-?\d+) (ticks|ns) later than that of the other machine,"
                   r" to (\d+) ns \(measured by (\d+) exchanges over the network\)")
LINE = re.compile(r"^ *(\d+)\.(\d{9}) \| +(\d+)\) +(\S+)-(\d+) +\|.*?\|  ( *)(.*)$", re.M)


class Recorder:
    def __init__(self, url, path, *options):
        self.path = path
        self.process = subprocess.Popen([GRAFTRACE, "record", "-o", path, "--kernel=try", *options, "--from", url],
                                        stderr=subprocess.PIPE, text=True)

    def begins(self):
        """The clocks have been compared, and both are recorded."""
        end = time.monotonic() + 60
        while not (self.path.exists() and self.path.stat().st_size) or (
                b"trace_clock" not in (whole := self.path.read_bytes()) and self._has_host(whole)):
            assert self.process.poll() is None, self.process.stderr.read()
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(0.2)
        return self

    @staticmethod
    def _has_host(_):
        return os.path.isdir("/sys/kernel/tracing/instances") and any(
            name.startswith("graftrace-") for name in os.listdir("/sys/kernel/tracing/instances"))

    def end(self, how=signal.SIGINT):
        self.process.send_signal(how)
        _, self.said = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, self.said
        return self

    @property
    def has_host(self):
        return "without the kernel" not in self.said


def url_of(machine):
    return f"http://localhost:{machine.trace_port}"


def lines_of(graftrace, path, *options):
    """(ns, CPU, task's name, its number, text) of what is shown."""
    shown = graftrace("show", "--no-pager", "--ns", "-O", "funcgraph-proc", *options, path).stdout
    return [(int(line[0]) * 10**9 + int(line[1]), int(line[2]), line[3], int(line[4]), line[6])
            for line in LINE.findall(shown)]


@pytest.fixture(scope="module")
def recorded(machine, tmp_path_factory, alone_with_tracefs):
    """A recording in which this thread has visited the guest, again and again: (recorder, visits)."""
    path = tmp_path_factory.mktemp("host") / "both.data"
    recorder = Recorder(url_of(machine), path, "--kernel=events", "-e", SEND, "-e", RECEIVE).begins()
    for _ in range(20):
        visit(machine, 1)
        time.sleep(0.02)
    return recorder.end(), 20


def test_a_request_is_sent_before_it_is_answered_and_received_after(graftrace, recorded):
    recorder, visits = recorded
    if not recorder.has_host:
        return
    clock = CLOCK.findall(graftrace("info", recorder.path).stdout)[-1]
    error, own = int(clock[4]), threading.get_native_id()
    # tests beside make the way there longer, and not the clock wrong
    assert clock[0] == "" and 0 < error < 500_000_000 and int(clock[5]) > 64, clock
    lines = lines_of(graftrace, recorder.path)
    sent = [ns for ns, _, _, tid, text in lines if tid == own and "sys_enter_sendto" in text]
    received = [ns for ns, _, _, tid, text in lines if tid == own and "sys_exit_recvfrom" in text
                or tid == own and "sys_recvfrom ->" in text]
    answers = [ns for ns, _, _, _, text in lines if text.startswith("answer()")]
    assert len(answers) == len(sent) == visits
    for number, answered in enumerate(answers):
        assert sent[number] <= answered + error
        after = [ns for ns in received if ns > sent[number]]
        assert max(ns for ns in after if number + 1 == visits or ns < sent[number + 1]) >= answered - error


def test_the_guests_figures_are_as_without_the_host(graftrace, recorded):
    recorder, visits = recorded

    def rows(*options):
        done = graftrace("report", "--no-pager", "--format", "csv", *options, recorder.path)
        return {row["function"]: row for row in csv.DictReader(io.StringIO(done.stdout))}

    both, guest = rows(), rows("--user")
    assert int(guest["answer"]["calls"]) == visits
    for name, row in guest.items():
        assert {**both[name], "self_percent": 0} == {**row, "self_percent": 0}


def test_guest_and_host_can_be_picked_and_have_cpus_of_their_own(graftrace, recorded):
    recorder, visits = recorded
    guest = lines_of(graftrace, recorder.path, "--user")
    assert sum(text.startswith("answer()") for *_, text in guest) == visits
    assert not [text for *_, text in guest if "sys_enter" in text]
    if not recorder.has_host:
        return
    host = lines_of(graftrace, recorder.path, "--kernel")
    assert [text for *_, text in host if "sys_enter_sendto" in text]
    assert not [text for *_, text in host if text.startswith("answer()")]
    assert {cpu for _, cpu, *_ in guest} <= {0, 1}  # the machine has two
    assert min(cpu for _, cpu, *_ in host) >= 2


@pytest.mark.parametrize("command", [["report"], ["graph", "-i"], ["info"], ["report", "--by", "thread"],
                                     ["export", "-q", "--to", "chrome", "-o", "-"],
                                     ["export", "-q", "--to", "html", "-o", "-"]])
def test_every_view_takes_both(graftrace, recorded, command):
    recorder, _ = recorded
    assert graftrace(*command, recorder.path).stdout


def test_what_a_killed_recorder_wrote_is_read_with_the_host(graftrace, machine):
    path = graftrace.directory / "killed.data"
    recorder = Recorder(url_of(machine), path, "--kernel=events", "-e", SEND).begins()
    visit(machine, 3)
    time.sleep(2)
    recorder.process.kill()
    _, recorder.said = recorder.process.communicate(timeout=PATIENCE)
    lines = lines_of(graftrace, path)
    assert sum(text.startswith("answer()") for *_, text in lines) == 3
    if recorder.has_host:
        assert [text for *_, text in lines if "sys_enter_sendto" in text]
        assert CLOCK.search(graftrace("info", path, code=None).stdout)[1] == "-at-start"
    graftrace("record", "--kernel=try", "-o", "next.data", "true")  # puts away what it left


def test_of_the_host_one_process_can_be_chosen(graftrace, machine):
    path = graftrace.directory / "one.data"
    wait_until(lambda: put(machine, "trace", "")[0] != 409, "the end of the killed reader")
    recorder = Recorder(url_of(machine), path, "--kernel=events", "-e", SEND, "-P", str(os.getpid())).begins()
    visit(machine, 3)
    recorder.end()
    if not recorder.has_host:
        return
    tasks = {tid for *_, tid, text in lines_of(graftrace, path, "--kernel") if "sys_enter_sendto" in text}
    assert threading.get_native_id() in tasks
    assert tasks <= {int(name) for name in os.listdir("/proc/self/task")}


def test_what_of_this_machine_is_recorded_wants_the_kernel(graftrace):
    for words in (["-a"], ["--kernel-event", "sched"], ["-l", "k:vfs_*"]):
        assert "--kernel" in graftrace("record", *words, "--from", "http://localhost:1", code=2).stderr
    assert "no program besides" in graftrace("record", "-P", "1", "--from", "http://localhost:1", code=2).stderr


# ---- a guest that is none: its clock is known

class Guest(http.server.ThreadingHTTPServer):
    """Serves the first block of a recording, and a clock that is `late_ns` behind this machine's."""

    daemon_threads = True

    def __init__(self, first_block, late_ns):
        super().__init__(("127.0.0.1", 0), Handler)
        self.first_block, self.late_ns, self.over, self.asked = first_block, late_ns, threading.Event(), 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path.endswith("trace_pipe.data"):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(self.server.first_block)
            self.server.over.wait(PATIENCE)
            self.close_connection = True
            return
        late = self.server.late_ns(self.server.asked) if self.server.late_ns else None
        self.server.asked += 1
        now = (time.monotonic_ns() - (late or 0)) // 1000
        text = f"entries: 0\nnow ts: {now // 10**6:5}.{now % 10**6:06}\nread events: 0\n" if self.server.late_ns \
            else "entries: 0\n"
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.write(f"{len(text):x}\r\n{text}\r\n0\r\n\r\n".encode())

    def do_PUT(self):
        self.server.over.set()
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture(scope="module")
def first_block(tmp_path_factory):
    """A recording's first block with the magic before it, and nanoseconds to ticks by its clock."""
    path = tmp_path_factory.mktemp("first") / "it.data"
    subprocess.run([GRAFTRACE, "record", "-o", path, "--no-compress", "true"], check=True, stderr=subprocess.DEVNULL)
    whole = path.read_bytes()
    payload = int.from_bytes(whole[16 + 32:16 + 40], "little")
    clock = 16 + 64 + 8
    mult, shift = (int.from_bytes(whole[clock + at:clock + at + size], "little") for at, size in ((16, 8), (24, 4)))
    return whole[:16 + 64 + (payload + 7) // 8 * 8], lambda ns: (ns << shift) // mult


def measured(graftrace, guest):
    """(offset in the clock's unit, its unit, error in ns) at the end; None: there is no kernel to record."""
    path = graftrace.directory / "fake.data"
    recorder = Recorder(guest.url, path, "--kernel=events", "-e", SEND).begins().end()
    guest.shutdown()
    if not recorder.has_host:
        return None
    found = CLOCK.findall(graftrace("info", path).stdout)[-1]
    assert found[0] == ""
    return int(found[2]), found[3], int(found[4])


def test_the_difference_of_the_clocks_is_measured_within_the_error_that_is_told(graftrace, first_block):
    block, ticks = first_block
    late = 987_654_321_000
    found = measured(graftrace, Guest(block, lambda _: late))
    if not found:
        return
    offset, unit, error = found
    truth = ticks(late) if unit == "ticks" else late
    # and the clock's rate was measured in some milliseconds only
    assert abs(offset - truth) <= ticks(error) + truth // 10_000
    assert error < 100_000_000


def test_a_clock_that_jumps_meanwhile_makes_the_error_larger(graftrace, first_block):
    block, ticks = first_block
    jump = 200_000_000
    found = measured(graftrace, Guest(block, lambda asked: 0 if asked < 64 else jump))
    if not found:
        return
    offset, unit, error = found
    assert error >= jump // 2
    for truth in (0, jump):
        assert abs(offset - (ticks(truth) if unit == "ticks" else truth)) <= ticks(error) + ticks(jump) // 100


def test_a_kernel_that_tells_no_clock_is_refused(graftrace, first_block):
    guest = Guest(first_block[0], None)
    done = graftrace("record", "--kernel=try", "-o", "none.data", "--for", "1s", "--from", guest.url, code=None)
    guest.over.set()
    guest.shutdown()
    if "without the kernel" not in done.stderr:
        assert done.returncode == 1
        assert "cannot be compared with this machine's" in done.stderr


def test_a_block_that_came_damaged_gets_no_checksum_that_says_otherwise(graftrace, first_block):
    block = bytearray(first_block[0])
    block[-3] ^= 1
    guest = Guest(bytes(block), lambda _: 0)
    done = graftrace("record", "--kernel=try", "-o", "none.data", "--for", "1s", "--from", guest.url, code=None)
    guest.over.set()
    guest.shutdown()
    if "without the kernel" not in done.stderr:
        assert done.returncode == 1
        assert "the block at byte 16 is damaged" in done.stderr
