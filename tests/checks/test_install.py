# SPDX-License-Identifier: MIT
"""`make install` puts everything in its place, and what is installed works from there."""

import json
import re
import subprocess
from pathlib import Path

import pytest

import tree


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The prefix of a staged installation of the build under test."""
    stage = tmp_path_factory.mktemp("stage")
    subprocess.run(["meson", "install", "-C", tree.BUILD, "--no-rebuild", "--destdir", stage],
                   check=True, capture_output=True)
    options = json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", tree.BUILD], check=True, capture_output=True,
        text=True).stdout)
    prefix = next(option["value"] for option in options if option["name"] == "prefix")
    return stage / Path(prefix).relative_to("/")


def test_the_headers_are_installed_and_compile_alone(installed, tmp_path):
    there = sorted(path.name for path in (installed / "include" / "graftrace").iterdir())
    assert there == sorted(path.name for path in (tree.ROOT / "include" / "graftrace").glob("*.h"))
    for name in there:
        source = tmp_path / "one.c"
        source.write_text(f"#include <graftrace/{name}>\n#include <graftrace/{name}>\n")
        done = subprocess.run(
            ["gcc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
             f"-I{installed / 'include'}", source], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_man_pages_and_completion_are_installed(installed):
    pages = {path.name for path in (installed / "share" / "man" / "man1").iterdir()}
    assert pages == {path.name for path in (tree.ROOT / "doc" / "man").glob("*.1")}
    assert (installed / "share" / "bash-completion" / "completions" / "graftrace").is_file()


def test_the_installed_command_records_a_program(installed, tmp_path):
    (tmp_path / "one.c").write_text(
        "int one(int x) { return x + 1; }\nint main(int c, char **v) { return one(c) - 2; }\n")
    subprocess.run(["gcc", "-O0", "-fpatchable-function-entry=5", "one.c", "-o", "one"],
                   cwd=tmp_path, check=True)
    command = installed / "bin" / "graftrace"
    subprocess.run([command, "record", "--", "./one"], cwd=tmp_path, check=True,
                   capture_output=True, timeout=60)
    shown = subprocess.run([command, "show"], cwd=tmp_path, check=True, capture_output=True,
                           text=True, timeout=60).stdout
    assert re.search(r"main\(\) \{\n.*one\(\);\n", shown)
