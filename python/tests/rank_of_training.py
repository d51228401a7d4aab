# SPDX-License-Identifier: Apache-2.0
"""One rank of a stand-in for training, started by torchrun. Not a test: test_ranks.py runs it.

    torchrun ... rank_of_training.py FOLDER STEPS

All ranks give the digests of what they got to rank 0, over gloo. It adds the step to FOLDER/steps.jsonl, and then puts the state
of the feed into FOLDER/state.json: a run that is killed in between makes that step again. FOLDER/state.json, if it is there, is
where the run goes on, whatever its number of ranks was."""
import json
import os
import pathlib
import sys

import numpy as np

import suture as st
from suture.feed.feed import Feed

CASES, BATCH, SEED, STEPS_PER_EPOCH = 11, 7, 42, 5
PIPELINE = st.Pipeline(image=[st.window(center=40, width=400), st.random_affine(rotate_deg=dict(z=20), scale=(.9, 1.1)), st.random_crop(size=8),
                              st.gaussian_noise(sigma=(0, .1), probability=.5)], seg=st.labels())


def cohort():
    """Scans and label maps in memory, the same ones in every process."""
    random, made = np.random.default_rng(23), {}
    for k in range(CASES):
        scan = random.integers(-200, 300, (12 + k % 3, 14 + k % 5, 13), dtype=np.int16)
        made[f"case_{k:02}"] = {name: st.Volume(array, axes="zyx", spacing=dict(z=2, y=1, x=1))
                                for name, array in (("image", scan), ("seg", (scan > 100).astype(np.uint8)))}
    return made


def digests(batch):
    """Of each sample its case, and the digests of its patch and of its labels."""
    return [[str(name), st.digest(image), st.digest(seg)] for name, image, seg in zip(batch["id"], batch["image"], batch["seg"])]


def main(folder, steps):
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    (folder / f"pid-{rank}").write_text(str(os.getpid()))
    state = folder / "state.json"
    with Feed(cohort(), PIPELINE, batch=BATCH, seed=SEED, steps_per_epoch=STEPS_PER_EPOCH, threads=2, bar=False) as feed:
        if state.is_file():
            feed.load_state_dict(json.loads(state.read_text()))
        torch.distributed.barrier()  # nobody writes the next state before all have read this one
        step = feed.state_dict()["step"]
        for epoch in feed.epochs(-(-steps // STEPS_PER_EPOCH)):
            for batch in epoch:
                every = [None] * world
                torch.distributed.all_gather_object(every, digests(batch))
                after = feed.state_dict()
                assert after["step"] == step + 1
                if rank == 0:
                    with open(folder / "steps.jsonl", "a") as file:
                        file.write(json.dumps({"step": step, "world": world, "shares": [len(one) for one in every],
                                               "samples": [sample for one in every for sample in one]}) + "\n")
                        file.flush()
                    (folder / "state.part").write_text(json.dumps(after))
                    os.replace(folder / "state.part", state)
                torch.distributed.barrier()
                step += 1
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
