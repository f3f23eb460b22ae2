# SPDX-License-Identifier: MIT
"""Servers as the distribution ships them are attached to and left again under load: no request is
lost or answered otherwise, and their memory maps are as before."""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

# More rounds: what a nightly run does.
MORE = int(os.environ.get("GRAFTRACE_LONG_TESTS", "1"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(true, seconds=30):
    """What `true` returns as soon as it is true."""
    end = time.monotonic() + seconds
    while not (result := true()):
        assert time.monotonic() < end, "what was waited for did not come"
        time.sleep(0.02)
    return result


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False


def code_maps(pid):
    """What is mapped executable or shared: heaps grow by themselves."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return [re.sub(r" +", " ", line) for line in lines if "x" in line.split()[1] or "graftrace" in line]


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
        until(lambda: answers(port))

    def stop(self, number=signal.SIGTERM):
        assert self.process.poll() is None, "the server has ended"
        self.process.send_signal(number)
        try:
            self.process.wait(20)
        finally:
            self.process.kill()


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
    server.workers = until(lambda: ready_workers(server.pid))
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
    yield server
    server.stop(signal.SIGINT)
    shutil.rmtree(data)


def attach(graftrace, pids, *more, time="300ms"):
    """One round; what it says at its end."""
    words = [word for pid in pids for word in ("-P", pid)]
    done = graftrace("record", *more, *words, "--for", time)
    return done.stderr


def rounds(graftrace, load, pids, count, *more):
    """Attaches and detaches while the load runs; the load's output."""
    calls = 0
    while load.poll() is None:
        said = attach(graftrace, pids, *more)
        calls += int(re.search(r"([\d,]+) calls?,", said).group(1).replace(",", ""))
        count -= 1
    out, err = load.communicate()
    assert load.returncode == 0, err
    while count > 0:  # the load was faster
        attach(graftrace, pids, *more, time="20ms")
        count -= 1
    assert calls > 0, "nothing of the load was seen"
    return out


def start(command, **how):
    return subprocess.Popen([str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)


@pytest.mark.parametrize("more", [[], ["--libs"]], ids=["program", "libs"])
def test_redis_loses_no_request(graftrace, redis, more):
    before = code_maps(redis.pid)
    load = start(["redis-benchmark", "-h", "127.0.0.1", "-p", redis.port, "-t", "set,get,lpush,lrange_100",
                  "-n", 4000 * MORE, "-c", "20", "--csv"])
    out = rounds(graftrace, load, [redis.pid], 3 * MORE, *more)
    assert out.count('"GET"') == 1 and out.count('"LRANGE_100') == 1
    assert code_maps(redis.pid) == before
    client = ["redis-cli", "-p", str(redis.port)]
    assert subprocess.run([*client, "ping"], capture_output=True, text=True).stdout == "PONG\n"
    stats = subprocess.run([*client, "info", "stats"], capture_output=True, text=True).stdout
    assert "total_error_replies:0\n" in stats


def test_the_slow_request_of_redis_is_caught(graftrace, redis):
    """`debug sleep` is the slow one; it runs on."""
    record = graftrace.start("record", "--overwrite", "-b", "8M", "-P", redis.pid, "--stop-when",
                             "processCommand > 200ms")
    assert "recording process" in record.stderr.readline()
    client = ["redis-cli", "-p", str(redis.port)]
    subprocess.run(["redis-benchmark", "-p", str(redis.port), "-n", "2000", "-q", "-t", "get"], check=True,
                   capture_output=True)
    # A script that takes its time: nothing of it sleeps.
    subprocess.run([*client, "eval", "local function us() local t = redis.call('time') return t[1] * 1000000 "
                    "+ t[2] end local t = us() while us() - t < 400000 do end return 1", "0"], check=True, capture_output=True)
    _, said = record.communicate(timeout=30)
    assert record.returncode == 0
    assert re.search(r"'processCommand' took \d{3,}\.\d+ ms in thread", said), said
    report = graftrace("report", "--sort", "max", "--limit", "4").stdout
    assert "processCommand" in report or "call" in report
    assert subprocess.run([*client, "ping"], capture_output=True, text=True).stdout == "PONG\n"


@pytest.mark.parametrize("more", [[], ["--libs"]], ids=["program", "libs"])
def test_nginx_loses_no_request(graftrace, nginx, more):
    pids = [nginx.pid, *nginx.workers]
    before = [code_maps(pid) for pid in pids]
    load = start(["wrk", "-t1", "-c10", f"-d{2 * MORE}s", f"http://127.0.0.1:{nginx.port}/page"])
    out = rounds(graftrace, load, [nginx.pid], 2 * MORE, "--children", *more)
    assert int(re.search(r"(\d+) requests in", out).group(1)) > 100
    assert "Non-2xx" not in out and "Socket errors" not in out
    assert [code_maps(pid) for pid in pids] == before


def test_workers_that_nginx_starts_anew_are_followed(graftrace, nginx):
    record = graftrace.start("record", "-P", nginx.pid)
    assert "recording process" in record.stderr.readline()
    nginx.process.send_signal(signal.SIGHUP)
    until(lambda: children(nginx.pid) and not set(children(nginx.pid)) & set(nginx.workers))
    subprocess.run(["curl", "-sf", f"http://127.0.0.1:{nginx.port}/page"], check=True, capture_output=True)
    record.send_signal(signal.SIGINT)
    _, said = record.communicate(timeout=30)
    assert record.returncode == 0, said
    assert "ngx_http_core_content_phase" in graftrace("report").stdout


def test_postgres_loses_no_transaction(graftrace, postgres):
    made = subprocess.run([*postgres.pgbench, "-i", "-q", "-s", "1"], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    before = code_maps(postgres.pid)
    transactions = 25 * MORE
    # New sessions now and then: forks of the process that was attached to.
    load = start([*postgres.pgbench[:-1], "-n", "-c", "3", "-t", transactions, "-C", "postgres"])
    out = rounds(graftrace, load, [postgres.pid], 2 * MORE)
    done = re.search(r"actually processed: (\d+)/(\d+)", out)
    assert done and done.group(1) == done.group(2) == str(3 * transactions)
    assert re.search(r"failed transactions: 0 ", out)
    assert code_maps(postgres.pid) == before
