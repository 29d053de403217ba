# SPDX-License-Identifier: GPL-2.0-or-later
"""The one exception that a user sees."""


class LabError(Exception):
    """Something the user can understand and mend, told in one line.

    `detail` is shown below that line: a guest's last words, a compiler's message.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
