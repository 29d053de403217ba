# SPDX-License-Identifier: GPL-2.0-or-later
"""The compact-fit library: built in the cache, tested, and run on the traces of real programs.

Tests: build -> traces -> judge -> steps. Traces: build -> traces -> recording -> tuning, and
recording -> programs -> replays. The paper's experiments: build -> experiments.
"""
