# SPDX-License-Identifier: MIT
"""What holds for every file of the tree: layout, length, licence, and nothing of one machine."""

import re
import subprocess

import tree

# Written in pieces, so that this file does not find itself.
MARKS = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")
MACHINE_PATHS = re.compile(
    r"(?<![\w.~}$)])/(?:" + "|".join(["wo" + "rk", "fa" + "rm", "ho" + "me/[a-z]", "ro" + "ot",
                                      "tmp/" + "wt", "Us" + "ers"]) + r")(?:/|\b)")
REGISTRIES = re.compile("|".join([
    r"deb\.deb" + r"ian\.org", r"security\.deb" + r"ian\.org", r"snapshot\.deb" + r"ian\.org",
    r"registry\.np" + r"mjs", r"registry\.ya" + r"rnpkg", r"py" + r"pi\.org",
    r"files\.python" + r"hosted", r"node" + r"source\.com", r"arti" + r"factory",
    r"proxy\.gol" + r"ang"]))
SOURCES = (".c", ".h", ".S", ".cc", ".py", ".js")


def lines_that_match(pattern, paths):
    found = []
    for path in paths:
        text = tree.text(path)
        if text is None:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            if pattern.search(line):
                found.append(f"{path}:{number}: {line.strip()[:120]}")
    return found


def test_no_file_is_marked_unfinished():
    found = lines_that_match(MARKS, tree.files())
    assert not found, "\n" + "\n".join(found)


def test_no_file_names_a_path_of_one_machine():
    found = lines_that_match(MACHINE_PATHS, tree.files())
    assert not found, "\n" + "\n".join(found)


def test_no_file_names_a_package_registry():
    found = lines_that_match(REGISTRIES, tree.files())
    assert not found, "\n" + "\n".join(found)


def test_the_patterns_find_what_they_are_for():
    assert MARKS.search("/* TO" + "DO: later */")
    assert MACHINE_PATHS.search('open("/wo' + 'rk/main/x")')
    assert MACHINE_PATHS.search("cd /tmp/" + "wt/a")
    assert not MACHINE_PATHS.search("network/framework /proc/self/root")
    assert REGISTRIES.search("http://deb.deb" + "ian.org/x")


def test_no_source_file_is_longer_than_a_thousand_lines():
    found = {str(path): count for path in tree.files(*SOURCES)
             if (count := len(tree.text(path).splitlines())) > 1000}
    assert not found


def test_every_source_file_begins_with_its_licence():
    found = [str(path) for path in tree.files(".c", ".h", ".S", ".cc", ".py")
             if "SPDX-License-Identifier: MIT" not in "".join(tree.text(path)[:200])]
    assert not found


def torn_comments(text):
    """The lines of C comments that a formatter has torn: a star glued to its word, or the next
    letter of a lettered list behind the end of another line's sentence."""
    return [line for comment in re.findall(r"/\*.*?\*/", text, re.S)
            for line in comment.split("\n")
            if re.match(r"[ \t]*\*[A-Za-z0-9]", line) or re.search(r"[a-z)]\. [B-H]\. [A-Za-z]", line)]


def test_no_comment_is_torn_by_a_formatter():
    torn = [f"{path}: {line.strip()}" for path in tree.files(".c", ".h", ".S")
            for line in torn_comments(tree.text(path))]
    assert not torn, "\n" + "\n".join(torn)


def test_torn_comments_are_recognised():
    assert torn_comments("/*\n * A drawing, and the host\n *copies, then checks.\n */")
    assert torn_comments("/*\n *  A. first\n * (acquire). B. last words\n */")
    assert not torn_comments("/*\n * A list:\n *\tT+0   call\n *  B. last words\n */\n\t*result = 0;\n")


def test_c_files_are_laid_out_by_clang_format():
    paths = [str(path) for path in tree.files(".c", ".h")]
    checked = subprocess.run(["clang-format", "--dry-run", "-Werror", *paths], cwd=tree.ROOT,
                             capture_output=True, text=True)
    bad = sorted(set(re.findall(r"^([^\s:]+):\d+:\d+: error", checked.stderr, re.M)))
    assert checked.returncode == 0, "clang-format -i is wanted for: " + " ".join(bad)
