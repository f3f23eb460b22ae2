# SPDX-License-Identifier: MIT
"""The man page of the control files and the table in core/view tell of the same files."""

import os
import re
import subprocess

import tree

SOURCE = tree.ROOT / "core" / "view" / "control_files.c"
PAGE = tree.ROOT / "doc" / "man" / "graftrace-control-files.5"


def rows():
    source = SOURCE.read_text()
    table = source[source.index("gt_control_files[] = {"):]
    found = re.findall(r'^\t\{ "([^"]+)",', table, re.M)
    found += ["options/" + name for name in re.findall(r'OPTION\("([^"]+)"', table)]
    return set(found)


def documented():
    source = PAGE.read_text().replace("\\-", "-")
    files = source[source.index(".SH FILES"):]
    named = re.findall(r"^\.TP\n\.I ([^\s]+)$", files, re.M)
    for pair in re.findall(r"^\.TP\n\.IR ([^\n]+)$", files, re.M):
        named += [word for word in re.split(r'[ ",]+', pair) if word]
    return set(named)


def test_the_table_is_read():
    assert {"trace", "trace_pipe", "options/funcgraph-proc", "per_thread/#/stats"} <= rows()


def test_the_man_page_has_every_control_file_and_no_other():
    assert documented() == rows()


def test_the_page_is_formatted_without_a_warning():
    done = subprocess.run(["man", "--warnings=all", "-E", "UTF-8", "-l", "-Tutf8", PAGE],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MANWIDTH": "80"})
    assert done.returncode == 0
    assert done.stderr == ""
