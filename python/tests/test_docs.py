# SPDX-License-Identifier: Apache-2.0
"""Every Python line of ours in docs/from-*.md runs, and so does docs/python.md."""
import re

import numpy as np
import pytest

import suture as st
from suture.operations.operation import Operation

RNG = np.random.default_rng(2)
PAGES = {"from-monai": "xyz", "from-torchio": "xyz", "from-kornia": "yx", "from-nnunet": "zyx"}  # and the axes of their arrays


class Header:
    def get_slope_inter(self):
        return None, None


class Image:
    """What Volume.from_nibabel looks at."""

    affine, header = np.diag([-.8, -.8, 2.5, 1]), Header()
    dataobj = RNG.integers(-200, 300, (40, 36, 24), dtype=np.int16)


def names():
    """What the lines of the pages refer to."""
    scan = st.Volume.from_nibabel(Image)
    seg = st.Volume((scan.array > 0).astype(np.uint8), axes="xyz", grid=scan.grid)
    volume = RNG.normal(size=(1, 12, 16, 16)).astype(np.float32)
    plan = st.Pipeline(image=[st.orient(x="R", y="A", z="S")]).plan({"image": [scan]})
    return dict(st=st, np=np, train=st.Pipeline(image=[]), scan=scan, seg=seg, image=Image, mask=(volume > 0).astype(np.uint8), net=lambda x: x, volume=volume,
                label_map=np.zeros((1, 12, 16, 16), np.int16) + (volume > 1), plan=plan,
                tiles=RNG.integers(0, 256, (2, 32, 40, 3), dtype=np.uint8), masks=RNG.integers(0, 3, (2, 32, 40, 1), dtype=np.uint8),
                volumes=[RNG.normal(size=(1, 40, 300, 280)).astype(np.float32) for _ in range(2)],
                segmentations=[RNG.integers(-1, 3, (1, 40, 300, 280), dtype=np.int8).astype(np.int16) for _ in range(2)])


def lines(root, page):
    """The code of the second column of a page's last table."""
    text = (root / f"docs/{page}.md").read_text(encoding="utf-8").split("## Line by line")[1]
    for row in text.split("\n"):
        cells = [cell.strip() for cell in re.split(r"(?<!\\) \| |^\| | \|$", row)[1:]]
        if len(cells) >= 2 and cells[1].startswith("`"):
            yield cells[1].strip("`")


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_lines_of_ours_run(page, root):
    found = list(lines(root, page))
    assert len(found) > 15
    known = names()
    known["volume"] = known["volume"] if page == "from-nnunet" else known["scan"]
    for line in found:
        made = eval(line, dict(known))
        assert made is not None, line
        operations = [op for op in (made if isinstance(made, list) else [made]) if isinstance(op, Operation)]
        if operations:  # and can be written as C++
            st.Pipeline(image=operations, seg=st.labels()).sources(order=PAGES[page])


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_programs_of_ours_run(page, root):
    text = (root / f"docs/{page}.md").read_text(encoding="utf-8")
    programs = re.findall(r"```python\n# suture\n(.*?)```", text, re.S)
    assert len(programs) == 1
    known = names()
    exec(programs[0], known)
    if page == "from-nnunet":
        assert known["plan"].grids[0].extents == (28, 256, 256)
    else:
        made = next(iter(known["out"].values()))
        assert np.asarray(made).size > 0


@pytest.mark.long
@pytest.mark.parametrize("page", ["docs/python.md", "README.md"])
def test_the_page_of_python_runs(page, root):
    text = (root / page).read_text(encoding="utf-8")
    program, = (p for p in re.findall(r"```python\n(.*?)```", text, re.S) if "import suture as st" in p)
    known = dict(ct=RNG.integers(-200, 300, (60, 150, 150), dtype=np.int16), organs=RNG.integers(0, 3, (60, 150, 150), dtype=np.uint8))
    exec(program, known)
    assert known["out"]["image"].shape == (1, 1, 96, 96, 96) and known["out"]["seg"].dtype == np.int64


@pytest.mark.torch
def test_the_first_steps_run(root, tmp_path, monkeypatch):
    """The program of docs/first-steps.md, on scans of which the foreground is brighter than the rest."""
    torch, nibabel = pytest.importorskip("torch"), pytest.importorskip("nibabel")
    affine = np.diag([-1.5, -1.5, 3, 1])  # to the right and the back, as many scanners store
    (tmp_path / "data").mkdir()
    for k in range(3):
        seg = np.zeros((40, 44, 12), np.uint8)
        seg[8 + k:28, 10:30, 3:9] = 1
        image = np.where(seg > 0, 150, -100).astype(np.int16)
        nibabel.save(nibabel.Nifti1Image(image, affine), tmp_path / f"data/case_{k}.nii.gz")
        nibabel.save(nibabel.Nifti1Image(seg, affine), tmp_path / f"data/case_{k}_seg.nii.gz")
    monkeypatch.chdir(tmp_path)
    program = "".join(re.findall(r"```python\n(.*?)```", (root / "docs/first-steps.md").read_text(encoding="utf-8"), re.S))
    script = tmp_path / "first_steps.py"
    script.write_text(program, encoding="utf-8")
    known = {"__name__": "first_steps"}
    exec(compile(script.read_text(encoding="utf-8"), str(script), "exec"), known)
    assert known["batch"]["image"].shape == (2, 1, 64, 64, 16) and known["batch"]["seg"].max() == 1
    assert known["batch"].grids["image"][0].spacing == (3.0, 1.5, 1.5)
    assert (tmp_path / "batch.png").read_bytes().startswith(b"\x89PNG") and (tmp_path / "checkpoint.pt").exists()
    written = nibabel.load(tmp_path / "prediction.nii.gz")
    assert written.shape == (40, 44, 12) and np.allclose(written.affine, affine, atol=1e-5)
    assert torch.isfinite(known["loss"])


def test_the_pages_are_linked(root):
    index = (root / "README.md").read_text(encoding="utf-8") + (root / "docs/python.md").read_text(encoding="utf-8")
    for page in (*PAGES, "first-steps"):
        assert f"{page}.md" in index
