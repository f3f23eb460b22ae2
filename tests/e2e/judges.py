# SPDX-License-Identifier: MIT
"""Programs of others that judge what graftrace exports: those of npm, and Debian's clickhouse-server."""

import functools
import json
import os
import subprocess
import time

import pytest

from conftest import BUILD, PATIENCE, ROOT, free_port, let_port_go


@functools.cache
def modules():
    """The folder with the npm packages of tests/judges/package.json."""
    done = subprocess.run([ROOT / "tools" / "fetch_judges", BUILD / "judges"], text=True,
                          capture_output=True, timeout=300)
    assert done.returncode == 0, f"npm's packages cannot be had\n{done.stderr}"
    return done.stdout.strip()


def node(script, *words, cwd=None, timeout=120):
    """Runs a module of JavaScript with these packages: what it prints, as JSON."""
    done = subprocess.run(["node", "--input-type=commonjs", "-", *map(str, words)], input=script, text=True,
                          cwd=cwd, capture_output=True, timeout=timeout,
                          env={**os.environ, "NODE_PATH": modules()})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


DUCKDB = """
const {DuckDBInstance} = require("@duckdb/node-api");
(async () => {
    const database = await (await DuckDBInstance.create(":memory:")).connect();
    const read = await database.runAndReadAll(process.argv[2]);
    const plain = (value) => typeof value === "bigint" ? Number(value) : value?.toDouble ? value.toDouble() : value;
    console.log(JSON.stringify(read.getRows().map((row) => row.map(plain))));
})();
"""


def duckdb(query, cwd):
    """The rows of an answer; sums and counts as numbers."""
    return node(DUCKDB, query, cwd=cwd)


CONFIG = """<?xml version="1.0"?>
<yandex>
<logger><level>warning</level><log>{path}/log</log><errorlog>{path}/errors</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{port}</tcp_port><listen_host>127.0.0.1</listen_host>
<path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path><mark_cache_size>5000000</mark_cache_size>
<user_files_path>{path}/files/</user_files_path><format_schema_path>{path}/schemas/</format_schema_path>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database>
<remote_servers><all>{shards}</all></remote_servers>
</yandex>
"""
USERS = """<?xml version="1.0"?>
<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage></default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>
<quota>default</quota></default></users><quotas><default></default></quotas></yandex>
"""


class ClickHouse:
    """One of Debian's servers."""

    def __init__(self, path, port, http, shards):
        self.port, self.http = port, http
        for name in ("data", "tmp", "files", "schemas"):
            (path / name).mkdir(parents=True)
        each = "".join(f"<shard><replica><host>127.0.0.1</host><port>{one}</port></replica></shard>"
                       for one in shards)
        (path / "config.xml").write_text(CONFIG.format(path=path, port=port, http=http, shards=each))
        (path / "users.xml").write_text(USERS)
        self.process = subprocess.Popen(["clickhouse-server", "--config-file=config.xml"], cwd=path,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)

    def __call__(self, query, stdin=None):
        """The rows of an answer, as texts."""
        done = subprocess.run(["clickhouse-client", "--host", "127.0.0.1", "--port", str(self.port), "--query",
                               query], capture_output=True, timeout=PATIENCE,
                              **({"stdin": stdin} if stdin else {"stdin": subprocess.DEVNULL}))
        assert done.returncode == 0, done.stderr.decode()
        return [line.split("\t") for line in done.stdout.decode().splitlines()]

    def wait(self):
        deadline = time.monotonic() + 60
        while True:
            assert self.process.poll() is None, "clickhouse-server has ended"
            try:
                return self("SELECT 1")
            except AssertionError:
                assert time.monotonic() < deadline, "clickhouse-server does not answer"
                time.sleep(0.1)


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory):
    """Two servers, the shards of the cluster `all`."""
    ports = [free_port() for _ in range(4)]
    path = tmp_path_factory.mktemp("clickhouse")
    servers = [ClickHouse(path / str(one), ports[one], ports[2 + one], ports[:2]) for one in (0, 1)]
    try:
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.process.kill()
            server.process.wait()
        for port in ports:
            let_port_go(port)
