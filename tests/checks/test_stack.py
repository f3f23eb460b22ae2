# SPDX-License-Identifier: MIT
"""The agent looks for room on the program's stack before it masks signals: no path behind that needs
more than it has looked for."""

import json
import re
import shlex
import subprocess

import tree

BUILD = tree.BUILD


def call_graph(directory):
    """Stack bytes of each of the agent's functions, and what it calls, as gcc compiles them."""
    stack, calls = {}, {}
    commands = json.loads((BUILD / "compile_commands.json").read_text())
    agent = [c for c in commands if "agent.elf.p/" in c["output"] and c["file"].endswith(".c")]
    assert len(agent) > 8
    for number, command in enumerate(agent):
        words = [w for w in shlex.split(command["command"]) if w != "ccache"]
        words = ["gcc", *words[1:words.index("-MD")], "-fcallgraph-info=su", "-o",
                 str(directory / f"{number}.o"), "-c", command["file"]]
        subprocess.run(words, cwd=command["directory"], check=True)
        text = (directory / f"{number}.ci").read_text()
        for name, label in re.findall(r'node: \{ title: "([^"]+)" label: "([^"]*)"', text):
            own = re.search(r"(\d+) bytes \(static\)", label)
            if own:
                # a function of another file is named without that file
                stack[name] = stack[name.split(":")[-1]] = int(own[1]) + 8
        for caller, callee in re.findall(r'sourcename: "([^"]+)" targetname: "([^"]+)"', text):
            calls.setdefault(caller, set()).add(callee)
            calls.setdefault(caller.split(":")[-1], set()).add(callee)
    return stack, calls


def test_the_slow_half_needs_no_more_stack_than_it_looks_for(tmp_path):
    stack, calls = call_graph(tmp_path)
    text = (tree.ROOT / "port/program/agent.h").read_text()
    room = int(re.search(r"#define GT_SLOW_STACK_BYTES (\d+)", text)[1])

    def deepest(name, above=()):
        assert name not in above, f"{name} calls itself"
        below = [deepest(callee, (*above, name)) for callee in calls.get(name, ())]
        return stack.get(name, 0) + max(below, default=0)

    masking = {name for name, callees in calls.items()
               if any(callee.split(":")[-1] == "gt_signals_mask" for callee in callees)}
    masking |= {"gt_agent_entry", "gt_agent_exit"}
    assert len(masking) > 4
    needed = {name: deepest(name) - stack[name] for name in masking}
    assert max(needed.values()) > 500
    assert {name: bytes for name, bytes in needed.items() if bytes > room} == {}
