# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m lab`, which the launcher calls."""

import sys

from lab.cli import main

sys.exit(main(sys.argv[1:]))
