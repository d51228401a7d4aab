# SPDX-License-Identifier: Apache-2.0
"""This module chooses the number of threads of a call."""
from __future__ import annotations

import multiprocessing
import os

from ..arguments import index_of
from ..errors import Error

MOST_THREADS = 1024  # abi::most_threads; OpenMP ends the process if it cannot start all threads
_MAIN = os.getpid()


def default_threads() -> int:
    """Returns 1 in worker processes, which share the processor, and 0, for all threads of OpenMP, in other processes."""
    if os.getpid() != _MAIN or multiprocessing.parent_process() is not None:
        return 1
    return 0


def threads_of(asked: int | None) -> int:
    """Checks a number of threads and returns it; 0 means all of OpenMP, and None gives default_threads().

    Raises
    ------
    suture.Error
        If it is no whole number from 0 to 1024.
    """
    if asked is None:
        return default_threads()
    count = None if isinstance(asked, bool) else index_of(asked)
    if count is None or not 0 <= count <= MOST_THREADS:
        raise Error(f"suture: threads: expected a whole number from 0, for all, to {MOST_THREADS}, got {str(asked)[:40]}")
    return count
