# SPDX-License-Identifier: Apache-2.0
"""Prints the folder of the trainers; `train` and `predict` run nnU-Net's own commands with them."""
from __future__ import annotations

import importlib
import sys

from suture.nnunet import TRAINERS, trainer_folder

_COMMANDS = {"train": ("nnunetv2.run.run_training", "run_training_entry"),
             "predict": ("nnunetv2.inference.predict_from_raw_data", "predict_entry_point")}


def make_known() -> None:
    """Adds the trainers to nnU-Net's module of its own trainers, the only place where it looks before 2.8."""
    from suture.nnunet import efficient

    own = importlib.import_module("nnunetv2.training.nnUNetTrainer.nnUNetTrainer")
    for name in TRAINERS:
        setattr(own, name, getattr(efficient, name))


def main(arguments: list[str]) -> int:
    if not arguments:
        print(trainer_folder())
        return 0
    if arguments[0] not in _COMMANDS:
        print("usage: python -m suture.nnunet               the folder for nnUNet_extTrainer\n"
              "       python -m suture.nnunet train ...     nnUNetv2_train with suture's trainers\n"
              "       python -m suture.nnunet predict ...   nnUNetv2_predict with them", file=sys.stderr)
        return 0 if arguments[0] in ("-h", "--help") else 2
    make_known()
    module, function = _COMMANDS[arguments[0]]
    sys.argv = [f"suture.nnunet {arguments[0]}", *arguments[1:]]
    getattr(importlib.import_module(module), function)()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
elif __name__ == "__mp_main__" and sys.argv[1:]:
    make_known()  # in the processes that nnU-Net makes, one for each GPU
