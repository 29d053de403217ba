# SPDX-License-Identifier: GPL-2.0-or-later
"""Fragments, and what a configuration must keep of them."""

from pathlib import Path

import pytest

from lab import build, systems, targets
from lab.errors import LabError


def test_config_is_read_with_what_is_off() -> None:
    text = '# comment\nCONFIG_A=y\n# CONFIG_B is not set\nCONFIG_N=19\nCONFIG_S="x"\n'
    assert build.read_config(text) == {
        "CONFIG_A": "y",
        "CONFIG_B": "n",
        "CONFIG_N": "19",
        "CONFIG_S": '"x"',
    }


def test_lost_symbol_is_named() -> None:
    wanted = {"CONFIG_A": "y", "CONFIG_GONE": "y", "CONFIG_N": "19"}
    config = {"CONFIG_A": "y", "CONFIG_N": "7"}
    assert build.missing_symbols(wanted, config) == ["CONFIG_GONE=y", "CONFIG_N=19"]


def test_symbol_switched_off_may_be_unknown() -> None:
    assert build.missing_symbols({"CONFIG_A": "n"}, {}) == []
    assert build.missing_symbols({"CONFIG_A": "n"}, {"CONFIG_A": "y"}) == ["CONFIG_A=n"]


def test_every_fragment_exists_and_belongs_to_a_flavour() -> None:
    used = {name for flavour in build.FLAVOURS.values() for name in flavour.fragments}
    assert used == {path.stem for path in build.CONFIGS.glob("*.config")}
    ours = {name for system in systems.SYSTEMS.values() for name in system.fragments}
    assert ours <= used


def test_an_architecture_adds_to_fragments_that_there_are() -> None:
    folders = {path.name for path in build.CONFIGS.iterdir() if path.is_dir()}
    assert folders == {target.fragments for target in targets.TARGETS.values()}
    for path in build.CONFIGS.glob("*/*.config"):
        assert (build.CONFIGS / path.name).exists(), path


def test_no_symbol_is_asked_for_twice() -> None:
    overruling = ("debug", "kcsan", "lockstat", "irqs")  # the plain fragments
    for flavour in build.FLAVOURS.values():
        seen: set[str] = set()
        for path in build.fragments(flavour, targets.DEFAULT):
            if path.stem in overruling:
                continue
            symbols = set(build.read_config(path.read_text()))
            assert not symbols & seen, f"{path.name} repeats {symbols & seen}"
            seen |= symbols


def test_a_kernel_without_our_systems_asks_for_none_of_their_symbols() -> None:
    plain = build.fragments(build.FLAVOURS["nogcma"], targets.DEFAULT)
    asked = {symbol for path in plain for symbol in build.read_config(path.read_text())}
    assert not asked & {system.symbol for system in systems.SYSTEMS.values()}


def test_each_systems_fragments_switch_it_on() -> None:
    for system in systems.SYSTEMS.values():
        files = [build.CONFIGS / f"{name}.config" for name in system.fragments]
        asked = build.read_config("".join(path.read_text() for path in files))
        assert asked[system.symbol] == "y", system.name


def test_a_kernel_tells_which_systems_it_has() -> None:
    kernel = build.Kernel(
        build.FLAVOURS["prod"], "6.12.7", Path("/none"), {"CONFIG_COMPACTFIT": "y"}
    )
    assert kernel.has(systems.COMPACTFIT)
    assert not kernel.has(systems.GCMA)


def test_unknown_flavour_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match="unknown flavour fast: choose one of prod, debug"):
        build.find("fast")


def test_first_compiler_error_is_shown() -> None:
    log = (
        "  CC      mm/a.o\n../mm/a.c:3:1: error: expected ';'\n  more\nmake: *** [mm/a.o] Error 1\n"
    )
    assert build.first_error(log).startswith("../mm/a.c:3:1: error")
