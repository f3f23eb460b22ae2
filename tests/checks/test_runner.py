# SPDX-License-Identifier: MIT
"""tests/run counts right, above all when something goes wrong."""

import importlib.machinery
import importlib.util
import json
import os
import select
import subprocess
import sys

import tree


def load():
    loader = importlib.machinery.SourceFileLoader("runner", str(tree.ROOT / "tests" / "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
    loader.exec_module(module)
    return module


runner = load()
GOOD = "[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n" \
       "[ RUN      ] b\n[       OK ] b\n[==========] 2 test(s) run.\n[  PASSED  ] 2 test(s).\n"
BAD = "[==========] Running 2 test(s).\n[ RUN      ] a\n[       OK ] a\n" \
      "[ RUN      ] b\n[  FAILED  ] b\n[==========] 2 test(s) run.\n[  PASSED  ] 1 test(s).\n" \
      "[  FAILED  ] suite: 1 test(s), listed below:\n[  FAILED  ] b\n"


def unit(tmp_path, **test):
    log = tmp_path / "testlog.json"
    log.write_text(json.dumps({"name": "graftrace:unit / x", "result": "OK", "stdout": "", **test}))
    outcome = runner.unit_outcome(log)
    return outcome.passed, outcome.failed


def test_each_cmocka_test_counts(tmp_path):
    assert unit(tmp_path, stdout=GOOD) == (2, 0)
    assert unit(tmp_path, stdout=BAD, result="FAIL") == (1, 1)


def test_a_unit_program_that_dies_or_hangs_counts_as_failed(tmp_path):
    cut = GOOD[:GOOD.index("[ RUN      ] b")]
    assert unit(tmp_path, stdout=cut, result="FAIL") == (1, 1)
    assert unit(tmp_path, stdout="", result="TIMEOUT") == (0, 1)


def test_a_unit_program_without_a_test_counts_as_failed(tmp_path):
    empty = "[==========] Running 0 test(s).\n[==========] 0 test(s) run.\n[  PASSED  ] 0 test(s).\n"
    assert unit(tmp_path, stdout=empty) == (0, 1)


def test_a_skipped_unit_test_counts_as_failed(tmp_path):
    text = GOOD.replace("[       OK ] b", "[  SKIPPED ] b")
    assert unit(tmp_path, stdout=text) == (1, 1)


def test_a_plain_program_counts_by_its_exit_code(tmp_path):
    assert unit(tmp_path, stdout="fine\n") == (1, 0)
    assert unit(tmp_path, stdout="bad\n", result="FAIL") == (0, 1)


def pytest_report(tmp_path, cases, code=0, output=""):
    path = tmp_path / "report.xml"
    if cases is not None:
        path.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    outcome = runner.junit_outcome(path, code, output, "pytest")
    return outcome.passed, outcome.failed


def test_pytest_reports_are_counted(tmp_path):
    good = '<testcase classname="c" name="a"/>'
    bad = '<testcase classname="c" name="b"><failure/></testcase>'
    skipped = '<testcase classname="c" name="d"><skipped/></testcase>'
    assert pytest_report(tmp_path, good + good) == (2, 0)
    assert pytest_report(tmp_path, good + bad, code=1) == (1, 1)
    assert pytest_report(tmp_path, good + skipped) == (1, 1)
    assert pytest_report(tmp_path, good, code=2) == (1, 1)


def test_a_pytest_that_dies_counts_what_it_said_and_one_failure(tmp_path):
    output = "a.py::x PASSED   [ 50%]\na.py::y FAILED   [100%]\n"
    assert pytest_report(tmp_path, None, code=None, output=output) == (1, 2)


def test_a_suite_that_hangs_is_ended_with_all_its_children(tmp_path):
    marker = tmp_path / "late"
    code, _ = runner.run_bounded(
        ["sh", "-c", f"(sleep 3; touch {marker}) & sleep 100"], 1)
    assert code is None
    code, _ = runner.run_bounded(["sleep", "3"], 10)
    assert code == 0 and not marker.exists()


def test_a_run_that_is_ended_takes_its_suite_along(tmp_path):
    held = tmp_path / "held"  # open in all that the suite has begun
    os.mkfifo(held)
    end = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    code = (f"import sys; sys.path.insert(0, {str(tree.ROOT / 'tests' / 'checks')!r})\n"
            "import test_runner as t\n"
            f"t.runner.SUITES = [t.runner.Suite('x', 'gcc', lambda *_: t.runner.run_bounded("
            f"['sh', '-c', 'exec 3> {held}; echo begun; sleep 100; :'], 100), 100)]\n"
            "t.runner.build = lambda *_: None\nsys.argv = ['run']\nt.runner.main()\n")
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "==== x\n"
    assert process.stdout.readline() == "begun\n"
    process.terminate()
    assert process.wait(timeout=20) == 143
    assert select.select([end], [], [], 20)[0] and os.read(end, 1) == b""
    os.close(end)


def test_an_empty_suite_counts_as_failed():
    suite = runner.Suite("x", "gcc", lambda build, limit, long: runner.Outcome(), 10)
    outcome = runner.run_suite(suite, {"gcc": None}, float("inf"), False)
    assert (outcome.passed, outcome.failed) == (0, 1)


def test_a_build_that_fails_counts_as_failed():
    suite = runner.Suite("x", "gcc", None, 10)
    outcome = runner.run_suite(suite, {"gcc": "ninja failed"}, float("inf"), False)
    assert (outcome.passed, outcome.failed) == (0, 1)


def run_suites(suites):
    """What tests/run prints of suites that are written as code, with `runner` and `meeting`."""
    code = ("import sys, threading\n"
            f"sys.path.insert(0, {str(tree.ROOT / 'tests' / 'checks')!r})\n"
            "from test_runner import runner\n"
            "meeting = threading.Barrier(2, timeout=60)\n"
            f"{suites}"
            "runner.build = lambda *_: None\nsys.argv = ['run']\nsys.exit(runner.main())\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_suites_run_side_by_side_and_print_one_after_the_other():
    out = run_suites(
        "def suite(*_):\n"
        "    meeting.wait()\n"
        "    runner.run_bounded(['sh', '-c', 'echo one; sleep 0.2; echo two'], 60)\n"
        "    return runner.Outcome(1)\n"
        "runner.SUITES = [runner.Suite(name, 'gcc', suite, 60) for name in 'xy']\n")
    assert "==== x\none\ntwo\n" in out and "==== y\none\ntwo\n" in out
    assert out.endswith("2 passed, 0 failed\n")


def test_a_lane_that_is_done_takes_the_next_suite():
    out = run_suites(
        "def until_the_other(*_):\n"
        "    meeting.wait()\n"
        "    return runner.Outcome(1)\n"
        "def short(*_):\n"
        "    return runner.Outcome(1)\n"
        "runner.SUITES = [runner.Suite(name, 'gcc', suite, 60) for name, suite in\n"
        "                 (('a', until_the_other), ('b', short), ('c', short),\n"
        "                  ('d', until_the_other))]\n")
    assert out.endswith("4 passed, 0 failed\n")
