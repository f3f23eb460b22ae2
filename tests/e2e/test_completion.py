# SPDX-License-Identifier: MIT
"""Completion in bash, zsh and fish: functions, processes, threads; what the check of commands leaves."""

import os
import subprocess

import pytest

from conftest import BUILD, PATIENCE, ROOT, line_with
from test_report import sample

WORDS = "int most_frequent(void) { return 1; }\nint main(void) { return most_frequent() - 1; }\n"

BASH = """
    source {root}/completions/graftrace
    COMP_WORDS=(graftrace "${{@}}")
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    _graftrace graftrace "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
    printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# The function of zsh's completion alone, with what it adds printed.
ZSH = """
    compadd() {{ print -l -- ${{(P)2}} }}
    _files() {{ print -l -- *(N) }}
    words=(graftrace "$@"); CURRENT=$#words
    source {root}/completions/_graftrace
"""
FISH = "source {root}/completions/graftrace.fish; complete -C (string join -- ' ' graftrace $argv)"


def offered(shell, directory, *words):
    scripts = {"bash": ["bash", "-c", BASH, "bash"], "zsh": ["zsh", "-f", "-c", ZSH, "zsh"],
               "fish": ["fish", "--no-config", "-c", FISH]}
    *command, script, name = scripts[shell] if shell != "fish" else [*scripts[shell], None]
    command = [*command, script.format(root=ROOT), *([name] if name else [])]
    done = subprocess.run([*command, *words], cwd=directory, capture_output=True, text=True,
                          timeout=PATIENCE, env={**os.environ, "HOME": str(directory),
                                           "PATH": f"{BUILD / 'cli'}:{os.environ['PATH']}"})
    assert done.returncode == 0, done.stderr
    return {line.split("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_what_can_be_known(graftrace, compile, shell):
    program = compile(WORDS, "-O0")
    sample(graftrace, 3, 2, 300)
    offer = lambda *words: offered(shell, graftrace.directory, *words)
    assert {"record", "report", "top", "diff"} <= offer("")
    assert {"--percent", "--hist", "--tid"} - offer("report", "--") == {"--percent"}
    assert {"call_3", "call_5"} <= offer("report", "--hist", "")
    assert {"most_frequent", "main"} <= offer("record", str(program), "-l", "")
    assert {"500", "501"} <= offer("report", "--tid", "")
    assert str(os.getpid()) in offer("record", "-P", str(os.getpid())[:-1])
    assert {"call_3", "call_5"} <= offer("graph", "")
    assert {"most_frequent", "main"} <= offer("record", str(program), "-A", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_control_files_are_those_of_the_process_on_the_line(graftrace, shell):
    """Without -P there is no answer where several programs are recorded."""
    with subprocess.Popen(["sleep", "60"]) as program:
        recorder = graftrace.start("record", "-P", program.pid)
        try:
            line_with(recorder.stderr, "recording process")
            assert {"tracing_on", "current_tracer"} <= offered(
                shell, graftrace.directory, "get", "-P", str(program.pid), "")
        finally:
            program.kill()
            recorder.communicate(timeout=PATIENCE)


def test_what_a_person_alone_knows_is_not_answered_with_all_programs(graftrace):
    for option in ("--from", "--probe", "--synthetic", "--trigger", "--allow-users", "--for", "--lib"):
        assert offered("bash", graftrace.directory, "record", option, "") <= {""}
    assert offered("bash", graftrace.directory, "record", "-e", "") == {"syscalls"}
