# SPDX-License-Identifier: Apache-2.0
"""The pictures of a training: the loss of each run, predicted scans beside their labels, and slides with nuclei and grades."""
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


def losses(results: Sequence[dict[str, Any]], steps: int, path: Path, title: str) -> None:
    """Loss by step, one line a run. Runs that agree lie on each other, so the second is dashed."""
    figure, axes = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for number, (one, style) in enumerate(zip(results, ["-", "--"])):
        axes.plot(one["losses"], style, linewidth=2 - number, label=f"run {number + 1}")
    for epoch in range(steps, len(results[0]["losses"]), steps):
        axes.axvline(epoch, color="0.85", zorder=0)
    axes.set(xlabel="step (lines: epochs)", ylabel="Dice + cross-entropy loss", title=title)
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


def sheet_of_slides(slides: Sequence[tuple[str, Any, np.ndarray, list[dict[str, Any]]]], size: int, grades: Sequence[str], path: Path) -> None:
    """One row a slide: its colors with a scale bar, a part of it with the outlines of nuclei, and the grades of its tiles, by labels
    and predicted."""
    figure, all_axes = plt.subplots(len(slides), 4, figsize=(15, 3.5 * len(slides)), layout="constrained", squeeze=False)
    colors = ["#fde725", "#21a585", "#440154"]
    for row, (name, case, predicted, tiles) in zip(all_axes, slides):
        rgb, truth = np.moveaxis(case.image[...], 0, -1), case.labels[...]
        middle = max(tiles, key=lambda t: (t["true"], -abs(t["y"] - rgb.shape[0] // 2) - abs(t["x"] - rgb.shape[1] // 2)))
        top, left = (min(max(middle[k] - size // 2, 0), rgb.shape[i] - 2 * size) for i, k in enumerate("yx"))
        shown = [(None, f"{name}, H&E"), (None, f"nuclei, {2 * size} um"), ("true", "grade by labels"), ("predicted", "grade predicted")]
        for axes, (grade, title) in zip(row, shown):
            axes.imshow(rgb)
            axes.set_title(title, fontsize=9)
            axes.axis("off")
            for tile in tiles if grade else ():
                axes.add_patch(plt.Rectangle((tile["x"] - .5, tile["y"] - .5), size, size, facecolor=colors[tile[grade]], alpha=.55,
                                             edgecolor="white", linewidth=.6))
        length = 100 / case.mpp[0]  # pixels of 100 micrometers
        for axes, bar, at in ((row[0], length, (15, rgb.shape[0] - 15)), (row[1], length / 5, (left + 4, top + 2 * size - 5))):
            axes.plot([at[0], at[0] + bar], [at[1]] * 2, color="black", linewidth=3, solid_capstyle="butt")
            axes.text(at[0], at[1] - (12 if axes is row[0] else 3), f"{bar * case.mpp[0]:.0f} um", fontsize=8,
                      bbox={"facecolor": "white", "alpha": .7, "edgecolor": "none", "pad": 1})
        row[0].add_patch(plt.Rectangle((left, top), 2 * size, 2 * size, fill=False, edgecolor="black", linewidth=1))
        row[1].contour(truth, [.5], colors="#00e5ff", linewidths=1.4)
        row[1].contour(predicted, [.5], colors="#ffe600", linewidths=.9)
        row[1].set(xlim=(left - .5, left + 2 * size - .5), ylim=(top + 2 * size - .5, top - .5))
    handles = [plt.Line2D([], [], color="#00e5ff", label="nuclei by threshold (the labels)"), plt.Line2D([], [], color="#ffe600", label="nuclei predicted"),
               *(plt.Rectangle((0, 0), 1, 1, facecolor=c, alpha=.55, label=g) for c, g in zip(colors, grades))]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=9)
    figure.suptitle("Slides that training did not see, 1 micrometer a pixel; labels are computed, no pathologist drew them", fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)
