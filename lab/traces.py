# SPDX-License-Identifier: GPL-2.0-or-later
"""Traces of allocations: recorded from any program, and K chosen for one."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from lab import compactfit, console, paths
from lab.errors import LabError

SUFFIX = ".cftrace"
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SERVER_SECONDS = 20.0  # until redis-server answers
K_A_LINE = 16


def parse_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not match or not int(match[1]):
        raise LabError(f"'{text}' is not a size in bytes: write 500000, 512K, 4M or 1G")
    return int(match[1]) * UNITS[match[2]]


# Recording


def environment(folder: Path) -> dict[str, str]:
    """What a program needs in its environment to be recorded into the folder."""
    library = compactfit.tools() / "libcompactfit-record.so"
    before = os.environ.get("LD_PRELOAD")
    preload = f"{library}:{before}" if before else str(library)
    return {**os.environ, "LD_PRELOAD": preload, "CF_TRACE": str(folder.resolve())}


def record(command: Sequence[str], folder: Path, *, quiet: bool) -> tuple[int, list[Path]]:
    """Run a program while it is recorded: its status as a shell tells it, and the new traces."""
    if shutil.which(command[0]) is None:
        raise LabError(f"there is no program {command[0]}")
    folder.mkdir(parents=True, exist_ok=True)
    before = set(folder.glob("*" + SUFFIX))
    told = sys.stderr if quiet else None
    status = subprocess.run(command, env=environment(folder), stdout=told, check=False).returncode
    fresh = sorted(set(folder.glob("*" + SUFFIX)) - before)
    if not fresh:
        raise LabError(
            f"{command[0]} left no trace: it allocates nothing, is linked statically,"
            f" or may not write {folder}"
        )
    return (128 - status if status < 0 else status), fresh


def length(trace: Path) -> int:
    """Bytes of a trace without the room behind it."""
    return len(trace.read_bytes().rstrip(b"\0"))


# Programs that the evaluation records. What they do is the same each time.


@dataclass(frozen=True)
class Workload:
    """What is run in a folder of its own, and the program whose longest trace is meant."""

    program: str
    run: Callable[[Path, Mapping[str, str]], None]


def _run(
    command: Sequence[str], place: Path, environ: Mapping[str, str] | None = None, feed: str = ""
) -> None:
    console.show_command(list(command))
    answer = subprocess.run(
        command, cwd=place, env=environ, input=feed, capture_output=True, text=True, check=False
    )
    if answer.returncode:
        raise LabError(f"recording {command[0]} failed", answer.stderr.strip())


def _sqlite3(place: Path, environ: Mapping[str, str]) -> None:
    script = """
        PRAGMA synchronous = OFF;
        CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, note TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
            INSERT INTO item SELECT i, 'item ' || (i * 7919 % 20000), i * 0.01,
            substr('a note that is as long as it happens to be', 1, i % 40) FROM n;
        CREATE INDEX by_name ON item(name);
        UPDATE item SET price = price * 1.1, note = note || name WHERE id % 3 = 0;
        DELETE FROM item WHERE id % 5 = 0;
        SELECT count(*), sum(price), max(length(group_note)) FROM
            (SELECT price, group_concat(note) AS group_note FROM item GROUP BY id % 100);
        SELECT name, price FROM item WHERE name LIKE 'item 1%' ORDER BY price DESC LIMIT 2000;
        DROP INDEX by_name;
        VACUUM;
    """
    inserts = ("INSERT INTO item(name) VALUES ('late ' || changes());" for _ in range(3000))
    _run(["sqlite3", "db"], place, environ, script + "\n".join(inserts))


def redis_commands(count: int) -> str:
    """Commands that set, append to and delete values of all sizes."""
    rng = random.Random(1)  # noqa: S311 (a workload)
    lines = []
    for _ in range(count):
        key = f"key:{rng.randrange(count // 4)}"
        value = "x" * int(rng.paretovariate(1.0) * 16 if rng.random() < 0.99 else 20000)
        lines.append(
            rng.choice(
                (
                    f"SET {key} {value[:20000]}",
                    f"SET {key} {value[:20000]}",
                    f"APPEND {key} {value[:200]}",
                    f"DEL {key}",
                    f"HSET hash:{rng.randrange(100)} {key} {value[:500]}",
                    f"LPUSH list:{rng.randrange(100)} {value[:500]}",
                    f"RPOP list:{rng.randrange(100)}",
                )
            )
        )
    # an answer that tells of a wrong type is an answer
    return "\r\n".join(lines) + "\r\n"


def _redis(place: Path, environ: Mapping[str, str]) -> None:
    options = ["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no"]
    command = ["redis-server", *options]
    console.show_command(command)
    with subprocess.Popen(
        command, cwd=place, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            end = time.monotonic() + SERVER_SECONDS
            while not (place / "socket").exists():
                if time.monotonic() > end or server.poll() is not None:
                    raise LabError("recording redis-server failed: it does not start")
                time.sleep(0.05)
            _run(["redis-cli", "-s", "socket", "--pipe"], place, feed=redis_commands(60000))
            _run(["redis-cli", "-s", "socket", "shutdown", "nosave"], place)
        finally:
            server.terminate()


def _git(place: Path, environ: Mapping[str, str]) -> None:
    rng = random.Random(1)  # noqa: S311 (a workload)
    files = {f"folder{n % 7}/file{n}.txt": [f"line {i}" for i in range(50 + n)] for n in range(60)}
    stream = []
    for number in range(400):
        stream.append(
            f"commit refs/heads/main\ncommitter A <a@example.org> {10**9 + number} +0000\n"
            f"data <<END\ncommit {number}\nEND\n"
        )
        for name in rng.sample(sorted(files), 3):
            lines = files[name]
            lines[rng.randrange(len(lines))] = f"changed by commit {number}"
            lines.insert(rng.randrange(len(lines)), f"added by commit {number}")
            stream.append(f"M 644 inline {name}\ndata <<END\n" + "\n".join(lines) + "\nEND\n")
    alone = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
    _run(["git", "init", "-q", "--bare", "."], place, {**os.environ, **alone})
    _run(["git", "fast-import", "--quiet"], place, {**os.environ, **alone}, "".join(stream))
    recorded = {**environ, **alone}
    _run(["git", "-c", "pack.threads=1", "repack", "-adfq"], place, recorded)
    _run(["git", "log", "-p", "--stat", "main"], place, recorded)


def _python3(place: Path, environ: Mapping[str, str]) -> None:
    script = """
import ast, collections, json
tree = ast.parse(open(collections.__file__).read())
names = collections.Counter(type(node).__name__ for node in ast.walk(tree))
text = ast.unparse(tree)
table = {f"key {i}": {"number": i, "list": list(range(i % 50)), "text": text[i:i + i % 300]}
         for i in range(700)}
for turn in range(2):
    table = json.loads(json.dumps(table))
    for key in list(table)[turn::4]:
        del table[key]
words = sorted(set(text.split()), key=lambda word: (len(word), word))
print(len(table), len(words), names.most_common(1))
"""
    alone = {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}
    _run(["/usr/bin/python3", "-S", "-B", "-c", script], place, {**environ, **alone})


def _gcc(place: Path, environ: Mapping[str, str]) -> None:
    source = compactfit.SOURCE / "src/compactfit.c"
    include = compactfit.SOURCE / "include"
    _run(["gcc", "-O2", "-I", str(include), "-c", str(source), "-o", "out.o"], place, environ)


WORKLOADS: Mapping[str, Workload] = {
    "sqlite3": Workload("sqlite3", _sqlite3),
    "redis": Workload("redis-server", _redis),
    "git": Workload("git", _git),
    "python3": Workload("python3", _python3),
    "gcc": Workload("cc1", _gcc),
}


def record_workload(name: str) -> Path:
    """Record one of the programs afresh; its trace."""
    workload = WORKLOADS[name]
    folder = paths.cache() / "compactfit/traces" / name
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "work"
    place.mkdir(parents=True)
    workload.run(place, environment(folder))
    shutil.rmtree(place)
    found = list(folder.glob(f"{workload.program}.*{SUFFIX}"))
    if not found:
        raise LabError(f"{workload.program} left no trace in {folder}")
    longest = max(found, key=length)
    for trace in folder.glob("*" + SUFFIX):
        if trace != longest:
            trace.unlink()
    return longest


# Choosing K


def tune(trace: Path, memory: int | None) -> dict[str, Any]:
    """What compactfit-tune says of a trace."""
    command = [str(compactfit.tools() / "compactfit-tune"), str(trace)]
    command += [str(memory)] if memory else []
    console.show_command(command)
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        raise LabError(answer.stderr.strip() or f"compactfit-tune cannot read {trace}")
    found: dict[str, Any] = json.loads(answer.stdout)
    return {**found, "initializer": initializer(found)}


def initializer(found: dict[str, Any]) -> str:
    """C for cf_config.class_max_not_full."""
    k = [str(one["k"]) for one in found["classes"]]
    lines = [", ".join(k[at : at + K_A_LINE]) + "," for at in range(0, len(k), K_A_LINE)]
    wide = ", .wide = true" if found["wide"] else ""
    return (
        f"/* .class_max_not_full of a moving heap with .page_size = 0{wide} */\n"
        "static const uint16_t class_max_not_full[CF_MAX_CLASSES] = {\n\t"
        + "\n\t".join(lines)
        + "\n};"
    )


def show(found: dict[str, Any]) -> None:
    """The choice for people."""
    view = Table(title=found["command"] or "a trace", caption_justify="left")
    for name in ("size, B", "allocations", "peak", "count", "K", "moving frees", "pages"):
        view.add_column(name, justify="right")
    view.add_column("malloc", justify="right")
    view.add_column("free", justify="right")
    for one in found["classes"]:
        if one["allocations"]:
            numbers = [one[key] for key in ("size", "allocations", "peak", "max_count", "k")]
            numbers += [one["may_move"], one["pages"], one["malloc"]]
            free = str(one["free"]) + (f" + {one['copied']} B" if one["copied"] else "")
            view.add_row(*(f"{value:,}" for value in numbers), free)
    console.out.print(view)
    print(
        "count: frees that no allocation followed, at most (Proposition 1)\n"
        "moving frees: how many could move an object with this K\n"
        "pages: of 16 KiB, for the peak, whatever came before\n"
        "malloc, free: the most instructions that were found, and what is copied; nothing is pinned"
    )
    if found["large_pages"]:
        print(
            f"Objects larger than a page have {found['large_pages']:,} pages of their own at most."
        )
    if found["refused"]:
        print(
            f"Left out: {found['refused']:,} allocations of more than {found['max_size']:,} B,"
            f" the largest of {found['refused_size']:,} B."
        )
    print(
        f"\nGuaranteed: a moving heap of {found['memory']:,} bytes ({found['pages']:,} pages of 16"
        " KiB), wherever\nit begins, refuses nothing while no size-class has more objects than its"
        " peak and nothing is\npinned, in whatever order they come and go. With K = 1 that takes"
        f" {found['least_memory']:,} bytes.\n"
    )
    print(found["initializer"])
