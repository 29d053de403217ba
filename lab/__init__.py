# SPDX-License-Identifier: GPL-2.0-or-later
"""The lab: builds, boots, tests and measures GCMA on Linux 6.12.

Data flows one way and no module knows a later one:
errors, paths, console, lock, process -> setup -> source -> build -> machine -> cpio, boot
-> ktap -> tests -> export, areas -> cli.
"""
