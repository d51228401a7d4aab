# SPDX-License-Identifier: Apache-2.0
"""Faults that tests/style/language must see."""


def set_epoch(epoch: int) -> None:
    """What draws rest on, from the so-manieth step on."""
