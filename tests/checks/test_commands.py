# SPDX-License-Identifier: MIT
"""Every subcommand has its help, its man page and its completion, and they agree."""

import os
import re
import subprocess

import pytest

import tree

GRAFTRACE = tree.BUILD / "cli" / "graftrace"
COMPLETION = tree.ROOT / "completions" / "graftrace"
ROW = re.compile(r'^\t\{ "([a-z][a-z-]*)",', re.M)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
COMMANDS = ROW.findall((tree.ROOT / "cli" / "main.c").read_text())


def help_of(*words):
    done = subprocess.run([GRAFTRACE, *words], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def page(name):
    path = tree.ROOT / "doc" / "man" / f"{name}.1"
    assert path.exists(), f"there is no {path.relative_to(tree.ROOT)}"
    return path


def complete(*words):
    """What bash offers for the last of the words."""
    script = f"""
        source {COMPLETION}
        COMP_WORDS=(graftrace "${{@:2}}")
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _graftrace "$1" "${{COMP_WORDS[COMP_CWORD]}}" "${{COMP_WORDS[COMP_CWORD - 1]}}"
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", script, "bash", GRAFTRACE, *words], capture_output=True,
                          text=True, timeout=20)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def test_the_table_of_commands_is_read():
    assert {"record", "show", "report", "parse-trace", "runtime-breakdown", "functions",
            "serve"} <= set(COMMANDS)


def test_every_man_page_has_examples():
    pages = sorted((tree.ROOT / "doc" / "man").glob("*.[15]"))
    assert len(pages) > 10
    assert not [page.name for page in pages if "\n.SH EXAMPLES\n" not in page.read_text()]


def test_the_help_lists_every_command():
    text = help_of("help")
    listed = re.findall(r"^  ([a-z][a-z-]*) ", text, re.M)
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert listed == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_tells_its_options_and_exit_codes(command):
    text = help_of(command, "--help")
    assert text.startswith(f"Usage: graftrace {command}")
    assert "--help" in text
    assert help_of("help", command) == text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_other_tools_words_are_answered_with_a_command_that_is_there():
    words = re.findall(r'\{ \.word = "(\w+)", \.here = "([\w-]+)', (
        tree.ROOT / "cli" / "main.c").read_text())
    assert len(words) > 5
    for word, here in words:
        assert word not in COMMANDS and here in [*COMMANDS, "--version"]
        done = subprocess.run([GRAFTRACE, word], capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and f"here it is 'graftrace {here}" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_that_is_not_there_ends_with_2(command):
    done = subprocess.run([GRAFTRACE, command, "--no-such-option"], capture_output=True,
                          text=True, timeout=20)
    assert done.returncode == 2
    assert "no-such-option" in done.stderr and done.stdout == ""


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_has_a_man_page_with_every_option_of_its_help(command):
    source = page(f"graftrace-{command}").read_text().replace("\\-", "-")
    missing = sorted(set(OPTION.findall(help_of(command, "--help"))) - set(OPTION.findall(source)))
    assert not missing, f"not in the man page: {missing}"
    assert re.search(r"^\.S[Hh] \"?EXIT (STATUS|CODES?)", source, re.M | re.I)


def test_the_main_page_names_every_command():
    source = page("graftrace").read_text().replace("\\-", "-")
    assert [name for name in COMMANDS if f"graftrace-{name}" not in source] == []


@pytest.mark.parametrize("name", ["graftrace", *(f"graftrace-{name}" for name in COMMANDS)])
def test_a_man_page_is_formatted_without_a_warning(name):
    done = subprocess.run(
        ["man", "--warnings=all", "-E", "UTF-8", "-l", "-Tutf8", page(name)],
        capture_output=True, text=True, timeout=60, env={**os.environ, "MANWIDTH": "80"})
    assert done.returncode == 0
    assert done.stderr == ""


def test_completion_offers_every_command():
    assert set(COMMANDS) <= set(complete(""))
    assert complete("parse-t") == ["parse-trace"]


@pytest.mark.parametrize("command", COMMANDS)
def test_completion_offers_every_option_of_the_help(command):
    options = set(OPTION.findall(help_of(command, "--help")))
    assert options <= set(complete(command, "--"))


def test_completion_knows_the_values_of_options():
    assert complete("record", "-p", "function_") == ["function_graph"]
    assert complete("report", "--format", "=", "j") == ["json"]
