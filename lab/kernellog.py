# SPDX-License-Identifier: GPL-2.0-or-later
"""What the log of a guest's kernel reports, and whether that may be QEMU's or the host's doing."""

import re

BEGINS = "gcma: the script begins"  # in the log of a system guest
REPORT = re.compile(
    r"Kernel panic - not syncing|\bBUG: |^WARNING: |Oops: |KASAN: |UBSAN: "
    r"|INFO: (?:task .* blocked|possible|rcu.* stall)|general protection fault"
    r"|possible (?:circular|recursive) locking|kernel BUG at |Unable to handle kernel "
    r"|^BUG \S+ \("  # SLUB, of a slab cache
    # lockdep looks at nothing from here on
    r"|INFO: trying to register non-static key|turning off the locking correctness validator"
)
REPORT_LINES = 60
STAMP = re.compile(r"^(?:<\d>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?", flags=re.M)


def stale_breakpoint(text: str) -> bool:
    """Did a CPU trap on a breakpoint that is not in memory any more?

    The kernel patches its code while other CPUs run it, with a breakpoint in between. QEMU before
    8.1 does not lock a page against writers while it translates it, and may keep a translation
    with the breakpoint for ever. The oops shows the code as it is in memory: a true breakpoint,
    0xcc, would stand before the marked byte.
    """
    oops = re.search(r"Oops: int3: .*?Code: ([^\n]*)", text, flags=re.S)
    before = re.search(r"(\w\w) <\w\w>", oops[1]) if oops else None
    return before is not None and before[1] != "cc"


STALL = re.compile(r"rcu_\w+ detected stalls on CPUs/tasks:\n(?P<cpus>.*?)\(detected by", re.S)
STANDING = "a CPU of QEMU's stood still before the script began (an RCU stall)"
# The first tick after a time without any came while the CPU ran a program.
LATE_TICK = re.compile(
    r"NMI backtrace for cpu \d+\nCPU: [^\n]*\nRIP: 0010:\w*(?:lapic|hpet|tick|clock|timer)\w*\+"
    r"(?:(?!NMI backtrace|</TASK>).)*?asm_sysvec_apic_timer_interrupt[^\n]*\nRIP: 0033:",
    re.S,
)


def standing_cpu(log: str) -> bool:
    """Does RCU wait, before the script begins, for CPUs none of which runs the kernel?

    RCU asks them with an NMI where they are, and the CPU that its own thread was on. A CPU that
    hangs in the kernel answers with a trace, its interrupts off or not. One that does not answer
    runs no instruction; one that idles is waited for only because an interrupt, which would have
    woken it or RCU, never came; and so is one whose tick finds it in a program, where interrupts
    are on. Timers and interrupts are QEMU's, and no patch of this project is in their way.
    """
    text = STAMP.sub("", log).partition(BEGINS)[0]
    stall = STALL.search(text)
    if stall is None:
        return False
    waited_for = set(re.findall(r"^rcu: \t(\d+)-", stall["cpus"], flags=re.M))
    asked = set(re.findall(r"Sending NMI from CPU \d+ to CPUs (\d+):", text))
    if stall["cpus"].count("(0 ticks this GP)") == len(waited_for):
        text = LATE_TICK.sub("", text)
    ran = re.search(r"NMI backtrace for cpu \d+\n|RIP: 0010:(?!\w*(?:idle|halt))", text)
    return bool(waited_for) and waited_for <= asked and not ran


# That time passed, and half of what a kernel waits before it reports that, in seconds
HELD_UP = {r"rcu.* stall|INFO: task .* blocked": 60.0, r"soft lockup|stuck for": 10.0}


def held_up(console: str) -> float | None:
    """If a kernel reports nothing but that time passed, how long it is for that at the least."""
    reports = [line for line in STAMP.sub("", console).splitlines() if REPORT.search(line)]
    late = [
        max((least for what, least in HELD_UP.items() if re.search(what, line)), default=None)
        for line in reports
    ]
    least = [seconds for seconds in late if seconds is not None]
    return max(least) if least and len(least) == len(late) else None


def find_report(text: str) -> str | None:
    """The first panic, oops or warning of a kernel log, to its end trace or for 60 lines."""
    lines = STAMP.sub("", text).splitlines()
    for number, line in enumerate(lines):
        if REPORT.search(line):
            report = lines[number : number + REPORT_LINES]
            ends = [i for i, text in enumerate(report) if "---[ end " in text]
            return "\n".join(report[: ends[0] + 1] if ends else report)
    return None
