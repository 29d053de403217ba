# SPDX-License-Identifier: GPL-2.0-or-later
"""What the library's tests and tools print, as cases."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab import console, ktap
from lab.compactfit import traces
from lab.compactfit.build import Preset
from lab.compactfit.ceilings import Ceiling
from lab.ktap import Case
from lab.process import Finished

CARGO_RESULT = re.compile(r"test (?P<name>.+) \.\.\. (?P<result>ok|ignored|FAILED)\b")
REFUSED = "/* refused */"  # at the end of a line that the compiler shall not accept
REFUSED_AT = re.compile(r":(\d+):\d+:.* (?:required from|requested) here", re.M)
FUZZ_WRONG = re.compile(r"fuzz\.c:\d+: |runtime error: |ERROR: |Test unit written")
FUZZ_DETAIL = 4000  # letters at the end of what libFuzzer prints
MISRA_RULE = re.compile(r"\[misra-c2012-([\d.]+)\]")
BRANCHES = 95.0  # percent of the library's that the tests have to take


@dataclass(frozen=True)
class StepResult:
    """The cases of a step, and what to read if one failed."""

    cases: list[Case]
    detail: str = ""


def together(results: Sequence[StepResult]) -> StepResult:
    """The cases of all of them, and what to read of those that failed."""
    return StepResult(
        [case for result in results for case in result.cases],
        "\n".join(result.detail for result in results if result.detail),
    )


def commands(answers: Mapping[str, Finished]) -> StepResult:
    """A case for each name, whose command has to end with 0."""
    failed = [answer for answer in answers.values() if answer.returncode]
    return StepResult(
        [Case(name, answer.returncode == 0) for name, answer in answers.items()],
        "\n".join(answer.stdout + answer.stderr for answer in failed),
    )


def refusals(name: str, source: str, answer: Finished) -> StepResult:
    """Did the compiler find something in each line that is marked, and in no other?"""
    lines = enumerate(source.splitlines(), 1)
    marked = {number for number, line in lines if line.endswith(REFUSED)}
    refused = {int(number) for number in REFUSED_AT.findall(answer.stderr)}
    holds = bool(marked) and refused == marked and answer.returncode != 0
    why = "" if holds else f"other than marked: {sorted(refused ^ marked)}"
    return StepResult([Case(name, holds, why=why)], "" if holds else answer.stderr)


def refusal(name: str, answer: Finished, *told: str) -> Case:
    """Is it refused, and is the user told why and what to do?"""
    message = answer.stderr
    holds = answer.returncode != 0 and all(words in message for words in told)
    return Case(name, holds, why="" if holds else message.strip()[-500:])


def programs(preset: Preset, answers: Mapping[str, Finished]) -> StepResult:
    """The cases that programs reported. One that reports no failure has to end well."""
    cases: list[Case] = []
    details: list[str] = []
    for program, answer in answers.items():
        reported = ktap.parse(answer.stdout)
        if not reported or (answer.returncode and all(case.passed for case in reported)):
            reported.append(Case(f"{program} ends well", passed=False))
            details.append(answer.stdout + answer.stderr)
        cases += [replace(case, name=f"{case.name} ({preset.name})") for case in reported]
    return StepResult(cases, "\n".join(details))


def cargo(answer: Finished, which: str = "") -> StepResult:
    """The cases of `cargo test`; `which` names the compiler."""
    cases = cargo_cases(answer.stdout, which)
    if answer.returncode or not cases:
        cases.append(Case(f"cargo test ends well (rust{which})", passed=False))
        return StepResult(cases, answer.stdout + answer.stderr)
    return StepResult(cases)


def cargo_cases(text: str, which: str = "") -> list[Case]:
    matches = [CARGO_RESULT.match(line) for line in text.splitlines()]
    return [
        Case(
            f"{match['name']} (rust{which})",
            match["result"] != "FAILED",
            match["result"] == "ignored",
        )
        for match in matches
        if match
    ]


def fuzzing(seconds: int, answer: Finished) -> StepResult:
    """Did libFuzzer find nothing?"""
    name = f"fuzzing for {seconds} s finds nothing"
    if answer.returncode == 0:
        return StepResult([Case(name, passed=True)])
    wrong = [line for line in answer.stderr.splitlines() if FUZZ_WRONG.search(line)]
    case = Case(name, passed=False, why="; ".join(wrong[:3]))
    return StepResult([case], answer.stderr[-FUZZ_DETAIL:])


def misra(listed: str, answer: Finished) -> Case:
    """Is each rule of MISRA C that is violated in the table of those that are?"""
    rows = re.findall(r"^\| (\d[\d., ]*) \|", listed, flags=re.M)
    known = {rule for row in rows for rule in row.split(", ")}
    found = set(MISRA_RULE.findall(answer.stderr))
    others = found - known
    name = "the library departs from MISRA C only where it says so"
    holds = bool(known & found) and not others
    # without its addon cppcheck ends with 0, and has found nothing
    why = " ".join(sorted(others)) or answer.stderr.strip() or "nothing was looked at"
    return Case(name, holds, why="" if holds else why)


def ceiling(of: Ceiling) -> Case:
    """Is no path through the code longer than what is published?"""
    blocks = f" of {of.blocks} block-frames" if of.blocks else ""
    name = f"{of.configuration}: no path of {of.operation}{blocks} is longer than its ceiling"
    holds = 0 < of.derived <= of.published
    return Case(name, holds, why="" if holds else f"{of.derived}, published {of.published}")


def needs(preset: Preset, symbols: str) -> Case:
    """Does the library for another machine call nothing but what its compiler has to bring?"""
    undefined = set(re.findall(r"^ +U (\S+)$", symbols, flags=re.M)) - preset.calls
    name = f"the library needs nothing else ({preset.name})"
    return Case(name, not undefined, why=" ".join(sorted(undefined)))


def smallest(preset: Preset, code: int) -> Case:
    """Is the library without all that can be left out as small as it has to be?"""
    console.say(f"compactfit: {code} bytes without all that can be left out for {preset.name}")
    name = f"without its parts the library has {preset.smallest:,} bytes of code at most"
    return Case(f"{name} ({preset.name})", code <= preset.smallest, why=f"{code}")


def replay(allocator: str, answer: Finished) -> Case:
    """Is what is known of the small trace found when it is replayed on this allocator?"""
    name = f"a trace is replayed on {allocator}"
    if answer.returncode:
        return Case(name, passed=False, why=answer.stderr.strip())
    return replay_numbers(name, json.loads(answer.stdout))


def replay_numbers(name: str, numbers: Mapping[str, Any]) -> Case:
    peak = traces.SMALL_PEAK
    least = numbers["least_memory"]
    holds = (
        numbers["peak"] == peak
        and numbers["calls"] == traces.SMALL_CALLS
        and numbers["failed"] == numbers["refused"] == 0
        and (least is None or peak <= least <= 2 * peak)
        and numbers["footprint"]["peak"] >= peak
        and all(numbers[call]["mean"] > 10 for call in ("malloc", "free", "realloc"))
    )
    return Case(name, holds, why="" if holds else json.dumps(numbers))


def coverage(answer: Finished) -> Case:
    """What gcovr counts."""
    if answer.returncode:
        return Case("gcovr counts branches", passed=False, why=answer.stderr.strip())
    return branches(float(json.loads(answer.stdout)["branch_percent"]))


def branches(percent: float) -> Case:
    """Are these percent of the library's branches enough?"""
    console.say(f"compactfit: the tests take {percent} % of the library's branches")
    why = "" if percent >= BRANCHES else f"they take {percent} %"
    return Case(
        f"the tests take {BRANCHES:g} % of the library's branches", percent >= BRANCHES, why=why
    )
