# SPDX-License-Identifier: MIT
"""The unikernel boots, runs its targets on one, two and eight processors, and says what went wrong."""

import json
import os
import random
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

from conftest import ROOT
from unikernel import COMPILER, LIMIT_S, Machine, Terminal, call, compilers_of, image

TARGETS = ["block-hasher", "calls", "faults", "hello", "slow-memcpy", "steps", "stress",
           "webserver"]
CPUS = [1, 2, 8]


@pytest.fixture(scope="module", autouse=True)
def built():
    """Every target, so that no boot has to wait for a compiler."""
    for target in TARGETS:
        image(target)


@pytest.mark.parametrize("cpus", CPUS)
def test_hello_says_hello_and_ends_well(cpus):
    code, output, messages = call("run", TARGET="hello", CPUS=cpus)
    assert (code, messages) == (0, "")
    assert f": {cpus} CPU" in output
    assert output.endswith("Hello from a kernel with one program in it.\n")


@pytest.mark.parametrize("cpus", CPUS)
def test_threads_locks_sleeps_and_recursion_come_out_right(cpus):
    code, output, _ = call("run", TARGET="stress", CPUS=cpus)
    assert code == 0 and "stress: all is well\n" in output, output


def fnv(data, value=0xcbf29ce484222325):
    for byte in data:
        value = (value ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return value


@pytest.mark.parametrize("cpus", CPUS)
def test_the_disk_is_read_whole_by_several_threads(tmp_path, cpus):
    block = 16384
    content = random.Random(cpus).randbytes(20 * block + 512)
    disk = tmp_path / "disk.img"
    disk.write_bytes(content)
    hashes = b"".join(fnv(content[at:at + block]).to_bytes(8, "little")
                      for at in range(0, len(content), block))
    code, output, messages = call("run", TARGET="block-hasher", CPUS=cpus, DISK=disk)
    assert code == 0, output + messages
    assert "block-hasher: 21 blocks by 4 threads" in output
    assert f"hash {fnv(hashes):016x}\n" in output


def test_the_slow_copy_copies():
    code, output, _ = call("run", TARGET="slow-memcpy")
    assert code == 0 and "12800 KiB copied" in output


def ask(connection, path):
    """One request on a connection that stays open: the page."""
    connection.sendall(f"GET {path} HTTP/1.1\r\n\r\n".encode())
    answer = b""
    while not (match := re.search(rb"Content-Length: (\d+)\r\n(?:.+\r\n)*\r\n", answer)) or \
            len(answer) < match.end() + int(match.group(1)):
        piece = connection.recv(65536)
        assert piece, answer
        answer += piece
    return answer[match.end():]


@pytest.mark.parametrize("cpus", CPUS)
def test_the_web_server_answers_many_at_once(cpus):
    with Machine(TARGET="webserver", CPUS=cpus) as machine:
        machine.wait_for("webserver: http")
        # One after the other: QEMU's network lets no more than one connection wait to be accepted.
        connections = []
        for _ in range(24):
            connections.append(machine.connect())
            assert ask(connections[-1], "/primes/10").startswith(b"4 primes up to 10,")
        right = []

        def visit(number):
            for limit in (100, 1000, 10 * number + 10):
                count = sum(all(n % d for d in range(2, int(n ** .5) + 1))
                            for n in range(2, limit + 1))
                page = ask(connections[number], f"/primes/{limit}")
                right.append(page.startswith(b"%d primes up to %d," % (count, limit)))

        visitors = [threading.Thread(target=visit, args=(number,)) for number in range(24)]
        for visitor in visitors:
            visitor.start()
        for visitor in visitors:
            visitor.join()
        for connection in connections:
            connection.close()
        assert right == [True] * 72
        assert machine.get("/nothing")[0] == 404
        assert b" 98 requests served" in machine.get("/status")[1]


def test_a_connection_serves_several_requests_in_a_row():
    with Machine(TARGET="webserver") as machine:
        machine.wait_for("webserver: http")
        with machine.connect() as connection:
            # The second begins in the first one's packet, the third comes in pieces.
            connection.sendall(b"GET /primes/10 HTTP/1.1\r\n\r\nGET /primes/20 HTTP/1.1\r\n\r")
            connection.sendall(b"\nGET /primes/30 HTTP/1.1\r\nConnection: close\r\n\r\n")
            answer = b""
            while chunk := connection.recv(65536):
                answer += chunk
        assert answer.count(b"HTTP/1.1 200 OK") == 3
        assert re.findall(rb"primes up to (\d+)", answer) == [b"10", b"20", b"30"]


def test_garbage_on_the_port_harms_nobody():
    noise = random.Random(8080)
    with Machine(TARGET="webserver") as machine:
        machine.wait_for("webserver: http")
        for garbage in [b"\0" * 5000, b"\r\n\r\n", b"GET", b"POST / HTTP/1.1\r\n\r\n",
                        b"GET /" + b"a" * 9000, b"GET /primes/99999999999999999 HTTP/1.1\r\n\r\n",
                        *(noise.randbytes(noise.randrange(1, 3000)) for _ in range(20))]:
            try:
                with machine.connect() as connection:
                    connection.sendall(garbage)
                    if noise.random() < 0.5:
                        connection.shutdown(1)
                        connection.recv(65536)
            except OSError:
                pass  # the server may hang up first
        # Some hold their connections open and say nothing.
        silent = []
        for _ in range(20):
            silent.append(machine.connect())
            assert machine.get("/primes/10")[0] == 200
        status, body = machine.get("/primes/100")
        assert status == 200 and b"25 primes" in body
        for connection in silent:
            connection.close()
        assert machine.process.poll() is None
        assert "***" not in machine.output()


@pytest.mark.parametrize("fault, said", [
    ("null", r"\*\*\* page fault: write to 0000000000000000 on CPU \d, thread 1 \(main\)"),
    ("overflow", r"\*\*\* stack overflow on CPU \d, thread 1 \(main\)"),
    ("divide", r"\*\*\* division by zero on CPU \d, thread 1 \(main\)"),
    ("abort", r"\*\*\* invalid instruction on CPU \d, thread 1 \(main\)"),
])
def test_a_crash_is_reported_by_name(fault, said):
    code, output, _ = call("run", TARGET="faults", OPTIONS=f"fault={fault}", LINGER=1)
    assert code == 1
    assert re.search(said, output), output
    assert re.search(r"rip ffffffff80[0-9a-f]{6}", output)
    name = "abort" if fault == "abort" else f"fault_{fault}"
    assert re.search(rf"call stack:\n  ffffffff80\w+ {name}\+0x", output), output
    if fault == "null":
        assert re.search(r" fault_null\+.*\n.* main\+", output)
    assert re.search(r" thread_run\+0x", output)
    assert output.endswith("the machine goes on for 1 second (LINGER)\n") and "the trace" not in output


def test_a_call_that_leads_nowhere_names_its_caller():
    _, output, _ = call("run", TARGET="faults", OPTIONS="fault=jump")
    assert re.search(r"\*\*\* page fault: execution at 0000000000000000 .*\n(?:  r.*\n)+call stack:\n"
                     r"  0000000000000000\n  \w+ fault_jump\+.*\n  \w+ main\+", output), output


@pytest.mark.parametrize("trace", ["", "ftrace"])
def test_a_report_from_an_interrupt_goes_on_in_what_was_interrupted(trace):
    image("faults", TRACE=trace)
    code, output, _ = call("run", TARGET="faults", TRACE=trace, OPTIONS="fault=interrupt")
    assert code == 1
    assert re.search(r" interrupt_dispatch\+.*\n.* interrupt_common\+.*\n"
                     r".* (?:apic_send_self|fault_interrupt)\+.*\n(?:.*\n)*?.* thread_run\+", output), output


def test_reports_of_several_threads_follow_each_other():
    with Machine(TARGET="faults", CPUS=2, OPTIONS="fault=several", LINGER=60) as machine:
        machine.wait_for(r"(?s)(is stopped for good.*){4}")
        output = machine.output()
    reports = output.split("\n*** ")[1:]
    assert len(reports) == 4, output
    for report in reports:
        assert re.match(r"page fault: write to 0000000000000000 on CPU \d, thread \d+ .*\n"
                        r"(?:  r.*\n){5}call stack:\n.* fault_null\+.*\n.* fail\+.*\n"
                        r".* thread_run\+.*\n", report), report
        assert "is stopped for good" in report


def test_a_deadlock_says_who_waits_for_whom():
    code, output, _ = call("run", TARGET="faults", OPTIONS="fault=deadlock")
    assert code == 1
    waits = re.findall(r"thread (\d+) \((\w+)\) waits for mutex (\S+), "
                       r"which thread (\d+) \((\w+)\) holds", output)
    assert len(waits) == 2, output
    (a, a_name, first, b, b_name), (c, c_name, second, d, d_name) = waits
    assert (a, a_name, b, b_name) == (d, d_name, c, c_name) and first != second
    assert {a_name, b_name} == {"main", "other"}
    assert "fault_deadlock+0x" in output and "take_second_then_first+0x" in output


def test_a_processor_that_takes_no_interrupt_is_reported():
    with Machine(TARGET="faults", CPUS=2, OPTIONS="fault=hang") as machine:
        machine.wait_for(r"\*\*\* CPU (\d) has taken no interrupt for 10 s; it does this:\n"
                         r"on CPU \1, thread 1 \(main\)\n.* fault_hang\+", timeout=120)


def test_exhausted_memory_is_reported_and_survived():
    code, output, _ = call("run", TARGET="faults", OPTIONS="fault=memory", MEMORY="64M")
    assert code == 1
    assert re.search(r"memory: exhausted: no 64 KiB in a row left of \d+ MiB", output), output
    assert "fault_memory+0x" in output
    assert re.search(r"malloc gave \d+ MiB, then nothing", output)


def test_a_ring_that_is_too_large_for_the_memory_shrinks_and_says_so():
    code, output, _ = call("run", TARGET="hello", TRACE="ftrace", MEMORY="96M", BUFFER="256M")
    assert code == 0
    said = re.search(r"trace: the ring has (\d+) KiB, not 262144: there is no more memory\n", output)
    assert 1024 <= int(said[1]) < 96 * 1024
    assert "\nHello from a kernel with one program in it.\n" in output


def test_a_ring_that_is_too_small_grows_and_says_so():
    code, output, _ = call("run", TARGET="hello", TRACE="ftrace", BUFFER="1K")
    assert code == 0 and "trace: the ring has 1024 KiB, not 1: none is smaller\n" in output
    assert output.endswith("the trace ends with the machine: LINGER=60 keeps both for a minute\n")


@pytest.mark.parametrize("memory, cpus", [("9M", 2), ("16M", 1), ("32M", 8)])
def test_a_ring_that_shrinks_leaves_room_for_the_network(memory, cpus):
    with Machine(TARGET="hello", TRACE="ftrace", MEMORY=memory, CPUS=cpus, LINGER=60) as machine:
        machine.wait_for("can be fetched for 60 seconds")
        assert "trace: the ring has " in machine.output()
        answer = machine.ask("GET /ftrace/trace HTTP/1.0\r\nHost: localhost\r\n\r\n", machine.trace_port)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert re.search(rb"\| +main\(\) {\n", answer), answer


def test_the_console_says_where_to_fetch():
    with Machine(TARGET="webserver", TRACE="ftrace") as machine:
        machine.wait_for(rf"webserver: http://localhost:{machine.port}/\n")
        machine.wait_for(rf"trace: http://localhost:{machine.trace_port}/ftrace/trace\n")


def test_the_monitors_nmi_has_each_processor_say_where_it_is(tmp_path):
    path = tmp_path / "monitor"
    with Machine(TARGET="webserver", CPUS=2,
                 QEMU_ARGS=f"-monitor unix:{path},server=on,wait=off") as machine:
        machine.wait_for("webserver: http")
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(path))
            idle = (r"\*\*\* non-maskable interrupt on CPU (\d), thread 0 \(idle\)\n"
                    r".* schedule_idle\+")
            end = time.monotonic() + LIMIT_S
            # Each is asked until it has found nothing to do.
            while set(re.findall(idle, machine.output())) != {"0", "1"}:
                assert time.monotonic() < end, machine.output()
                monitor.sendall(b"nmi\n")
                time.sleep(0.1)
        assert machine.get("/primes/10")[0] == 200


def test_an_option_that_is_no_number_is_named():
    _, output, _ = call("run", TARGET="hello", OPTIONS="cpus=many")
    assert "option cpus=many is no number" in output and "Hello" in output


def test_a_fault_that_nobody_knows_is_answered_with_those_there_are():
    for options, said in (("", "which one?"), ("fault=", "there is no fault ''."),
                          ("fault=nosuch", "there is no fault 'nosuch'.")):
        code, output, _ = call("run", TARGET="faults", OPTIONS=options)
        assert code == 1
        assert f"faults: {said} OPTIONS=fault=NAME, with one of\n null overflow jump several " in output


@pytest.mark.parametrize("nmi", [0, 1])
def test_an_option_is_off_with_0(nmi):
    code, output, _ = call("run", TARGET="stress", OPTIONS=f"nmi={nmi}")
    assert code == 0 and ("calls stress_nmi" in output) == bool(nmi)


@pytest.mark.parametrize("options, said", [
    ({"TARGET": "hello", "OPTIONS": "nosuch=1"},
     "OPTIONS: nobody knows 'nosuch'; hello knows nothing, the kernel cpus debugsyscalls\n"),
    ({"TARGET": "stress", "TRACE": "ftrace", "OPTIONS": "nmi=0 mended=1"},
     "OPTIONS: nobody knows 'mended'; stress knows depth endless nmi, the kernel cpus debugsyscalls "
     "ftrace kprobe_event skew trace_event\n"),
    ({"TARGET": "stress", "OPTIONS": "nmi"}, "OPTIONS: 'nmi' is not NAME=VALUE"),
    ({"TARGET": "hello", "OPTIONS": "linger=3"}, "OPTIONS: say LINGER=3 instead of linger=3"),
    ({"TARGET": "nonsense"}, "there is no target 'nonsense'"),
    ({"TARGET": "../faults"}, "there is no target '../faults'"),
    ({"TARGET": ""}, "which program? Say TARGET="),
    ({"TARGET": "hello", "TRACE": "strace"}, "TRACE=strace is not known"),
    ({"TARGET": "hello", "CPUS": "65"}, "CPUS=65 is not from 1 to 64"),
    ({"TARGET": "hello", "MEMORY": "much"}, "MEMORY=much is no number"),
    ({"TARGET": "hello", "BUFFER": "-1"}, "BUFFER=-1 is no number"),
    ({"TARGET": "hello", "LINGER": "1s"}, "LINGER=1s is no number of seconds"),
    ({"TARGET": "hello", "PORT": "99999"}, "PORT=99999 is not from 1 to 65535"),
    ({"TARGET": "hello", "TRACE_PORT": "x"}, "TRACE_PORT=x is not from 1 to 65535"),
    ({"TARGET": "hello", "TRACE": "ftrace", "PORT": "9090", "TRACE_PORT": "9090"},
     "PORT and TRACE_PORT are both 9090"),
    ({"TARGET": "hello", "MEMORY": "1M"}, "MEMORY=1M is too little: the kernel itself ends at 3M"),
])
def test_a_wrong_option_is_refused_in_words(options, said):
    code, _, messages = call("run", **options)
    assert code == 2 and said in messages
    if "target" in said or "which program" in said:
        assert all(target in messages for target in TARGETS)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, messages = call("run", TARGET="hello", PORT=port)
    assert code == 1
    assert f"tools/unikernel: {port} is taken on this machine: say another PORT=\n" in messages


def test_a_machine_that_is_switched_off_by_others_has_failed(tmp_path):
    path = tmp_path / "monitor"
    with Machine(TARGET="webserver", QEMU_ARGS=f"-monitor unix:{path},server=on,wait=off") as machine:
        machine.wait_for("webserver: http")
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(path))
            monitor.sendall(b"system_reset\n")
            assert machine.wait() == 1
        assert "without the kernel's doing" in machine.messages()


@pytest.mark.parametrize("command", [("tools/unikernel", "run"), ("make", "-s", "run")])
def test_ctrl_c_ends_the_machine_quietly(command):
    with Terminal(*command, TARGET="webserver") as machine:
        machine.wait_for("webserver: http")
        machine.type("\x03")
        assert machine.wait() == -signal.SIGINT
        said = machine.output().partition("webserver: http")[2].partition("\n")[2]
    assert said == "^Ctools/unikernel: the machine is switched off (SIGINT)\n"


@pytest.mark.parametrize("command", [("tools/unikernel", "run"), ("make", "-s", "run")])
def test_a_signal_to_the_run_alone_ends_the_machine_quietly(command):
    with Terminal(*command, TARGET="webserver") as machine:
        machine.wait_for("webserver: http")
        machine.process.terminate()
        assert machine.wait() == -signal.SIGTERM
        said = machine.output().partition("webserver: http")[2].partition("\n")[2]
        assert said == "tools/unikernel: the machine is switched off (SIGTERM)\n"
        with pytest.raises(ConnectionRefusedError):
            machine.connect()


def test_a_run_in_the_background_of_a_terminal_goes_on():
    script = "tools/unikernel run & read line; jobs; kill %1; wait %1; echo ended with $?"
    with Terminal("bash", "-mc", script, TARGET="webserver") as machine:
        machine.wait_for("webserver: http")
        assert machine.get("/primes/10")[0] == 200
        machine.type("\n")
        machine.wait_for(r"\[1\]\+ +Running +tools/unikernel run &\n")
        machine.wait_for(r"ended with 143\n")
        assert "terminating" not in machine.output()


def test_a_missing_emulator_is_answered_with_the_line_that_installs_it():
    code, _, messages = call("run", TARGET="hello", QEMU="no-such-emulator")
    assert code == 2
    assert "apt-get install --no-install-recommends qemu-system-x86" in messages


def test_make_lists_the_targets_with_a_line_each():
    listed = subprocess.run(["make", "-s", "targets"], cwd=ROOT, check=True, capture_output=True,
                            text=True).stdout.splitlines()
    assert [line.split()[0] for line in listed] == TARGETS
    assert all(len(line.split()) > 3 for line in listed)


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_the_kernel_is_compiled_by_who_is_asked(compiler):
    """Beside what another compiler has made, in the same build directory."""
    assert compilers_of(image("hello", CC=compiler)) == {compiler}


def test_the_kernel_of_these_tests_is_of_their_compiler():
    for trace in ("", "ftrace"):
        assert compilers_of(image("webserver", TRACE=trace)) == {COMPILER}


def test_no_page_is_writable_and_executable():
    listed = subprocess.run(["readelf", "-lW", image("webserver")], check=True, text=True,
                            capture_output=True).stdout
    flags = re.findall(r"^  LOAD +(?:0x\w+ +){5}([RWE ]{3})", listed, re.M)
    assert sorted(flags) == ["R  ", "R E", "RW "]


def test_without_trace_there_is_no_instrumentation_in_the_kernel():
    path = image("webserver")
    sections = subprocess.run(["readelf", "-SW", path], check=True, text=True,
                              capture_output=True).stdout
    assert "__patchable_function_entries" not in sections and ".gt_" not in sections
    names = subprocess.run(["nm", "-S", path], check=True, text=True, capture_output=True).stdout
    assert not re.findall(r"^\w+ \w+ \w (?:gt_|graftrace_|trace_)\w*", names, re.M)
    assert b"/ftrace" not in path.read_bytes()
    # No function begins with room for a jump.
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, text=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C"}).stdout
    functions = set(re.findall(r"^\w+ \w+ [tT] (\w+)$", names, re.M))
    begins = [(name, instruction)
              for name, instruction in re.findall(r"^\w+ <(\w+)>:\n[^\t]*\t(\S+)", code, re.M)
              if name in functions]
    assert len(begins) > 500
    assert not [name for name, instruction in begins if instruction.startswith("nop")]


def functions_of_the_sources(build):
    """What the sources of the kernel, lwIP and a target define, and what of it asks to be inline: by the compiler,
    which inlines nothing at -O0."""
    names, folders = set(), {ROOT / "core", ROOT / "include"}
    for source in json.loads((build / "compile_commands.json").read_text()):
        if not re.search(r"lib(kernel|lwip|webserver)\.a\.p/", source["output"]):
            continue
        words = [word for word in shlex.split(source["command"]) if not re.match(r"-O|-MD$|ccache$", word)]
        for option in ("-o", "-MQ", "-MF"):
            at = words.index(option)
            del words[at:at + 2]
        file = (Path(source["directory"]) / source["file"]).resolve()
        folders.add(file.parent)
        folders |= {Path(source["directory"]) / folder for folder in re.findall(r"-isystem (\S+)", source["command"])}
        with tempfile.NamedTemporaryFile(suffix=".o") as made:
            subprocess.run([*words, "-O0", "-w", "-o", made.name], cwd=source["directory"], check=True,
                           capture_output=True)
            listed = subprocess.run(["nm", made.name], check=True, text=True, capture_output=True).stdout
        names |= set(re.findall(r"^\w+ [tT] (\w+)$", listed, re.M))
    texts = [path.read_text(errors="replace") for folder in folders for path in folder.rglob("*.[ch]")]
    return names, {name for text in texts for name in re.findall(r"\binline\b[^;{=]*?(\w+)\s*\(", text)}


def test_every_function_that_does_not_ask_to_be_inline_can_be_traced():
    path = image("webserver", TRACE="ftrace")
    names, asked = functions_of_the_sources(path.parents[2])
    defined = names - asked
    assert len(defined) > 500 and {"tcp_process", "is_prime", "schedule"} <= defined
    listed = subprocess.run(["nm", path], check=True, text=True, capture_output=True).stdout
    there = {name.partition(".")[0] for name in re.findall(r"^\w+ [tT] (\S+)$", listed, re.M)}
    assert not defined - there


def test_the_kernel_is_as_small_as_it_says():
    """An afternoon's reading: README.md of the kernel states these limits."""
    lines = {}
    for path in sorted((ROOT / "port" / "unikernel").rglob("*")):
        part = path.relative_to(ROOT / "port" / "unikernel")
        if path.suffix in (".c", ".h", ".S", ".ld", ".py") and part.parts[0] != "targets":
            lines[str(part)] = [line for line in path.read_text().splitlines() if line.strip()]
    kernel = {name: text for name, text in lines.items() if not name.startswith("trace")}
    assert sum(len(text) for text in kernel.values()) <= 6500
    assert not {name: len(text) for name, text in kernel.items() if len(text) > 400}
