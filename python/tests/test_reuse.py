# SPDX-License-Identifier: Apache-2.0
"""Outputs lie in memory that earlier outputs left, and never in memory that somebody still holds."""
import gc
import os
import threading

import numpy as np
import pytest
import suture as st
from suture.arrays.reuse import LEAST, Pool

CHAIN = st.Pipeline(image=[st.rescale(slope=2), st.center_crop(size=(64, 48, 40)), st.gaussian_noise(sigma=1)])
IMAGES = np.arange(2 * 64 * 48 * 40, dtype=np.float32).reshape(2, 1, 64, 48, 40)  # 1 MB


def made(seed):
    return CHAIN({"image": IMAGES, "id": ["a", "b"]}, seed=seed, epoch=0)["image"]


def test_memory_of_a_dropped_batch_serves_the_next():
    first = made(1)
    where, expected = first.ctypes.data, first.copy()
    del first
    again = made(1)
    assert again.ctypes.data == where and np.array_equal(again, expected)


def test_a_batch_that_is_held_stays_as_it_is():
    held = [made(seed) for seed in range(4)]
    copies = [batch.copy() for batch in held]
    assert len({batch.ctypes.data for batch in held}) == 4
    for seed in range(4, 8):
        made(seed)
    assert all(np.array_equal(a, b) for a, b in zip(held, copies))


@pytest.mark.parametrize("view_of", [lambda a: a[1, 0, 3:5], lambda a: a.reshape(-1)[::7], lambda a: memoryview(a.reshape(-1)),
                                     lambda a: np.from_dlpack(a)])
def test_a_view_holds_the_memory(view_of):
    batch = made(1)
    view = view_of(batch)
    expected = np.array(view)
    del batch
    gc.collect()
    others = [made(seed) for seed in (2, 3)]
    assert np.array_equal(np.asarray(view), expected) and not any(np.shares_memory(other, np.asarray(view)) for other in others)


def test_tensors_too():
    torch = pytest.importorskip("torch")
    images = torch.from_numpy(IMAGES)

    def tensor(seed):
        return CHAIN({"image": images, "id": ["a", "b"]}, seed=seed, epoch=0)["image"]

    first, other = tensor(1), tensor(2)
    assert first.data_ptr() != other.data_ptr() and np.array_equal(first.numpy(), made(1))
    row, where = other[1, 0, 3], first.data_ptr()
    expected = row.clone()
    del first, other
    assert tensor(3).data_ptr() == where and torch.equal(row, expected)


def test_small_outputs_come_from_the_allocator():
    crop = st.Pipeline(image=[st.center_crop(size=4)])
    small = crop({"image": IMAGES})["image"]
    assert small.nbytes < LEAST and small.flags.owndata


def test_what_is_kept_is_bounded():
    pool = Pool(most=3 << 20)
    held = [pool.empty(1 << 20) for _ in range(5)]
    assert pool.unused == 0
    del held
    assert pool.unused == 3 << 20
    large = pool.empty(4 << 20)
    del large
    assert pool.unused == 3 << 20
    sizes = [pool.empty(n << 19) for n in (3, 2, 1)]
    del sizes
    assert 0 < pool.unused <= 3 << 20


def test_blocks_begin_at_a_cache_line_and_hold_what_was_asked_for():
    pool = Pool()
    for n in (LEAST, LEAST + 1, 3_000_001, 1 << 22):
        block = pool.empty(n)
        assert block.nbytes == n and block.ctypes.data % 64 == 0
        block[:] = 7


def test_threads():
    """Each thread writes its own number into what it is lent, and finds it there."""
    pool, wrong = Pool(most=1 << 22), []

    def work(number):
        for _ in range(200):
            block = pool.empty(LEAST)
            block[:] = number
            if not (block == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and pool.unused <= 1 << 22


def test_a_forked_process_has_a_lock_of_its_own():
    from suture.arrays import reuse

    with reuse._pool._lock:  # as another thread may hold it
        child = os.fork()
        if child == 0:
            reuse.empty((LEAST,), np.uint8)[:] = 1
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
