# SPDX-License-Identifier: Apache-2.0
"""suture raises these exceptions. Every message is one sentence that says what to do, or which operation, sample and value it
is about."""
from __future__ import annotations


class Error(ValueError):
    """Raised if something that was asked for cannot be done. The sentence is the library's own."""


class CompileError(RuntimeError):
    """Raised if a chain could not be compiled: there is no compiler, it failed, or the cache cannot be written."""
