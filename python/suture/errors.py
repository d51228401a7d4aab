# SPDX-License-Identifier: Apache-2.0
"""suture raises these exceptions. A message names the operation, the sample and the value, or says what to do."""
from __future__ import annotations


class Error(ValueError):
    """Raised if arguments, data or files do not allow what was asked for."""


class CompileError(RuntimeError):
    """Raised if a module cannot be compiled or loaded: there is no compiler, it failed, or the cache cannot be used."""
