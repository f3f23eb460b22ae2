# SPDX-License-Identifier: MIT
"""The judge of recordings itself: it follows records by their rules, and sees what is wrong."""

from types import SimpleNamespace as Thing

import pytest

import format_reader
import recorded

NAMES = {1: "main", 2: "work(int)", 3: "ns::leaf(char const*)", 4: "helper"}


def entry(number, clock):
    return number << 33 | clock & 0xffffffff


def leave(number, clock):
    return entry(number, clock) | recorded.RETURN


def special(kind, argument):
    return recorded.SPECIAL + kind << 33 | argument


def sub_buffer(words, sequence=0, clock=1000, context=1, depth=0, shown=()):
    return Thing(words=words, header=Thing(
        pid=7, tid=7, generation=1, sequence=sequence, clock=clock, context=context, depth=depth,
        open=[(clock, number, depth - len(shown) + i) for i, number in enumerate(shown)]))


@pytest.fixture
def judged(monkeypatch):
    def read(*sub_buffers, counting=("main", "work", "leaf")):
        writer = Thing(pid=7, tid=7, generation=1, sub_buffers=list(sub_buffers))
        monkeypatch.setattr(format_reader, "read", lambda path: Thing(
            names=NAMES, writers=[writer], lost=[0] * 8))
        return recorded.Recorded("x", set(counting))
    return read


def test_calls_and_depths_are_counted(judged):
    trace = judged(sub_buffer([entry(1, 1001), entry(2, 1002), entry(3, 1003), 0, leave(3, 1004),
                               leave(2, 1005), entry(3, 1006)]))
    assert trace.counted == {(7, "main"): 1, (7, "work"): 1, (7, "leaf"): 2}
    assert trace.depths[7, "leaf"] == {2: 1, 1: 1}
    assert trace.open == {1: ["main", "leaf"]}
    assert not trace.errors


def test_functions_that_are_not_counted_do_not_make_depth(judged):
    trace = judged(sub_buffer([entry(1, 1001), entry(4, 1002), entry(3, 1003)]))
    assert trace.depths[7, "leaf"] == {1: 1}
    assert trace.names["helper"] == 1


def test_unwound_and_switched_contexts_are_followed(judged):
    trace = judged(sub_buffer([
        entry(1, 1), entry(2, 2), entry(2, 3), special(recorded.UNWOUND, 2), entry(3, 4),
        leave(3, 5), special(recorded.CONTEXT, 9), special(recorded.RESUMED, 0), entry(2, 6),
        special(recorded.CONTEXT, 1), special(recorded.RESUMED, 1), entry(3, 7), leave(3, 8),
        special(recorded.EVENT, recorded.LONG_RETURN << 16 | 3), leave(1, 9), 1, 0]))
    assert not trace.errors
    assert trace.unwound == 2
    assert trace.depths[7, "leaf"] == {1: 2}
    assert trace.depths[7, "work"] == {1: 1, 2: 1, 0: 1}


def test_a_next_sub_buffer_has_to_fit(judged):
    first = sub_buffer([entry(1, 1001), entry(2, 1002)])
    assert not judged(first, sub_buffer([leave(2, 1003)], 1, depth=2, shown=(1, 2))).errors
    assert judged(first, sub_buffer([leave(2, 1003)], 1, depth=1, shown=(1,))).errors
    assert judged(first, sub_buffer([leave(2, 1003)], 1, depth=2, shown=(1, 3))).errors
    assert judged(first, sub_buffer([leave(2, 1003)], 2, depth=2, shown=(1, 2))).errors


@pytest.mark.parametrize("words", [
    [leave(1, 1)],
    [entry(1, 1), leave(2, 2)],
    [entry(1, 1), special(recorded.UNWOUND, 2)],
    [entry(1, 1), special(recorded.LOST, 5)],
    [entry(1, 1), special(recorded.EVENT, recorded.LONG_RETURN << 16 | 3), leave(1, 2), 0, 3],
])
def test_records_that_do_not_fit_are_errors(judged, words):
    assert judged(sub_buffer(words)).errors


@pytest.mark.parametrize("name, short", [
    ("work(int)", "work"), ("ns::Type::leaf(char const*) const", "leaf"), ("f.constprop.0", "f"),
    ("catch::leaf::h0123456789abcdef", "leaf"), ("Careful::~Careful()", "~Careful"),
    ("(anonymous namespace)::x(int)", "x"), ("plain", "plain"), ("f(int) [clone .isra.0]", "f")])
def test_a_functions_own_name(name, short):
    assert recorded.short_name(name) == short
