# SPDX-License-Identifier: MIT
"""The commands that README.md shows are run, in its order, and do what it shows.

A fenced block `sh` with lines that begin with `$ ` is a session: each command must end with 0,
and where output is shown below a command, it must be what the command prints, but for figures
(numbers, the marks of long calls, blanks) and where a line `…` leaves lines out. Blocks without
`$ ` (make, installing) are only checked to name targets that the Makefile has, but for those that
serve or mount: these are given to a shell as they stand.
"""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import pytest

import tree

README = (tree.ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.M | re.S)


def sessions():
    """(command, shown output) of all session blocks, in order."""
    found = []
    for block in BLOCKS:
        if "$ " not in block:
            continue
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            while command.endswith("\\"):
                more, _, shown = shown.partition("\n")
                command = command[:-1] + more
            found.append((command, shown))
    return found


def without_figures(text):
    """The words of each line: figures, marks and blanks differ from run to run."""
    lines = []
    for line in text.splitlines():
        line = re.sub(r"<?\b\d[\d.,:]*( ns| us| ms| s|%)?", "N", line)
        line = re.sub(r"\s+", " ", re.sub(r"(?:^|(?<=[)|N ]))\s*[$@*#!+](?=\s*N)", "", line)).strip()
        # A column more where calls were open at the end, two less where the kernel does not tell
        # of context switches.
        lines.append(re.sub(r"(?:N )+", "N ", line).replace("Calls Open Total", "Calls Total")
                     .replace("Self On CPU Off CPU", "Self"))
    return [line for line in lines if line]


def as_shown(shown, printed):
    """Whether what was printed has the shown lines, in order, with gaps only where `…` stands."""
    printed, at, gap = without_figures(printed), 0, False
    for line in without_figures(shown):
        if line == "…":
            gap = True
            continue
        if gap:
            while at < len(printed) and printed[at] != line:
                at += 1
        if at >= len(printed) or printed[at] != line:
            return False, line
        at, gap = at + 1, False
    return gap or at == len(printed), "(more was printed than is shown)"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory like the root of the tree, with graftrace on the PATH."""
    path = tmp_path_factory.mktemp("readme")
    shutil.copytree(tree.ROOT / "examples", path / "examples")
    shutil.copy(tree.ROOT / "LICENSE", path / "LICENSE")
    yield path
    if (path / "pid").exists():  # the server that is looked at: else it goes on for two minutes
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((path / "pid").read_text()), signal.SIGKILL)


def test_the_readme_shows_sessions_and_the_two_commands():
    assert len(sessions()) >= 5
    text = "\n".join(BLOCKS)
    assert "make demo" in text and "make test" in text


def test_make_targets_of_the_readme_exist():
    makefile = (tree.ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^(?:sudo )?make +([a-z-]+)", "\n".join(BLOCKS), re.M))
    missing = [name for name in targets if not re.search(rf"^{name}:", makefile, re.M)]
    assert targets and not missing


def test_the_sessions_of_the_readme_run_as_shown(place):
    environment = {**os.environ, "PATH": f"{tree.BUILD / 'cli'}:{os.environ['PATH']}",
                   "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    for command, shown in sessions():
        done = subprocess.run(["bash", "-c", command], cwd=place, env=environment, text=True,
                              capture_output=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        if shown.strip():
            same, line = as_shown(shown, done.stdout + done.stderr)
            assert same, f"{command}\nline: {line}\nprinted:\n{done.stdout}{done.stderr}"


def test_what_is_here_instead_of_other_tools_words_is_there_and_in_the_man_page():
    table = README[README.index("## Coming from other tools"):README.index("## More")]
    here = re.findall(r"\| `graftrace ([a-z]+)( [^`]*)?`[^|]*\|$", table, re.M)
    page = (tree.ROOT / "doc" / "man" / "graftrace.1").read_text().replace("\\-", "-").replace("\\(aq", "'")
    assert len(here) >= 15
    for command, rest in here:
        help_text = subprocess.run([tree.BUILD / "cli" / "graftrace", command, "--help"], check=True,
                                   capture_output=True, text=True).stdout
        for option in re.findall(r"(?<=\s)--?[a-zA-Z][a-z-]*", rest):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", help_text), f"{command} {option}"
        assert f"graftrace {command}{rest}" in page, f"{command}{rest}"


def kill_those_of(program):
    """A program under a mount goes on when the mount has ended."""
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(entry / "exe") == str(program):
                os.kill(int(entry.name), signal.SIGKILL)


@pytest.mark.parametrize("word, shown", [("record --serve", "handle_request() {"),
                                         ("mount --background", "look_up();")])
def test_a_block_without_prompts_works_when_it_is_pasted_whole(place, word, shown):
    block = next(block for block in BLOCKS if f"graftrace {word}" in block)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mount = place / "tracing"
    block = (block.replace("--serve ", f"--serve=127.0.0.1:{port} ").replace("localhost:9090", f"localhost:{port}")
             .replace("/tmp/tracing", str(mount)).replace("head -n", "sleep 0.5; head -n")
             .replace("wget", "sleep 0.5; wget"))
    environment = {**os.environ, "PATH": f"{tree.BUILD / 'cli'}:{os.environ['PATH']}", "LC_ALL": "C.UTF-8"}
    subprocess.run(["gcc", "-O1", "examples/requests.c", "-o", "requests"], cwd=place, check=True)
    ending = "kill %1; wait" if "&" in block else f"cd /; umount {mount}"
    # A file: who goes on in the background would keep a pipe open.
    with open(place / "printed", "w+", encoding="utf-8") as printed:
        try:
            subprocess.run(["bash", "-c", f"{block}echo all was done\n{ending}"], cwd=place, env=environment,
                           stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, timeout=60, check=False)
        finally:
            subprocess.run(["umount", "-l", mount], check=False, stderr=subprocess.DEVNULL)
            kill_those_of(place / "requests")
    printed = (place / "printed").read_text()
    assert shown in printed and "all was done" in printed, printed


def test_figures_do_not_matter_but_words_do():
    shown = " 0)   0.071 us    |    copy();\n 0) ! 208.173 us  |  }\n…\n 3 calls\n"
    assert as_shown(shown, " 1) + 12.9 us |  copy();\n 1)   2.1 us | }\nmore\n 4 calls\n")[0]
    assert not as_shown(shown, " 1) + 12.9 us |  move();\n 1)   2.1 us | }\nmore\n 4 calls\n")[0]
    assert not as_shown(shown, " 1) + 12.9 us |  copy();\n 1)   2.1 us | }\nmore\n")[0]
    assert not as_shown("a\n", "a\nb\n")[0]
