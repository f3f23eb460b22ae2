# SPDX-License-Identifier: MIT
"""Threads of programs that keep something else where the ABI has a thread's own address."""

import pytest


@pytest.mark.parametrize("word", ["0x1234", "0x7000", "0x500000000000"])
def test_a_word_that_is_no_address_is_not_followed(graftrace, compile, word):
    program = compile("thread_pointer.c", "-O1", "-fpatchable-function-entry=5")
    assert graftrace("record", "--", program, word).stdout == "done\n"
    rows = graftrace("report", "--format", "csv").stdout
    assert "work," in rows and ",10," in rows, rows
