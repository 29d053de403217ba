# SPDX-License-Identifier: GPL-2.0-or-later
"""The longest path of instructions through a function, read off the machine code.

No input has to be thought of: each branch is followed both ways, so no run can take more. What no
run can take is followed too, unless it is told: functions that are never called, rounds of a loop.
"""

import re
import sys
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*)$")
_TARGET = re.compile(r"^([0-9a-f]+)\b")
_PREFIXES = {"bnd", "lock", "notrack", "rep", "repz", "data16", "cs"}
_ENDS = {"ret", "hlt", "ud2"}
_NEVER = -(10**9)  # the cost of a way that cannot be gone
Known = dict[tuple[int, int], int]


class UnboundedError(Exception):
    """The longest path cannot be told."""


def _plain(function: str) -> str:
    """Its name in the source, without what the compiler adds for a copy of its own."""
    return function.partition(".")[0]


@dataclass(frozen=True)
class Instruction:
    name: str
    target: int | None  # of a jump or a call; None: computed
    following: int
    function: str


@dataclass
class Code:
    """What objdump prints of a program, read."""

    instructions: dict[int, Instruction] = field(default_factory=dict)
    functions: dict[str, int] = field(default_factory=dict)  # where each begins

    @classmethod
    def read(cls, text: str) -> "Code":
        """`text`: of objdump -d --no-show-raw-insn."""
        code = cls()
        function = ""
        lines: list[tuple[int, str, str, str]] = []
        for line in text.splitlines():
            if match := _FUNCTION.match(line):
                function = match[2]
                code.functions[function] = int(match[1], 16)
            elif match := _INSTRUCTION.match(line):
                name, operands = match[2], match[3]
                while name in _PREFIXES and operands:
                    name, _, operands = operands.strip().partition(" ")
                lines.append((int(match[1], 16), name, operands.strip(), function))
        for at, (address, name, operands, of) in enumerate(lines):
            goes = name.startswith(("j", "call", "loop"))
            target = _TARGET.match(operands) if goes else None
            code.instructions[address] = Instruction(
                name,
                int(target[1], 16) if target else None,
                lines[at + 1][0] if at + 1 < len(lines) else -1,
                of,
            )
        return code


@dataclass
class Longest:
    """The longest paths of a program, under assumptions.

    `never`: functions that are not called. `rounds`: how often all loops of a function together go
    back, by the function's name. `free`: calls that cost nothing. `pointed`: what a function takes
    that is called by a pointer; None if none is. What has no limit then, as a loop without
    `rounds`, is an error.
    """

    code: Code
    never: Set[str] = frozenset()
    rounds: Mapping[str, int] = field(default_factory=dict)
    free: Set[str] = frozenset()
    pointed: int | None = None
    _of: dict[int, int] = field(default_factory=dict)
    _entered: set[int] = field(default_factory=set)
    _names: dict[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._names = {address: name for name, address in self.code.functions.items()}

    def of(self, function: str) -> int:
        """Instructions from the function's first to its return."""
        sys.setrecursionlimit(100_000)
        return self._from(self.code.functions[function])

    def exits(self, function: str, to: str) -> tuple[int, int]:
        """Instructions of `function` until it goes on in `to` for good: the fewest, the most."""
        entry, goal = self.code.functions[function], self.code.functions[to]
        closing = self._heads(entry)
        known: dict[int, tuple[int, int]] = {goal: (0, 0)}

        def of(address: int) -> tuple[int, int]:
            if address not in known:
                ways = self._ways(address)
                if any((address, way) in closing for way in ways):
                    raise UnboundedError(f"there is a loop between {function} and {to}")
                least, most = -_NEVER, _NEVER
                for fewest, longest in map(of, ways):
                    least, most = min(least, fewest + 1), max(most, longest + 1)
                known[address] = (least, max(most, _NEVER))
            return known[address]

        return of(entry)

    def _name(self, address: int) -> str:
        """The function that begins here, if one does."""
        return _plain(self._names.get(address, ""))

    def _from(self, entry: int) -> int:
        if entry not in self._of:
            if entry in self._entered:
                raise UnboundedError(f"{self._name(entry)} calls itself")
            self._entered.add(entry)
            self._of[entry] = self._path(entry, 0, self._heads(entry), {})
        return self._of[entry]

    def _ways(self, address: int) -> list[int]:
        """Where the program can go on after this instruction, calls being stepped over."""
        instruction = self.code.instructions[address]
        if instruction.name in _ENDS:
            return []
        ways = [] if instruction.name == "jmp" else [instruction.following]
        if instruction.name.startswith("j"):
            if instruction.target is None:
                raise UnboundedError(f"{instruction.function} jumps to where only a run can tell")
            if self._name(instruction.target) not in self.never:
                ways.append(instruction.target)
        return ways

    def _heads(self, entry: int) -> Set[tuple[int, int]]:
        """The jumps that close a loop: to where the way from the entry has been already."""
        closing: set[tuple[int, int]] = set()
        on_the_way: set[int] = set()
        seen: set[int] = set()
        ways = [(entry, iter(self._ways(entry)))]
        on_the_way.add(entry)
        seen.add(entry)
        while ways:
            address, rest = ways[-1]
            for target in rest:
                if target in on_the_way:
                    closing.add((address, target))
                elif target not in seen:
                    seen.add(target)
                    on_the_way.add(target)
                    ways.append((target, iter(self._ways(target))))
                    break
            else:
                on_the_way.discard(address)
                ways.pop()
        return closing

    def _path(self, address: int, taken: int, closing: Set[tuple[int, int]], known: Known) -> int:
        """From here to the return; `taken`: rounds of loops that were gone already."""
        key = (address, taken)
        if key in known:
            return known[key]
        instruction = self.code.instructions[address]
        cost = 1
        if instruction.name.startswith("call"):
            cost = self._call(instruction.target)
        most = 0 if instruction.name in _ENDS else _NEVER
        for target in self._ways(address):
            gone = taken
            if (address, target) in closing:
                gone += 1
                if gone > self._rounds(instruction.function):
                    continue
            most = max(most, self._path(target, gone, closing, known))
        known[key] = max(cost + most, _NEVER)
        return known[key]

    def _rounds(self, function: str) -> int:
        """How often its loops go back."""
        name = _plain(function)
        if name not in self.rounds:
            raise UnboundedError(f"{name} has a loop, and nobody told how often it goes round")
        return self.rounds[name]

    def _call(self, target: int | None) -> int:
        """What the call takes, its own instruction too."""
        if target is None:
            return _NEVER if self.pointed is None else 1 + self.pointed
        name = self._name(target)
        if name in self.free:
            return 0
        return _NEVER if name in self.never else 1 + self._from(target)
