# SPDX-License-Identifier: MIT
"""Dynamic probes of a kernel: the unikernel and Debian's kernel get the same lines. Names of functions are exchanged for
ones of the same length."""

import re
import shlex

import pytest

import linux_guest
from linux import BOOT_LIMIT_S
from test_unikernel_events import expect
from test_unikernel_trace import ftrace, put, visit
from unikernel import Machine

pytestmark = pytest.mark.timeout(2 * BOOT_LIMIT_S + 120)

OURS = {"vfs_read": "mem_free", "vfs_write": "lwip_read"}

TAKEN = (
    r'p:fixed vfs_read a=\5:s8 b=\-1:u16 c=\0x1234:x32 d=\"text" h=\0x2a:b4@2/8 i=\-3',
    "p:faults vfs_read a=+0(\\1):string b=+0(\\1):u32 c=+8(+0(\\1)):x64 d=+0(\\1):ustring e=+u0(\\1):u8 f=+0(\\1):u8[2]",
    "p:places vfs_read $arg1 %di x=%si:x16 y=$stack0:symbol z=+8($stack):s64 $stack",
    "p:strings vfs_read text=+0($arg1):string who=$comm all=+0($arg1):u8[4] two=+0(%di):x16[2]",
    "r:back vfs_read $retval n=$retval:s32 who=$comm",
    "r:shop/back vfs_read",
    "r7:shop/bounded vfs_read $retval:u8",
    "p:shop.shelf vfs_read",
    "p:shop/ vfs_write",
    "p vfs_read",
    "r vfs_read",
    "p:twice vfs_read one=%di",
    "p:twice vfs_write one=%si",
    "p:inside vfs_read+5 one=%di who=$comm",
    "p vfs_read+5",
)
REFUSED = (
    "p", "p:", "p:x", "p: vfs_read", "p:/x vfs_read", "p:x/ ", "p:9x vfs_read", "p:x-y vfs_read", "p:a/b/c vfs_read", "q:x vfs_read",
    "p:" + "n" * 64 + " vfs_read", "p:x no_such_function", "p:x vfs_read+0x100000", "p:x vfs_read+nine", "p:x vfs_read-1",
    "r:x vfs_read+4", "p:x vfs_read+1", "p:x vfs_read+4", "p:inside vfs_read+3 one=%di who=$comm", "p:x vfs_read+5 $arg1",
    "p:inside vfs_read+5 one=%di who=$comm", "r:inside vfs_read", "r:x vfs_read+5",
    "p4:x vfs_read", "r99999:x vfs_read",
    "p:x vfs_read $retval", "r:x vfs_read $arg1", "p:x vfs_read $argx", "p:x vfs_read $arg0", "p:x vfs_read $stackx", "p:x vfs_read $",
    "p:x vfs_read %nowhere", "p:x vfs_read %", "p:x vfs_read @nosuch+", "p:x vfs_read @", "p:x vfs_read +(%di)", "p:x vfs_read +0(%di",
    "p:x vfs_read +0%di)", "p:x vfs_read +x(%di)", r"p:x vfs_read a=\x", r'p:x vfs_read a=\"text', "p:x vfs_read a=%di:u7",
    "p:x vfs_read a=%di:", "p:x vfs_read a=%di:b4@9", "p:x vfs_read a=%di:b4@62/64", "p:x vfs_read a=%di:u8[", "p:x vfs_read a=%di:u8[0]",
    "p:x vfs_read a=%di:u8[65]", "p:x vfs_read a=%di:u8[2]", "p:x vfs_read a=%di:string", "p:x vfs_read a=$comm:u8", "p:x vfs_read a=",
    "p:x vfs_read =%di", "p:x vfs_read 9a=%di", "p:x vfs_read a-b=%di", "p:x vfs_read " + "a" * 40 + "=%di", "p:x vfs_read a=%di a=%si",
    "p:x vfs_read common_pid=%di", "p:x vfs_read __probe_ip=%di",
    "p vfs_read+0 $arg1", "p:twice vfs_read two=%di", "p:twice vfs_read one=%di:u8", "r:twice vfs_read", "p:twice vfs_read one=%di", "-:no_such", "-:",
    "-", "-:shop/no_such",
)
# Refused by both: a place beyond the function is not looked for among others, a symbol is looked at before the probe is
# set, and some of Linux's words have changed since 6.1.
IN_OTHER_WORDS = ("p:x vfs_read+0x100000", "p:x vfs_read @nosuch+", "p:x vfs_read @", "p4:x vfs_read")
EVENTS = ("kprobes/fixed", "kprobes/faults", "kprobes/places", "kprobes/strings", "kprobes/back", "shop/back",
          "shop/bounded", "shop/shelf", "kprobes/twice", "kprobes/inside")

# What it printed, each behind a line with its name.
SCRIPT = r"""
cd /sys/kernel/tracing
say() { echo "@@ $1"; cat "$2"; }
try() {
    printf '%s' "$2" >> kprobe_events && echo "@@ result $1 taken" || echo "@@ result $1 refused"
    say "error $1" error_log; : > error_log
}
exec > /results/said 2> /dev/null
LINES
say kprobe_events kprobe_events
say dynamic_events dynamic_events
for event in EVENTS; do say format:$event events/$event/format; done
echo 1 > events/kprobes/enable; echo 1 > events/shop/enable
cat /proc/cpuinfo > /dev/null; cat kprobe_events > /dev/null
echo 0 > events/enable
say trace trace
say kprobe_profile kprobe_profile
cd /results
"""


def renamed(text, names):
    return re.sub("|".join(names), lambda name: names[name[0]], text)


def parts_of(text):
    """{name: text} of what SCRIPT printed."""
    parts = re.split(r"^@@ (.*)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    directory = tmp_path_factory.mktemp("linux_probes")
    lines = "\n".join(f"try {number} {shlex.quote(line)}" for number, line in enumerate([*TAKEN, *REFUSED]))
    said = linux_guest.run(directory, SCRIPT.replace("LINES", lines).replace("EVENTS", " ".join(EVENTS)), [])
    assert (directory / "said").exists(), said
    return parts_of((directory / "said").read_text(errors="replace"))


@pytest.fixture(scope="module")
def ours():
    found = {}
    with Machine(TARGET="webserver", TRACE="ftrace", CPUS=1) as machine:
        machine.wait_for("webserver: http")

        def say(name, path):
            found[name] = renamed(ftrace(machine, path).decode(errors="replace"), {own: name for name, own in OURS.items()})

        expect(machine, "current_tracer", "nop")
        for number, line in enumerate([*TAKEN, *REFUSED]):
            is_taken = put(machine, "kprobe_events", renamed(line, OURS), "POST")[0] == 204
            found[f"result {number} {'taken' if is_taken else 'refused'}"] = ""
            say(f"error {number}", "error_log")
            expect(machine, "error_log", "")
        say("kprobe_events", "kprobe_events")
        say("dynamic_events", "dynamic_events")
        for event in EVENTS:
            say(f"format:{event}", f"events/{event}/format")
        expect(machine, "trace", "")
        expect(machine, "events/kprobes/enable", "1")
        expect(machine, "events/shop/enable", "1")
        visit(machine, 2)
        expect(machine, "events/enable", "0")
        say("trace", "trace")
        say("kprobe_profile", "kprobe_profile")
    return found


@pytest.mark.parametrize("line", [*TAKEN, *REFUSED], ids=range(len(TAKEN + REFUSED)))
def test_a_line_is_taken_or_refused_with_the_same_words(theirs, ours, line):
    number = [*TAKEN, *REFUSED].index(line)

    def of(found):
        result = next(name for name in found if name.startswith(f"result {number} "))
        return result, re.sub(r"^\[ *\d+\.\d+\] ", "", found[f"error {number}"], flags=re.M)

    if not of(theirs)[1] or line in IN_OTHER_WORDS:
        assert of(ours)[0] == of(theirs)[0]  # the unikernel says why, too
    else:
        assert of(ours) == of(theirs), line
    assert of(theirs)[0].endswith("taken") == (line in TAKEN)


@pytest.mark.parametrize("name", ["kprobe_events", "dynamic_events"])
def test_a_file_says_the_same(theirs, ours, name):
    def of(found):
        return re.sub(r"^r10:", "r:", found[name], flags=re.M)  # by the number of CPUs

    assert of(ours) == of(theirs)


@pytest.mark.parametrize("event", EVENTS)
def test_a_format_has_the_same_fields_and_text(theirs, ours, event):
    def of(found):
        """Names, and types of scalars and strings, of the fields, and the text; a symbol is a number to libtraceevent, an array a text."""
        text = found[f"format:{event}"]
        fields = re.findall(r"^\tfield:(.*?);\toffset:\d+;\tsize:(\d+);\tsigned:(\d);$", text, re.M)
        scalars = [(name, size, sign) for name, size, sign in fields if "[]" not in name or "char[]" in name]
        names = [re.search(r"\w+", name.replace("[]", "").split()[-1])[0] for name, *_ in fields]
        printed = re.search(r'^print fmt: "(.*)", REC', text, re.M)[1].replace("%Lx", "%llx").replace("%Ld", "%lld")
        return text.splitlines()[0], scalars, names, re.sub(r"=(?:\{[^}]*\}|%s(?= |$))", "=ARRAY", printed).replace(
            "%pS", "0x%llx")

    assert of(ours) == of(theirs)


def test_events_are_printed_alike(theirs, ours):
    def of(found):
        """The texts of the lines, without what is this machine's. Numbers that cannot be read are 0 in Linux."""
        texts = set()
        for line in found["trace"].splitlines():
            text = re.search(r": ((?:fixed|faults|places|strings|back|bounded|shelf|twice|inside): .*)", line)
            if not text:
                continue
            text = re.sub(r"\w+\+0x[0-9a-f]+/0x[0-9a-f]+|\[unknown/kretprobe'd\]", "SYMBOL", text[1])
            text = re.sub(r'(who|text)="[^"]*"', r'\1="…"', text)
            text = re.sub(r"(\b(?:x|y|z|arg\d|n|one|all|two|\w+)=)(-?0x[0-9a-f]+|-?\d+|\{[^}]*\})", r"\1N", text) \
                if not text.startswith("fixed") else text
            texts.add(re.sub(r"(\b[bcef])=\S+", r"\1=0", text) if text.startswith("faults") else text)
        return texts

    assert of(ours) == of(theirs)


def test_the_profile_has_linuxs_columns(theirs, ours):
    def of(found):
        return [re.sub(r"( *)(\d+)", lambda number: "N" * len(number[0]), line[46:]) + line[:46]
                for line in found["kprobe_profile"].splitlines()]

    assert of(ours) == of(theirs)
