# SPDX-License-Identifier: Apache-2.0
"""This module logs warnings once, and lines about long waits."""
from __future__ import annotations

import logging
import time

log = logging.getLogger("suture")
FIRST, EVERY = 1.0, 60.0  # seconds until the first line about a wait, and between further lines
_said: set[str] = set()


def once(message: str) -> None:
    """Logs a warning that this process has not logged before."""
    if message not in _said:
        _said.add(message)
        log.warning("%s", message)


class Wait:
    """Logs lines about a wait, after a second and then every minute.

    The lines are warnings of the logger "suture", which Python writes to stderr if logging is not configured.
    """

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._told = 0
        self._next = FIRST

    def left(self) -> float:
        """Returns the seconds until the next line."""
        return max(0.0, self._begin + self._next - time.monotonic())

    def tell(self, first: str, later: str) -> None:
        """Logs a line if one is due: `first` once, then `later` with the seconds that have passed."""
        if self.left() > 0:
            return
        passed = time.monotonic() - self._begin
        log.warning("%s", first if self._told == 0 else f"{later} ({passed:.0f} s)")
        self._told += 1
        self._next = passed + EVERY
