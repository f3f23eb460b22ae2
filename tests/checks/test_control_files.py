# SPDX-License-Identifier: MIT
"""The man page of the control files and the table in core/control tell of the same files."""

import os
import re
import subprocess

import tree

PAGE = tree.ROOT / "doc" / "man" / "graftrace-control-files.5"

# Rows are made by these macros of the sources' own, or as plain initializers. `X(` names options.
MACROS = {"ROW": "", "VALUE": "", "READ_LIST": "", "WRITE_LIST": "", "THREADS": "", "EVENT_THREADS": "", "TEXT": ""}


def sources():
    """Files that hold rows: those of the table, and those that bring groups of their own."""
    for path in tree.ROOT.glob("*/**/*.c"):
        parts = path.relative_to(tree.ROOT).parts
        if parts[0] in ("core", "serve", "attach", "port") and \
                "struct gt_control_file files[]" in path.read_text():
            yield path


def rows():
    found = set()
    for path in sources():
        source = path.read_text()
        # Strings that stand beside each other are one, as in C.
        table = source[source.index("struct gt_control_file files[]"):]
        for name in MACROS:
            found |= set(re.findall(rf'\b{name}\(\s*"([^"]+)"', table))
        found |= set(re.findall(r'\.path = "([^"]+)"', table))
        for prefix in re.findall(r'\bTRACE\(\s*"([^"]*)"', table):
            found.add(prefix + "trace")
        for prefix in re.findall(r'\bPIPE\(\s*"([^"]*)"', table):
            found.add(prefix + "trace_pipe")
        found |= {"options/" + name for name in re.findall(r'\bX\("([^"]+)"', source)}
    return found


def documented():
    source = PAGE.read_text().replace("\\-", "-")
    files = source[source.index(".SH FILES"):]
    named = re.findall(r"^\.TP\n\.I ([^\s]+)$", files, re.M)
    for pair in re.findall(r"^\.TP\n\.IR ([^\n]+)$", files, re.M):
        named += [word for word in re.split(r'[ ",]+', pair) if word]
    return set(named)


def test_the_table_is_read():
    assert {"trace", "trace_pipe", "options/funcgraph-proc", "per_thread/#/stats", "README",
            "per_cpu/cpu#/trace", "error_log", "set_ftrace_pid"} <= rows()


def test_the_man_page_has_every_control_file_and_no_other():
    assert documented() == rows()


def test_the_page_is_formatted_without_a_warning():
    done = subprocess.run(["man", "--warnings=all", "-E", "UTF-8", "-l", "-Tutf8", PAGE],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "MANWIDTH": "80"})
    assert done.returncode == 0
    assert done.stderr == ""
