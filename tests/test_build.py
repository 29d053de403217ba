# SPDX-License-Identifier: GPL-2.0-or-later
"""Fragments, and what a configuration must keep of them."""

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from lab import build, flavours, guests, source, systems, targets
from lab.errors import LabError
from tests.conftest import Lab, tool


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
    used = {name for flavour in flavours.FLAVOURS.values() for name in flavour.fragments}
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
    for flavour in flavours.FLAVOURS.values():
        seen: set[str] = set()
        for path in build.fragments(flavour, targets.DEFAULT):
            if path.stem in overruling:
                continue
            symbols = set(build.read_config(path.read_text()))
            assert not symbols & seen, f"{path.name} repeats {symbols & seen}"
            seen |= symbols


def test_a_kernel_without_our_systems_asks_for_none_of_their_symbols() -> None:
    plain = build.fragments(flavours.FLAVOURS["nogcma"], targets.DEFAULT)
    asked = {symbol for path in plain for symbol in build.read_config(path.read_text())}
    assert not asked & {system.symbol for system in systems.SYSTEMS.values()}


def test_a_kernel_without_rental_memory_lacks_nothing_else_of_prod() -> None:
    prod, without = (flavours.FLAVOURS[name] for name in ("prod", "norental"))
    lacks = {system for system in systems.SYSTEMS if not without.should_have(systems.find(system))}
    assert lacks == {"rental", "camc"}
    assert set(prod.fragments) - set(without.fragments) == set(systems.RENTAL.fragments)


def test_a_kernel_without_memory_coloring_lacks_nothing_else_of_camc() -> None:
    camc, without = (flavours.FLAVOURS[name] for name in ("camc", "nocamc"))
    assert camc.should_have(systems.CAMC) and not without.should_have(systems.CAMC)
    assert set(camc.fragments) - set(without.fragments) == {"camc"}
    assert set(without.fragments) < set(camc.fragments)
    asked = build.read_config((build.CONFIGS / "camc.config").read_text())
    assert all(symbol.startswith(systems.CAMC.symbol) for symbol in asked)


def test_each_systems_fragments_switch_it_on() -> None:
    for system in systems.SYSTEMS.values():
        files = [build.CONFIGS / f"{name}.config" for name in system.fragments]
        asked = build.read_config("".join(path.read_text() for path in files))
        assert asked[system.symbol] == "y", system.name


def test_a_kernel_tells_which_systems_it_has() -> None:
    kernel = build.Kernel(
        flavours.FLAVOURS["prod"], "6.12.7", Path("/none"), {"CONFIG_COMPACTFIT": "y"}
    )
    assert kernel.has(systems.COMPACTFIT)
    assert not kernel.has(systems.GCMA)


def test_unknown_flavour_lists_the_known_ones() -> None:
    with pytest.raises(LabError, match="unknown flavour fast: choose one of prod, debug"):
        flavours.find("fast")


def test_nothing_of_the_callers_environment_is_in_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KCFLAGS", "LLVM", "CROSS_COMPILE", "KCONFIG_CONFIG", "GNUMAKEFLAGS", "O"):
        monkeypatch.setenv(name, "1")
    assert set(build._environment()) <= {"PATH", "HOME", "TMPDIR", "LC_ALL", *build.REPRODUCIBLE}


MAKE = """\
for word in "$@"; do case $word in O=*) objects=${word#O=};; esac; done
echo "$*" >>$LOG
mkdir -p $objects/include/config
case "$*" in *allnoconfig*) cat $objects/gcma-all.config >$objects/.config;; esac
touch $objects/vmlinux
"""


@dataclass(frozen=True)
class Builds:
    """Of a kernel in miniature, by tools that only tell what they would do."""

    lab: Lab
    tools: Path
    log: Path

    def build(self, tree: source.Tree) -> build.Kernel:
        self.log.write_text("")
        flavour = flavours.Flavour("small", "", ("base",))
        return build._build(flavour, targets.DEFAULT, tree)


@pytest.fixture
def builds(small_lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    folder, log, configs = (tmp_path / name for name in ("bin", "log", "configs"))
    folder.mkdir()
    configs.mkdir()
    (configs / "base.config").write_text("CONFIG_A=y\n")
    tool(folder, "make", MAKE.replace("$LOG", str(log)))
    for name in ("gcc", "ld"):
        tool(folder, name, f"echo {name} 1")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(build, "CONFIGS", configs)
    monkeypatch.setattr(build.paths, "require_space", lambda *_: None)
    return Builds(small_lab, folder, log)


def test_an_image_is_made_anew_by_another_compiler_or_linker(builds: Builds) -> None:
    def made() -> list[str]:
        builds.build(builds.lab.patched())
        words = (line.split()[-1] for line in builds.log.read_text().splitlines())
        return [word.partition("=")[0] for word in words]

    both = ["KCONFIG_ALLCONFIG", "vmlinux"]
    assert (made(), made()) == (both, [])
    for name in ("gcc", "ld"):
        tool(builds.tools, name, f"echo {name} 2")
        assert (made(), made()) == (both, [])


def test_a_kernel_is_known_by_what_it_was_made_of(builds: Builds) -> None:
    kernel = builds.build(builds.lab.patched())
    before = guests.kernel_id(kernel)
    builds.lab.write("files/mm/gcma.c", "long gcma;\n")  # while it is measured
    assert guests.kernel_id(kernel) == before
    edited = guests.kernel_id(builds.build(builds.lab.patched()))
    unpatched = guests.kernel_id(builds.build(builds.lab.pristine()))
    assert len({of.series_sha256 for of in (before, edited, unpatched)}) == 3


def test_first_compiler_error_is_shown() -> None:
    log = (
        "  CC      mm/a.o\n../mm/a.c:3:1: error: expected ';'\n  more\nmake: *** [mm/a.o] Error 1\n"
    )
    assert build.first_error(log).startswith("../mm/a.c:3:1: error")
