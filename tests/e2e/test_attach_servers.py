# SPDX-License-Identifier: MIT
"""Servers as the distribution ships them are attached to and left again under load: no request is
lost or answered otherwise, and their code, maps, threads, signals and files are as before.

GRAFTRACE_ROUNDS: how often (1000 for the long run; a few times otherwise)."""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest

from attaching import code, descriptors, looks_as, maps, signals
from conftest import PATIENCE, free_port, let_port_go, line_with, wait_until

ROUNDS = int(os.environ.get("GRAFTRACE_ROUNDS", "3"))
# How long each is, in turn: what comes between two attaches differs.
TIMES_MS = [300, 5, 100, 20]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def is_idle(pid):
    """All threads wait."""
    stats = [task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/stat")]
    return all(text.rsplit(")")[1].split()[0] == "S" for text in stats)


def look(pid):
    """What has to be as before, but for the memory that servers take and give back by themselves."""
    named = [line for line in maps(pid).splitlines() if len(line.split()) > 5 and "[heap]" not in line]
    return {"maps": named, "code": code(pid), "signals": signals(pid), "descriptors": descriptors(pid)}


def pieces(pid):
    """In how many pieces that memory is."""
    return sum(len(line.split()) == 5 for line in maps(pid).splitlines())


class Before:
    """How processes are while nothing asks them for anything."""

    def __init__(self, *pids):
        self.pids = pids
        wait_until(lambda: all(is_idle(pid) for pid in pids))
        self.looks = [look(pid) for pid in pids]
        self.pieces = [pieces(pid) for pid in pids]

    def check(self):
        """Connections end a moment after their clients."""
        for pid, before, count in zip(self.pids, self.looks, self.pieces):
            wait_until(lambda: descriptors(pid) == before["descriptors"])
            assert looks_as(pid, before, look)
            assert pieces(pid) < count + 16, maps(pid)


def children(pid):
    text = "".join(task.read_text() for task in Path(f"/proc/{pid}/task").glob("*/children"))
    return [int(word) for word in text.split()]


class Server:
    """A server that runs until the test is over."""

    def __init__(self, command, port, **how):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, **how)
        self.pid = self.process.pid
        self.port = port
        wait_until(lambda: answers(port))

    def stop(self, number=signal.SIGTERM):
        assert self.process.poll() is None, "the server has ended"
        self.process.send_signal(number)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()
            let_port_go(self.port)


def ready_workers(pid):
    """Both, once they have loaded what they need: they take that name last."""
    found = children(pid)
    names = [Path(f"/proc/{child}/cmdline").read_text() for child in found]
    return len(found) == 2 and all("worker process" in name for name in names) and found


@pytest.fixture
def redis(tmp_path):
    port = free_port()
    server = Server(["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1",
                     "--dir", str(tmp_path)], port)
    yield server
    server.stop()


@pytest.fixture
def nginx(tmp_path):
    port = free_port()
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "page").write_text("some text\n" * 200)
    (tmp_path / "conf").write_text(f"""
        daemon off; worker_processes 2; pid {tmp_path}/pid; error_log {tmp_path}/error;
        user {pwd.getpwuid(os.getuid()).pw_name};
        events {{ worker_connections 256; }}
        http {{ access_log off; client_body_temp_path {tmp_path}/a; proxy_temp_path {tmp_path}/b;
               fastcgi_temp_path {tmp_path}/c; uwsgi_temp_path {tmp_path}/d; scgi_temp_path {tmp_path}/e;
               server {{ listen 127.0.0.1:{port}; root {tmp_path}/root; }} }}
        """)
    server = Server(["nginx", "-e", f"{tmp_path}/error", "-p", str(tmp_path), "-c", f"{tmp_path}/conf"],
                    port)
    server.workers = wait_until(lambda: ready_workers(server.pid))
    yield server
    server.stop()


@pytest.fixture
def postgres():
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
    port = free_port()
    # Not in pytest's directory: that is closed to other users.
    data = Path(tempfile.mkdtemp())
    as_user = {}
    if os.getuid() == 0:  # it refuses to run as root
        as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        shutil.chown(data, "postgres", "postgres")
    made = subprocess.run([tools / "initdb", "-N", "-A", "trust", "-U", "tester", "-D", data], cwd=data,
                          capture_output=True, text=True, **as_user)
    assert made.returncode == 0, made.stderr
    server = Server([tools / "postgres", "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                     "-c", f"unix_socket_directories={data}", "-F", "-c", "shared_buffers=8MB"], port,
                    cwd=data, **as_user)
    server.pgbench = [shutil.which("pgbench") or tools / "pgbench", "-h", "127.0.0.1", "-p", str(port),
                      "-U", "tester", "postgres"]
    server.psql = [shutil.which("psql") or tools / "psql", *server.pgbench[1:]]
    # It listens before it is ready.
    wait_until(lambda: subprocess.run([*server.psql, "-c", "select"], capture_output=True).returncode == 0,
               "the server", 120)
    yield server
    server.stop(signal.SIGINT)
    shutil.rmtree(data)


def rounds(graftrace, command, pid, *more):
    """Attaches and detaches ROUNDS times while the load runs, again and again; what each load said. Some
    times more if none of these saw anything of it: on a busy machine it can be over by then."""
    said, calls, i = [], 0, 0
    load = None
    try:
        while i < ROUNDS or (calls == 0 and i < ROUNDS + 100):
            load = load or start(command)
            done = graftrace("record", *more, "-P", pid, "--for", f"{TIMES_MS[i % len(TIMES_MS)]}ms")
            assert "keeps the recorder's memory" not in done.stderr, f"round {i}: {done.stderr}"
            calls += int(re.search(r"([\d,]+) calls?,", done.stderr).group(1).replace(",", ""))
            i += 1
            if load.poll() is not None or i >= ROUNDS:
                out, err = load.communicate(timeout=300)
                assert load.returncode == 0, f"round {i}: {out}{err}"
                said.append(out)
                load = None
    finally:
        if load:
            load.kill()
            load.communicate()
    assert calls > 0, "nothing of the load was seen"
    return said


def start(command, **how):
    return subprocess.Popen([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


def redis_client(server, *words):
    done = subprocess.run(["redis-cli", "-p", str(server.port), *words], capture_output=True, text=True,
                          check=True, timeout=PATIENCE)
    return done.stdout.strip()


@pytest.mark.parametrize("more", [[], ["--libs"]], ids=["program", "libs"])
def test_redis_loses_no_request(graftrace, redis, more):
    """Each `incr` is answered and has been done once: the counter says so."""
    command = ["redis-benchmark", "-h", "127.0.0.1", "-p", redis.port, "-t", "set,get,incr,lpush,lrange_100",
               "-n", "3000", "-c", "20", "--csv"]
    assert subprocess.run([*map(str, command)], capture_output=True, timeout=120).returncode == 0
    redis_client(redis, "flushall")
    before = Before(redis.pid)
    said = rounds(graftrace, command, redis.pid, *more)
    for out in said:
        assert out.count('"INCR"') == 1 and out.count('"LRANGE_100') == 1, out
    assert redis_client(redis, "get", "counter:__rand_int__") == str(3000 * len(said))
    assert "total_error_replies:0\n" in redis_client(redis, "info", "stats")
    before.check()


def test_the_slow_request_of_redis_is_caught(graftrace, redis):
    """`debug sleep` is the slow one; it runs on."""
    record = graftrace.start("record", "--overwrite", "-b", "8M", "-P", redis.pid, "--stop-when",
                             "processCommand > 200ms")
    line_with(record.stderr, "recording process")
    subprocess.run(["redis-benchmark", "-p", str(redis.port), "-n", "2000", "-q", "-t", "get"], check=True,
                   capture_output=True)
    # A script that takes its time: nothing of it sleeps.
    redis_client(redis, "eval", "local function us() local t = redis.call('time') return t[1] * 1000000 "
                 "+ t[2] end local t = us() while us() - t < 400000 do end return 1", "0")
    _, said = record.communicate(timeout=PATIENCE)
    assert record.returncode == 0
    assert re.search(r"'processCommand' took \d{3,}\.\d+ ms in thread", said), said
    report = graftrace("report", "--sort", "max", "--limit", "4").stdout
    assert "processCommand" in report or "call" in report
    assert redis_client(redis, "ping") == "PONG"


# Counts answers that are not the page.
CHECK = """
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init(arguments) page = string.rep("some text\\n", 200); right = 0; wrong = 0 end
function response(status, headers, body)
  if status == 200 and body == page then right = right + 1 else wrong = wrong + 1 end
end
function done(summary, latency, requests)
  for _, thread in ipairs(threads) do
    print("right " .. thread:get("right") .. " wrong " .. thread:get("wrong"))
  end
end
"""


@pytest.mark.parametrize("more", [[], ["--libs"]], ids=["program", "libs"])
def test_nginx_loses_no_request(graftrace, nginx, tmp_path, more):
    (tmp_path / "check.lua").write_text(CHECK)
    before = Before(nginx.pid, *nginx.workers)
    # Its own limit for an answer is a wait for a busy machine.
    command = ["wrk", "-t1", "-c10", "-d2s", "--timeout", "60s", "-s", tmp_path / "check.lua",
               f"http://127.0.0.1:{nginx.port}/page"]
    for out in rounds(graftrace, command, nginx.pid, "--children", *more):
        assert re.search(r"^right [1-9]\d* wrong 0$", out, re.M), out
        assert "Non-2xx" not in out and "Socket errors" not in out, out
    before.check()


def test_workers_that_nginx_starts_anew_are_followed(graftrace, nginx):
    record = graftrace.start("record", "-P", nginx.pid)
    line_with(record.stderr, "recording process")
    nginx.process.send_signal(signal.SIGHUP)
    wait_until(lambda: children(nginx.pid) and not set(children(nginx.pid)) & set(nginx.workers))
    subprocess.run(["curl", "-sf", f"http://127.0.0.1:{nginx.port}/page"], check=True, capture_output=True)
    record.send_signal(signal.SIGINT)
    _, said = record.communicate(timeout=PATIENCE)
    assert record.returncode == 0, said
    assert "ngx_http_core_content_phase" in graftrace("report").stdout


def test_postgres_loses_no_transaction(graftrace, postgres):
    made = subprocess.run([*postgres.pgbench, "-i", "-q", "-s", "1"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    before = Before(postgres.pid)
    # New sessions all the time: forks of the process that was attached to.
    command = [*postgres.pgbench[:-1], "-n", "-c", "3", "-t", "25", "-C", "postgres"]
    said = rounds(graftrace, command, postgres.pid)
    for out in said:
        assert "actually processed: 75/75\n" in out and "failed transactions: 0 " in out, out
    # Each was done once, and wholly.
    query = ("select count(*), sum(delta) = (select sum(abalance) from pgbench_accounts), "
             "sum(delta) = (select sum(bbalance) from pgbench_branches) from pgbench_history")
    done = subprocess.run([*postgres.psql, "-Atc", query], capture_output=True, text=True)
    assert done.stdout == f"{75 * len(said)}|t|t\n", done.stdout + done.stderr
    before.check()
