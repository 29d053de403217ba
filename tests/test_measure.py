# SPDX-License-Identifier: GPL-2.0-or-later
"""What guests print, and what is told of it."""

import pytest

from lab import measure, stats
from lab.errors import LabError

TRACE = """\
# tracer: nop
        v4l2-ctl-311     [001] .....    15.100000: cma_alloc_start: name=reserved count=1013 align=8
           a b c-99      [000] .....    15.100100: cma_alloc_start: name=reserved count=64 align=6
        v4l2-ctl-311     [001] .....    15.100250: cma_alloc_finish: name=reserved pfn=0x10 \
page=000000001 count=1013 align=8 errorno=0
           a b c-99      [000] .....    15.102100: cma_alloc_finish: name=reserved pfn=0x0 \
page=000000000 count=64 align=6 errorno=-12
        v4l2-ctl-311     [001] .....    16.000000: cma_alloc_start: name=reserved count=1 align=0
"""


def test_allocations_are_paired_by_task() -> None:
    first, second = measure.allocations(TRACE)
    assert (first.pages, first.microseconds, first.ok) == (1013, 250.0, True)
    assert (second.pages, second.microseconds, second.ok) == (64, 2000.0, False)


def test_cycles_are_read_as_times() -> None:
    (event,) = measure.events("  job-7   [000] .....  1234567: gcma_load: dev=1:2 ino=c index=5\n")
    assert (event.time, event.name, event.field("index")) == (1234567, "gcma_load", "5")
    with pytest.raises(LabError, match="no field pfn"):
        event.field("pfn")


def test_sections_are_cut_and_the_same_name_is_joined() -> None:
    sections = measure.sections("noise\n== area a\nx 1\n== other\n== area a\ny 2\n")
    assert sections == {"area a": "x 1\ny 2\n", "other": ""}


def test_diskstats_names_the_disk() -> None:
    text = " 252 0 nullb0 1 0 8 0 0 0 0\n 252 1 disk 12 3 96 10 2842 63 666920 9393 0 649\n"
    assert measure.diskstats(text, "disk") == measure.DiskStats(12, 96, 2842, 666920)
    with pytest.raises(LabError, match="no disk vda"):
        measure.diskstats(text, "vda")


def test_counters_gained() -> None:
    assert measure.since("a 1\nb 2\npolicy gcma\n", "a 5\nb 2\nc 7\n") == {"a": 4, "b": 0, "c": 7}


def test_ladder_samples_by_pages() -> None:
    samples = measure.ladder("64 436 3652 1\n64 500 0 0\n1 434 495 1\n12 34\n")
    assert [sample.alloc for sample in samples[64]] == [436, 500]
    assert [sample.ok for sample in samples[64]] == [True, False]
    assert list(samples) == [64, 1]


def test_jobs_one_after_the_other_are_summed() -> None:
    assert measure.job("1024 30\nsomething\n2048 12\n") == (3072, 42)


def test_job_that_was_cut_off_is_told() -> None:
    assert measure.job("noise\n20000 174273437\n") == (20000, 174273437)
    with pytest.raises(LabError, match="did not come to its end"):
        measure.job("noise\n")


def test_percentiles_are_nearest_rank() -> None:
    samples = [15, 20, 35, 40, 50]
    ranks = [stats.percentile(samples, percent) for percent in (0, 5, 30, 40, 50, 100)]
    assert ranks == [15, 15, 20, 20, 35, 50]
    assert stats.percentile(list(range(1, 101)), 99) == 99
    with pytest.raises(ValueError, match="no samples"):
        stats.percentile([], 50)


def test_summary() -> None:
    summary = stats.summary([4, 1, 1, 2])
    assert summary == stats.Summary(count=4, min=1, mean=2, median=1, p99=4, max=4)


def test_cdf_has_a_point_for_each_value() -> None:
    assert stats.cdf([3, 1, 1, 2]) == [(1, 0.5), (2, 0.75), (3, 1.0)]
