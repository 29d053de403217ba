# SPDX-License-Identifier: GPL-2.0-or-later
"""The policies of CMA areas have one list, cma_policies[]; what else names them agrees with it."""

import re

import pytest

from lab import export, paths, source, systems

FILES = paths.KERNEL / "files"
DOCUMENTATION = FILES / "Documentation"


def policies() -> set[str]:
    """The names in the rows of cma_policies[]."""
    text = "".join(path.read_text() for path in sorted(FILES.glob("mm/*.c")))
    table = re.search(r"cma_policies\[\] = \{(.*?)\};", text, flags=re.S)
    assert table
    rows = re.findall(r"&(\w+),", table[1])
    names = {}
    for row in rows:
        match = re.search(rf'struct cma_policy {row} = \{{\s*\.name = "(\w+)"', text)
        assert match, row
        names[row] = match[1]
    return set(names.values())


def test_the_table_has_what_stock_linux_and_a_reservation_are() -> None:
    assert {"movable", "none"} <= policies()


def test_the_binding_allows_each_policy() -> None:
    name = "devicetree/bindings/reserved-memory/linux,cma-policy.yaml"
    text = (DOCUMENTATION / name).read_text()
    values = re.search(r"enum:\n((?: +- \w+\n)+)", text)
    assert values
    assert set(re.findall(r"- (\w+)", values[1])) == policies()
    described = re.search(r"description: \|\n(.*?)\n    enum:", text, flags=re.S)
    assert described
    assert set(re.findall(r"^ +(\w+) +- ", described[1], flags=re.M)) == policies()


def test_the_selftest_knows_each_policy_on_the_command_line() -> None:
    text = (paths.SELFTESTS / "gcma/gcma_policy.c").read_text()
    table = re.search(r"policies\[\] = \{(.*?)\};", text, flags=re.S)
    assert table
    assert set(re.findall(r'"(\w+)"', table[1])) == policies()


@pytest.mark.parametrize("name", sorted(policies()))
def test_the_administrators_guide_of_its_system_tells_what_each_is(name: str) -> None:
    series = source.read_series(paths.KERNEL)
    mine = [patch for patch in series.patches if patch.system == systems.offering(name).name]
    guide = "Documentation/admin-guide/mm/"
    pages = [page for patch in mine for page in series.claims(patch) if page.startswith(guide)]
    heads = [series.files[page].read_text().split("Which policy when")[0] for page in pages]
    told = rf"^``{name}``$|^Policy ``{name}`` of a CMA area"
    assert any(re.search(told, head, flags=re.M) for head in heads)


def entry(series: source.Series) -> set[str]:
    """The policies that kernel-parameters.txt names at cma_policy= after these patches."""
    names = set()
    for patch in series.patches:
        text = patch.text.partition("+++ b/Documentation/admin-guide/kernel-parameters.txt\n")[2]
        text = text.split("\ndiff --git ")[0]
        names |= set(re.findall(r"^\+\t\t\t([a-z]+): ", text, flags=re.M))
    return names


@pytest.mark.parametrize("name", sorted(policies()))
def test_the_kernel_parameter_names_what_is_there(name: str) -> None:
    series = source.read_series(paths.KERNEL)
    assert entry(series) == policies()
    system = systems.offering(name)
    alone = {policy for each in systems.with_needs([system.name]) for policy in each.policies}
    assert entry(export.selected(series, [system.name])) == alone
