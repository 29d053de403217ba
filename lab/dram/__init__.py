# SPDX-License-Identifier: GPL-2.0-or-later
"""A small model of DRAM, fed with the pages that guests were given: docs/dram.md."""
