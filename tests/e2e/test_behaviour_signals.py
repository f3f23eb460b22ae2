# SPDX-License-Identifier: MIT
"""Signal handlers that make traced calls, wherever they arrive."""

import pytest

import behaviour

KINDS = ["raise", "raise-alternate", "thread", "thread-alternate", "fault", "fault-alternate"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["patchable", "unprepared"])
def test_handlers(way, kind, tmp_path):
    behaviour.judge([behaviour.program(way, "signals.c"), kind], tmp_path, way=way)


@pytest.mark.parametrize("way", ["pg", "instrument", "static", "patchable-clang"])
def test_handlers_in_other_builds(way, tmp_path):
    behaviour.judge([behaviour.program(way, "signals.c"), "raise"], tmp_path, way=way)


@pytest.mark.parametrize("kind", ["storm", "storm-alternate"])
@pytest.mark.parametrize("way", ["patchable", "pg", "unprepared"])
def test_a_storm_of_timers_loses_no_call(way, kind, tmp_path):
    # A handler may stand between a record and its call's frame: depths differ by one there.
    behaviour.judge([behaviour.program(way, "signals.c"), kind], tmp_path, way=way, depths=False,
                    same_counts=False, interrupted=True)
