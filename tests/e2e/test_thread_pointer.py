# SPDX-License-Identifier: MIT
"""Threads of programs that keep something else where the ABI has a thread's own address."""

import re

import pytest


@pytest.mark.parametrize("word", ["0x1234", "0x7000", "0x500000000000"])
def test_a_word_that_is_no_address_is_not_followed(graftrace, compile, word):
    program = compile("thread_pointer.c", "-O1", "-fpatchable-function-entry=5")
    assert graftrace("record", "--", program, word).stdout == "done\n"
    rows = graftrace("report", "--format", "csv").stdout
    assert "work," in rows and ",10," in rows, rows


@pytest.mark.parametrize("word", [[], ["0x1234"], ["0"]], ids=["copied", "number", "zero"])
@pytest.mark.parametrize("flags", [["-O1"], ["-O1", "-static", "-s"]], ids=["dynamic", "nameless"])
def test_threads_with_the_same_word_are_not_taken_for_one_another(word, flags, graftrace, compile):
    program = compile("same_pointer.c", *flags)
    for _ in range(4):
        done = graftrace("record", "--", program, *word)
        assert done.stdout == "done 1250475000\n"
        assert "damaged" not in done.stderr, done.stderr
        assert int(re.search(r" (\d+) threads?,", done.stderr)[1]) <= 2, done.stderr
