# SPDX-License-Identifier: GPL-2.0-or-later
"""What the user sees: results on stdout, everything else on stderr.

rich takes longer to import than most verbs take to run: only what draws with it imports it.
"""

import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress as Bar

PIPE_WIDTH = 160  # a file or a pipe has no width of its own: tables get one they fit into
PLAIN_INTERVAL = 15.0  # seconds between two plain progress lines


class Settings:
    """Set once by the command line."""

    verbose = False


def say(text: str) -> None:
    sys.stderr.write(text + "\n")  # at once: threads do not share a line
    sys.stderr.flush()


def out() -> "Console":
    """Where tables are drawn."""
    from rich.console import Console  # noqa: PLC0415

    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_WIDTH)


def show(view: "RenderableType") -> None:
    """Draw a table, or print text as it is."""
    out().print(view, markup=False)


def show_command(command: Sequence[str]) -> None:
    """With --verbose: exactly what is about to be run."""
    if Settings.verbose:
        say("+ " + shlex.join(command))


def duration(seconds: float) -> str:
    """A time that a person waits: '42 s', '3 min 05 s'."""
    whole = round(seconds)
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02d} s"


class Progress:
    """How far one long step is, and how long it will still take.

    `expected` is the step's duration on a 2-core machine in seconds: the estimate
    until the step's own speed is known. `total` is at most what is to do if `at_most`.
    """

    def __init__(self, title: str, total: float, expected: float, *, at_most: bool = False) -> None:
        self.title = title
        self.total = total
        self.about = "at most" if at_most else "about"
        self.expected = expected
        self.done = 0.0
        self.first: float | None = None  # where this run began: a resumed build begins part-way
        self.start = time.monotonic()

    def update(self, done: float) -> None:
        if self.first is None:
            self.first = done
        self.done = min(done, self.total)

    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def left(self) -> float:
        """Seconds left: the expectation at first, this run's own speed more and more."""
        first = self.first or 0.0
        share = (self.done - first) / max(self.total - first, 1e-9)
        planned = self.expected * (1 - first / self.total if self.total else 1)
        if share <= 0:
            return max(planned - self.elapsed(), 0.0)
        measured = self.elapsed() * (1 - share) / share
        return share * measured + (1 - share) * (1 - share) * planned

    def line(self) -> str:
        percent = 100 * self.done / self.total if self.total else 0
        return f"{self.title}: {percent:.0f} %, {self.about} {duration(self.left())} left"


class _PlainProgress(Progress):
    """For logs: a line now and then."""

    def __init__(self, title: str, total: float, expected: float, *, at_most: bool) -> None:
        super().__init__(title, total, expected, at_most=at_most)
        self.printed_at = self.start
        say(f"{title}: about {duration(expected)}")

    def update(self, done: float) -> None:
        super().update(done)
        now = time.monotonic()
        if now - self.printed_at >= PLAIN_INTERVAL:
            self.printed_at = now
            say(self.line())


class _BarProgress(Progress):
    """For terminals."""

    def __init__(
        self, title: str, total: float, expected: float, bar: "Bar", *, at_most: bool
    ) -> None:
        super().__init__(title, total, expected, at_most=at_most)
        self.bar = bar
        self.task = bar.add_task(title, total=total)

    def update(self, done: float) -> None:
        super().update(done)
        self.bar.update(
            self.task,
            completed=self.done,
            description=f"{self.title}, {self.about} {duration(self.left())} left",
        )


class _Screen:
    """The one display of a terminal, which all steps under way share."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.bar: Bar | None = None
        self.steps = 0

    @contextmanager
    def shared(self) -> Iterator["Bar"]:
        with self.lock:
            if self.bar is None:
                self.bar = _bar()
                self.bar.start()
            self.steps += 1
            bar = self.bar
        try:
            yield bar
        finally:
            with self.lock:
                self.steps -= 1
                if not self.steps:
                    bar.stop()
                    self.bar = None


_screen = _Screen()


def _bar() -> "Bar":
    from rich import progress as parts  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415

    columns = (
        parts.SpinnerColumn(),
        parts.TextColumn("{task.description}"),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
    )
    err = Console(stderr=True, highlight=False, soft_wrap=True)
    return parts.Progress(*columns, console=err, transient=True)


@contextmanager
def progress(
    title: str, total: float, expected: float, *, at_most: bool = False
) -> Iterator[Progress]:
    """Show one long step; say at its end how long it took. Steps may run side by side."""
    step: Progress
    if sys.stderr.isatty():
        with _screen.shared() as bar:
            step = _BarProgress(title, total, expected, bar, at_most=at_most)
            try:
                yield step
            finally:
                bar.remove_task(step.task)
    else:
        step = _PlainProgress(title, total, expected, at_most=at_most)
        yield step
    say(f"{title}: done in {duration(step.elapsed())}")
