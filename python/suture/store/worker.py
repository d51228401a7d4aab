# SPDX-License-Identifier: Apache-2.0
"""A worker process makes cases: it reads a line of JSON with a task and writes a line with the result, until its input ends."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import Error


def run(record: Mapping[str, Any]) -> dict[str, str]:
    """Makes the case that a record names.

    Parameters
    ----------
    record : mapping
        "store", "task", "settings" and "threads" as JSON has them.

    Returns
    -------
    dict
        "state" is "built", "reused" or "failed"; then "sentence" says why. "doubt" says what may be wrong with a case that was made.
    """
    from .make import doubt, make_case
    from .settings import Settings
    from .task import Task

    task = Task.from_json(record["task"])
    try:
        state = make_case(Path(record["store"]), task, Settings.from_json(record["settings"]), record.get("threads"))
        found = doubt(Path(record["store"]), task)
        return {"state": state, **({} if found is None else {"doubt": found})}
    except Error as problem:
        return {"state": "failed", "sentence": str(problem)}
    except Exception as problem:  # one case must not end the others
        return {"state": "failed", "sentence": f"{task.what}: expected to make it, got {type(problem).__name__}: "
                                               f"{' '.join(str(problem).split())[:300]}"}


class Process:
    """A worker process, which the first call starts. It does not import the modules of the caller."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def __call__(self, record: Mapping[str, Any]) -> dict[str, str] | None:
        """Returns the result of `run`; None if the process died."""
        if self._child is None:
            package = str(Path(__file__).resolve().parents[2])
            path = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
            self._child = subprocess.Popen([sys.executable, "-c", "from suture.store.worker import serve; serve()"],
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path})
        assert self._child.stdin is not None and self._child.stdout is not None
        try:
            self._child.stdin.write(json.dumps(record) + "\n")
            self._child.stdin.flush()
            answer = self._child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer.endswith("\n"):
            result: dict[str, str] = json.loads(answer)
            return result
        self.close()
        return None

    def close(self) -> None:
        """Ends the process after its present case."""
        if self._child is not None:
            assert self._child.stdin is not None and self._child.stdout is not None
            try:
                self._child.stdin.close()
            except BrokenPipeError:
                pass
            self._child.wait()
            self._child.stdout.close()
            self._child = None


def serve() -> None:
    """Makes the cases that stdin names, until it ends. -c calls this, since -m warns of a module that its package has imported."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries print to stderr, so that stdout has only the answers
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), file=answers, flush=True)
