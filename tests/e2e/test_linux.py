# SPDX-License-Identifier: MIT
"""What is typed into the mount has the result that a real kernel gives: Debian's, booted in QEMU,
gets the same steps (linux_sessions.txt). Where graftrace means to differ, doc/linux.md says why."""

import re

import pytest

import linux
from conftest import ROOT

pytestmark = pytest.mark.timeout(2 * linux.BOOT_LIMIT_S)


@pytest.fixture(scope="module")
def results(tmp_path_factory, compile):
    return linux.run_both(tmp_path_factory.mktemp("linux"), compile)


@pytest.mark.parametrize("session", dict.fromkeys(step.session for step in linux.read_sessions()))
def test_a_session_gives_what_linux_gives(results, session):
    wrong = [linux.describe(step, theirs, ours) for step, theirs, ours in results
             if step.session == session and step.topic is None
             and not linux.is_alike(step.typed, theirs, ours)]
    assert not wrong, "\n".join(wrong)


def test_what_is_said_to_differ_differs(results):
    same = [f"{step.session}: {step.typed} ({step.topic})" for step, theirs, ours in results
            if step.topic is not None and linux.is_alike(step.typed, theirs, ours)]
    assert not same, "\n".join(same)


def test_each_difference_has_its_reason():
    text = (ROOT / "doc" / "linux.md").read_text()
    reasons = re.findall(r"^- \*\*(.+?)\*\*:", text, re.M)
    topics = {step.topic for step in linux.read_sessions()} - {None}
    assert sorted(reasons) == sorted(topics)
