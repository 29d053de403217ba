# SPDX-License-Identifier: GPL-2.0-or-later
"""Fragments, and what a configuration must keep of them."""

import pytest

from lab import build
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
    assert build.missing_symbols(wanted, config, ()) == ["CONFIG_GONE=y", "CONFIG_N=19"]


def test_symbol_switched_off_may_be_unknown() -> None:
    assert build.missing_symbols({"CONFIG_A": "n"}, {}, ()) == []
    assert build.missing_symbols({"CONFIG_A": "n"}, {"CONFIG_A": "y"}, ()) == ["CONFIG_A=n"]


def test_our_symbols_are_tolerated_only_by_name() -> None:
    wanted = {"CONFIG_GCMA": "y", "CONFIG_GONE": "y"}
    assert build.missing_symbols(wanted, {}, build.OURS) == ["CONFIG_GONE=y"]


def test_every_fragment_exists_and_belongs_to_a_flavour() -> None:
    used = {name for flavour in build.FLAVOURS.values() for name in flavour.fragments}
    assert used == {path.stem for path in build.CONFIGS.glob("*.config")}


def test_no_symbol_is_asked_for_twice() -> None:
    for flavour in build.FLAVOURS.values():
        seen: set[str] = set()
        for name in flavour.fragments:
            if name == "debug":  # it may overrule the plain fragments
                continue
            symbols = set(build.read_config((build.CONFIGS / f"{name}.config").read_text()))
            assert not symbols & seen, f"{name}.config repeats {symbols & seen}"
            seen |= symbols


def test_only_gcma_flavours_ask_for_our_symbols() -> None:
    ours = build.read_config((build.CONFIGS / "gcma.config").read_text())
    assert set(ours) == build.OURS


def test_unknown_flavour_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match="unknown flavour fast: choose one of prod, debug"):
        build.find("fast")


def test_first_compiler_error_is_shown() -> None:
    log = (
        "  CC      mm/a.o\n../mm/a.c:3:1: error: expected ';'\n  more\nmake: *** [mm/a.o] Error 1\n"
    )
    assert build.first_error(log).startswith("../mm/a.c:3:1: error")
