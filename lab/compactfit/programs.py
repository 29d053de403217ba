# SPDX-License-Identifier: GPL-2.0-or-later
"""Five programs whose allocations are recorded. What they do is the same each time."""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lab import paths, process
from lab.compactfit import build, recording, traces
from lab.errors import LabError

SERVER_SECONDS = 20.0  # until redis-server answers, and until it has ended


@dataclass(frozen=True)
class Program:
    """What is run in a folder of its own, and the process whose longest trace is meant."""

    process: str
    run: Callable[[Path, Mapping[str, str]], None]


def _run(
    command: Sequence[str], place: Path, environ: Mapping[str, str] | None = None, feed: str = ""
) -> None:
    failure = f"recording {command[0]} failed"
    process.run(command, failure=failure, cwd=place, env=environ, input=feed)


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
    rng = random.Random(1)  # noqa: S311 (the same each time)
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
    with process.started(
        ["redis-server", *options],
        cwd=place,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as server:
        end = time.monotonic() + SERVER_SECONDS
        while not (place / "socket").exists():
            if time.monotonic() > end or server.poll() is not None:
                raise LabError("recording redis-server failed: it does not start")
            time.sleep(0.05)
        _run(["redis-cli", "-s", "socket", "--pipe"], place, feed=redis_commands(60000))
        _run(["redis-cli", "-s", "socket", "shutdown", "nosave"], place)
        with suppress(subprocess.TimeoutExpired):  # killed then
            server.wait(SERVER_SECONDS)


def _git(place: Path, environ: Mapping[str, str]) -> None:
    rng = random.Random(1)  # noqa: S311 (the same each time)
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
    source = build.SOURCE / "src/compactfit.c"
    include = build.SOURCE / "include"
    _run(["gcc", "-O2", "-I", str(include), "-c", str(source), "-o", "out.o"], place, environ)


PROGRAMS: Mapping[str, Program] = {
    "sqlite3": Program("sqlite3", _sqlite3),
    "redis": Program("redis-server", _redis),
    "git": Program("git", _git),
    "python3": Program("python3", _python3),
    "gcc": Program("cc1", _gcc),
}


def record(name: str) -> Path:
    """Record one of the programs afresh; its trace."""
    program = PROGRAMS[name]
    folder = paths.cache() / "compactfit/traces" / name
    shutil.rmtree(folder, ignore_errors=True)
    place = folder / "work"
    place.mkdir(parents=True)
    program.run(place, recording.environment(folder))
    shutil.rmtree(place)
    recorded = list(folder.glob(f"{program.process}.*{traces.SUFFIX}"))
    if not recorded:
        raise LabError(f"{program.process} left no trace in {folder}")
    longest = max(recorded, key=traces.length)
    for trace in folder.glob("*" + traces.SUFFIX):
        if trace != longest:
            trace.unlink()
    return longest
