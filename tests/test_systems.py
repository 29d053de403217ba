# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of systems, and what is chosen from it."""

import pytest

from lab import paths, systems
from lab.errors import LabError


def test_a_system_brings_what_it_is_built_on() -> None:
    assert systems.with_needs(["gcma"]) == [systems.RESERVE, systems.GCMA]
    assert systems.with_needs(["compactfit", "reserve"]) == [systems.RESERVE, systems.COMPACTFIT]
    assert systems.with_needs(["dirty"]) == [
        *(systems.RESERVE, systems.GCMA, systems.SWAP, systems.DIRTY)
    ]
    assert systems.with_needs([]) == []


def test_what_a_system_needs_stands_before_it() -> None:
    names = list(systems.SYSTEMS)
    for system in systems.SYSTEMS.values():
        assert all(names.index(need) < names.index(system.name) for need in system.needs)


def test_an_unknown_system_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match=r"^unknown system dcma: choose of reserve, gcma, "):
        systems.with_needs(["gcma", "dcma"])


def test_each_policy_is_offered_by_one_system() -> None:
    assert systems.POLICIES == ("none", "movable", "gcma", "rental")
    assert [systems.offering(policy).name for policy in systems.POLICIES] == [
        *("reserve", "reserve", "gcma", "rental")
    ]
    with pytest.raises(LabError, match="unknown policy lodger: choose one of none, movable, gcma"):
        systems.offering("lodger")


def test_selftests_are_where_the_systems_say() -> None:
    for system in systems.SYSTEMS.values():
        if system.selftests:
            assert (paths.SELFTESTS / system.selftests / "Makefile").exists()
