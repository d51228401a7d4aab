# SPDX-License-Identifier: Apache-2.0
"""A program that answers every line it is sent with one of JSON."""
import json
import pathlib
import subprocess


class Program:
    def __init__(self, *command):
        self.name = pathlib.Path(command[0]).name
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, question):
        print(question, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} ended")
        return json.loads(answer)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
