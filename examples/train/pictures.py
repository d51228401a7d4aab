# SPDX-License-Identifier: Apache-2.0
"""The pictures of a training: the loss of each run, and three planes of each predicted scan beside its labels."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import suture as st

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

COLORS = ["#000000", "#35c3ff", "#ff4b3a", "#ffd23a", "#6bdc6b"]


def losses(results: Sequence[dict[str, Any]], steps: int, path: Path) -> None:
    """Loss by step, one line a run. Runs that agree lie on each other, so the second is dashed."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for number, (one, style) in enumerate(zip(results, ["-", "--"])):
        axes.plot(one["losses"], style, linewidth=2 - number, label=f"run {number + 1}")
    for epoch in range(steps, len(results[0]["losses"]), steps):
        axes.axvline(epoch, color="0.85", zorder=0)
    axes.set(xlabel="step (lines: epochs)", ylabel="Dice + cross-entropy loss", title="Loss of patches, by step")
    axes.legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _axial(volume: Any) -> np.ndarray:
    """Voxels as (z, y, x) with z towards the head, y towards the back, x towards the left of the patient."""
    oriented = st.Pipeline(image=[st.orient(), st.cast("int16")])({"image": [volume], "id": ["picture"]}, training=False)
    return np.asarray(oriented["image"][0])


def sheet(cases: Sequence[tuple[str, Any, Any, Any]], window: dict[str, float], classes: Sequence[str], path: Path) -> None:
    """One row a case, radiological orientation: the axial slices with most lesion, truth at the left and prediction at the right."""
    figure, all_axes = plt.subplots(len(cases), 4, figsize=(11, 3.1 * len(cases)), layout="constrained", squeeze=False)
    low = window["center"] - window["width"] / 2
    for row, (name, scan, truth, predicted) in zip(all_axes, cases):
        image, t, p = _axial(scan), _axial(truth), _axial(predicted)
        most = np.argsort((t == len(classes) - 1).sum((1, 2)))[::-1]
        slices = [int(most[0]), next((int(k) for k in most if abs(int(k) - int(most[0])) > 5), int(most[0]))]
        for pair, k in enumerate(slices):
            for column, (labels, what) in enumerate(((t, "labels"), (p, "predicted"))):
                axes = row[2 * pair + column]
                axes.imshow(image[k], cmap="gray", vmin=low, vmax=low + window["width"], aspect=scan.spacing["y"] / scan.spacing["x"])
                for label in range(1, len(classes)):
                    if (labels[k] == label).any():
                        axes.contour(labels[k] == label, [.5], colors=COLORS[label], linewidths=1.1)
                axes.set_title(f"{name}, slice {k}: {what}", fontsize=9)
                axes.axis("off")
    handles = [plt.Line2D([], [], color=COLORS[k], label=classes[k]) for k in range(1, len(classes))]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    figure.suptitle(f"CT, window {low:g} to {low + window['width']:g} HU, axial, the patient's right at the left; lesions are simulated",
                    fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)
