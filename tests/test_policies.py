# SPDX-License-Identifier: GPL-2.0-or-later
"""The policies of CMA areas have one list, cma_policies[]; what else names them agrees with it."""

import re

import pytest

from lab import paths

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


def test_the_administrators_guide_tells_what_each_is() -> None:
    text = (DOCUMENTATION / "admin-guide/mm/gcma.rst").read_text()
    head = text.split("Which policy when")[0]
    assert set(re.findall(r"^``(\w+)``$", head, flags=re.M)) == policies()


@pytest.mark.parametrize("name", sorted(policies()))
def test_the_kernel_parameter_tells_what_each_is(name: str) -> None:
    patches = (paths.KERNEL / "patches-6.12").glob("*/*.patch")
    text = "".join(path.read_text() for path in sorted(patches))
    parameter = re.search(r"^\+\tcma_policy=.*?^ \tcma_pernuma", text, flags=re.S | re.M)
    assert parameter
    assert re.search(rf"^\+\t\t\t{name}: ", parameter[0], flags=re.M)
