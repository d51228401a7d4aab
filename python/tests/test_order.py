# SPDX-License-Identifier: Apache-2.0
"""The order of samples: a permutation that is computed, the same for every rank and at every resumption."""
import json
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

import suture
from suture.feed.order import Balance, Order, _Network, philox4x32, position, positions, sample, samples, share

LARGE = [2**16, 2**16 + 1, 10**5, 2**31 - 1, 2**32, 2**32 + 1, 10**12, 2**62 + 1, 2**63 - 1, 2**63]


def chi_square(counts, expected=None):
    """How unlikely counts are, as a standard normal value (Wilson and Hilferty, 1931)."""
    counts = np.asarray(counts, float)
    expected = counts.sum() / counts.size if expected is None else expected
    degrees = counts.size - 1
    return ((((counts - expected) ** 2 / expected).sum() / degrees) ** (1 / 3) - 1 + 2 / (9 * degrees)) / np.sqrt(2 / (9 * degrees))


def orders(seeds, epochs, at, size):
    """`samples` for many seeds or epochs at once, a row each."""
    network = _Network(0, 0, size)
    seeds, epochs = (np.asarray(given, np.uint64).reshape(-1, 1) for given in (seeds, epochs))
    network.key, network.epoch = (seeds & np.uint64(2**32 - 1), seeds >> np.uint64(32)), epochs
    out = network.forward(np.broadcast_to(np.asarray(at, np.uint64), (max(len(seeds), len(epochs)), len(at))))
    while (out >= size).any():
        out = np.where(out >= size, network.forward(out), out)
    for row in (0, 1, len(out) - 1):
        seed, epoch = (int(given[row % len(given), 0]) for given in (seeds, epochs))
        assert [sample(seed, epoch, int(place), size) for place in at] == out[row].tolist()
    return out.astype(np.int64)


def test_known_answers(root):
    """Random123's published vectors, and arbitrary counters and keys run through its headers."""
    cases = json.loads((root / "tests/oracles/rng/cases.json").read_text())["cases"]
    known = [record for case in cases if case["name"].endswith("_kat") for record in case["expected"]
             if record["generator"] == "philox4x32" and record["rounds"] == 10]
    assert len(known) > 3
    for record in known:
        counter, key, words = ([int(word, 16) for word in record[name]] for name in ("counter", "key", "expected"))
        assert list(philox4x32(tuple(counter), tuple(key))) == words
        many = philox4x32(tuple(np.full(3, word, np.uint64) for word in counter), tuple(key))
        assert [list(word) for word in many] == [[word] * 3 for word in words]


@pytest.mark.parametrize("sizes", [range(1, 200), pytest.param(range(200, 2001, 7), marks=pytest.mark.thorough),
                                   pytest.param(range(200, 2001), marks=pytest.mark.long)])
def test_every_size_to_2000_is_a_bijection(sizes):
    for size in sizes:
        seed, epoch = size * 0x9E3779B97F4A7C15 % 2**64, size % 7
        order = samples(seed, epoch, np.arange(size), size)
        assert np.array_equal(np.sort(order), np.arange(size)), size
        assert np.array_equal(positions(seed, epoch, order, size), np.arange(size)), size


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1000])
def test_one_is_one_of_many(size):
    order = samples(9, 4, np.arange(size), size)
    assert [sample(9, 4, k, size) for k in range(size)] == order.tolist()
    assert [position(9, 4, k, size) for k in range(size)] == np.argsort(order).tolist()
    assert np.array_equal(samples(9, 4, np.arange(size).reshape(-1, 1), size), order.reshape(-1, 1))
    assert samples(9, 4, [], size).size == 0


@pytest.mark.parametrize("size", LARGE)
def test_large_sizes(size):
    at = np.unique(np.concatenate([np.linspace(0, size - 1, 997).astype(np.uint64) % np.uint64(size), np.arange(500, dtype=np.uint64),
                                   np.uint64(size - 1) - np.arange(500, dtype=np.uint64)])).astype(np.int64)
    out = samples(123, 45, at, size)
    assert out.min() >= 0 and int(out.max()) < size and np.unique(out).size == at.size
    assert np.array_equal(positions(123, 45, out, size), at)
    assert [sample(123, 45, int(k), size) for k in at[::400]] == out[::400].tolist()
    # This counts where they come to lie, in 16 parts, and how far apart neighbors come to lie.
    parts = np.bincount((out.astype(float) / size * 16).astype(int).clip(0, 15), minlength=16)
    near = samples(123, 45, np.arange(20000), size).astype(float) / size
    assert abs(chi_square(parts)) < 4.5
    assert abs(chi_square(np.histogram(np.diff(near) % 1, 32, (0, 1))[0])) < 4.5
    # The neighbor before and the one behind have nothing in common.
    assert abs(np.corrcoef(near[:-1], near[1:])[0, 1]) < 5 / np.sqrt(20000)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_every_order_of_a_few_is_equally_likely(size):
    """Over seeds and over epochs; 100 of each order."""
    number = 100 * len(list(permutations(range(size))))
    for seeds, epochs in ((range(number), [3]), ([17], range(number))):
        seen = Counter(map(tuple, orders(seeds, epochs, np.arange(size), size).tolist()))
        assert abs(chi_square([seen[order] for order in permutations(range(size))])) < 4.5


@pytest.mark.parametrize("size", [6, 16, 17, 100, 128, 257])
def test_pairs_are_equally_likely(size):
    """Where two positions come to lie, over seeds: neighbors, the ends, and those that differ in one bit."""
    seeds = range(3000)
    pairs = [(0, 1), (0, size - 1), (size // 2, size // 2 - 1), (1, 1 ^ (1 << ((size - 1).bit_length() - 2)))]
    at = sorted({k for pair in pairs for k in pair})
    out = orders(seeds, [0], at, size)
    for one in range(len(at)):
        assert abs(chi_square(np.bincount(out[:, one], minlength=size))) < 4.5
    for a, b in pairs:
        first, second = out[:, at.index(a)], out[:, at.index(b)]
        assert (first != second).all()
        assert abs(chi_square(np.bincount((second - first) % size, minlength=size)[1:])) < 4.5
        parity = np.bincount(first % 2 * 2 + second % 2, minlength=4)
        odd, even = size // 2, size - size // 2
        expected = np.array([even * (even - 1), even * odd, even * odd, odd * (odd - 1)]) / (size * (size - 1)) * len(seeds)
        assert abs(chi_square(parity[expected > 0], expected[expected > 0])) < 4.5


def test_no_fixed_structure():
    """Fixed points of a random permutation are Poisson distributed with mean 1, and so are those that two epochs share."""
    size, number = 500, 300
    seeds, epochs = orders(range(number), [0], np.arange(size), size), orders([7], range(number), np.arange(size), size)
    fixed = (seeds == np.arange(size)).sum(1)
    shared = (seeds[1:] == seeds[:-1]).sum(1)
    again = (epochs[1:] == epochs[:-1]).sum(1)
    turned = (seeds == np.arange(size)[::-1]).sum(1)
    for counts in (fixed, shared, again, turned):
        assert abs(counts.mean() - 1) < 5 / np.sqrt(number)
        assert abs(counts.var() - 1) < 5 * np.sqrt(3 / number)  # the fourth central moment of Poisson(1) is 4


def test_seed_and_epoch_use_every_bit():
    seen = {tuple(samples(seed, epoch, np.arange(50), 50).tolist())
            for seed, epoch in [(0, 0), *((1 << k, 0) for k in range(64)), *((0, 1 << k) for k in range(32))]}
    assert len(seen) == 97


# These were computed by hand: floor(batch * rank / world).
@pytest.mark.parametrize("batch, world, sizes", [(16, 1, [16]), (16, 2, [8, 8]), (16, 3, [5, 5, 6]), (16, 5, [3, 3, 3, 3, 4]),
                                                 (16, 8, [2] * 8), (2, 3, [0, 1, 1]), (0, 2, [0, 0])])
def test_shares(batch, world, sizes):
    shares = [share(batch, rank, world) for rank in range(world)]
    assert [len(one) for one in shares] == sizes
    assert [place for one in shares for place in one] == list(range(batch))


def test_shares_differ_by_one_at_most():
    for batch in range(0, 70):
        for world in range(1, 40):
            shares = [share(batch, rank, world) for rank in range(world)]
            assert [place for one in shares for place in one] == list(range(batch))
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("given", [dict(size=103, batch=16), dict(size=103, batch=16, last="drop"), dict(size=103, batch=16, steps_per_epoch=4),
                                   dict(size=5, batch=16, steps_per_epoch=3), dict(size=1, batch=3, steps_per_epoch=2), dict(size=7, batch=20)])
def test_ranks_together_have_the_batch(given):
    order = Order(seed=5, **given)
    for step in range(2 * order.steps):
        whole = order.at(step)
        for world in (1, 3, 8):
            parts = [order.at(step, rank, world) for rank in range(world)]
            assert {part.epoch for part in parts} == {whole.epoch} == {step // order.steps}
            assert np.array_equal(np.concatenate([part.samples for part in parts]), whole.samples)
            assert np.array_equal(np.concatenate([part.draws for part in parts]), whole.draws)


def test_an_epoch_is_one_pass():
    kept, dropped = Order(103, 16, 5), Order(103, 16, 5, last="drop")
    assert (kept.steps, dropped.steps) == (7, 6)
    for epoch in range(3):
        steps = [kept.at(epoch * 7 + k).samples for k in range(7)]
        assert [one.size for one in steps] == [16] * 6 + [7]
        assert sorted(np.concatenate(steps)) == list(range(103))
        assert np.concatenate(steps).tolist() == [sample(5, epoch, k, 103) for k in range(103)]
        again = np.concatenate([dropped.at(epoch * 6 + k).samples for k in range(6)])
        assert np.array_equal(again, np.concatenate(steps)[:96])


@pytest.mark.parametrize("size, batch, steps", [(103, 16, 4), (5, 16, 2), (1, 3, 2), (64, 16, 4), (3, 2, 7)])
def test_a_stream_has_no_gap(size, batch, steps):
    """Any stretch of steps has every sample equally often, but for one; batches are full, and no draw comes twice in an epoch."""
    order = Order(size, batch, 5, steps_per_epoch=steps)
    stream = np.concatenate([order.at(step).samples for step in range(5 * steps)])
    assert stream.tolist() == [sample(5, k // size, k % size, size) for k in range(5 * steps * batch)]
    for step in range(1, 5 * steps):
        assert order.count(step) == batch
        counts = np.bincount(stream[:step * batch], minlength=size)
        assert counts.max() - counts.min() <= 1
    for epoch in range(5):
        places = [order.at(epoch * steps + k) for k in range(steps)]
        uses = [(int(s), int(d)) for one in places for s, d in zip(one.samples, one.draws)]
        assert len(set(uses)) == len(uses) == steps * batch and min(draw for _, draw in uses) == 0


def test_not_shuffled():
    order = Order(10, 4, shuffle=False)
    assert [order.at(step).samples.tolist() for step in range(4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9], [0, 1, 2, 3]]


@pytest.mark.parametrize("call, sentence", [
    (lambda: sample(-1, 0, 0, 5), "suture: order: seed: expected a whole number in 0 .. 2^64 - 1, got -1"),
    (lambda: sample(2**64, 0, 0, 5), "suture: order: seed: expected a whole number in 0 .. 2^64 - 1"),
    (lambda: sample(True, 0, 0, 5), "suture: order: seed: expected a whole number in 0 .. 2^64 - 1, got True"),
    (lambda: sample(0, 2**32, 0, 5), "suture: order: epoch: expected a whole number in 0 .. 2^32 - 1, got 4294967296. Count epochs"),
    (lambda: sample(0, .5, 0, 5), "suture: order: epoch: expected a whole number in 0 .. 2^32 - 1, got 0.5"),
    (lambda: sample(0, 0, 5, 5), "suture: order: position: expected a whole number in 0 .. 4, got 5. There are 5 samples"),
    (lambda: position(0, 0, -1, 5), "suture: order: sample: expected a whole number in 0 .. 4, got -1"),
    (lambda: samples(0, 0, [0, 5], 5), "suture: order: positions: expected 0 .. 4, got 5. There are 5 samples"),
    (lambda: samples(0, 0, [-3], 5), "suture: order: positions: expected 0 .. 4, got -3"),
    (lambda: samples(0, 0, [.5], 5), "suture: order: positions: expected whole numbers, got float64"),
    (lambda: sample(0, 0, 0, 0), "suture: order: size: expected a whole number in 1 .. 2^63, got 0"),
    (lambda: sample(0, 0, 0, 2**63 + 1), "suture: order: size: expected a whole number in 1 .. 2^63, got"),
    (lambda: share(16, 2, 2), "suture: order: rank: expected a whole number in 0 .. 1, got 2"),
    (lambda: share(16, 0, 0), "suture: order: world: expected a whole number in 1 .. 2^31 - 1, got 0"),
    (lambda: Order(5, 0), "suture: order: batch: expected a whole number in 1 .. 2^31 - 1, got 0"),
    (lambda: Order(5, 8, last="drop"), "suture: order: batch: expected at most the 5 samples of the cohort, got 8, and last='drop' leaves no batch"),
    (lambda: Order(5, 2, last="fill"), "suture: order: last: expected 'keep' or 'drop', got 'fill'"),
    (lambda: Balance([np.arange(30), np.arange(30, 40)], [99, 1], 40), "suture: order: ratios: expected a position of a pass for each class, got none of "
     "40 for class 1, whose share is 0.01. Raise its ratio"),
    (lambda: Order(5, 2, steps_per_epoch=0), "suture: order: steps_per_epoch: expected a whole number in 1 .. 2^31 - 1, got 0"),
    (lambda: Order(5, 2).at(-1), "suture: order: step: expected a whole number in 0")])
def test_numbers_that_do_not_fit(call, sentence):
    with pytest.raises(suture.Error) as error:
        call()
    assert str(error.value).startswith(sentence)


@pytest.mark.parametrize("ratios", [[39, 1], [39, 0, 1]])
def test_the_least_share_of_a_class_is_a_position_of_each_pass(ratios):
    members = [np.arange(30), np.arange(0), np.arange(30, 40)]
    balance = Balance([members[0], members[2]] if len(ratios) == 2 else members, ratios, 40)
    order = Order(40, 8, 3, steps_per_epoch=5, balance=balance)
    passes = [np.concatenate([order.at(step).samples for step in range(first, first + 5)]) for first in range(0, 50, 5)]
    assert all(np.isin(one, members[2]).sum() == 1 for one in passes)
    assert sorted(int(one[one >= 30][0]) for one in passes) == list(range(30, 40))  # each of its samples once in ten passes


@pytest.mark.parametrize("ratios, counts", [
    ([1.5, 1, 1.5], [2, 1, 1]), ([.5, 1, 2.5], [1, 1, 2]), ([.15, .1, .15], [2, 1, 1]), ([.05, .1, .25], [1, 1, 2]), ([1, 1, 1, 1], [1] * 4)])
def test_a_share_of_one_position_is_one_wherever_it_begins(ratios, counts):
    balance = Balance([np.array([k]) for k in range(len(ratios))], ratios, 4)
    assert np.diff(balance.ends, prepend=0).tolist() == counts


def test_shares_of_a_whole_number_of_positions_are_that_number():
    """Positions of a class begin at a half, and ratios that floats do not hold are divided."""
    for size in (7, 12, 1000, 100_003):
        for unit in (1, .1, 1 / 3, 1 / size):
            balance = Balance([np.array([k]) for k in range(4)], [1.5 * unit, unit, 3 * unit, (size - 5.5) * unit], size)
            assert np.diff(balance.ends, prepend=0).tolist()[1:3] == [1, 3]


def test_order_is_held():
    """A run is reproduced from its order too, so that it never changes: docs/random.md defines it, and this is its definition
    written a second time."""
    def of_the_page(seed, epoch, place, size):
        bits = max(2, (size - 1).bit_length())
        low_bits = bits // 2
        low_mask, high_mask = 2**low_bits - 1, 2**(bits - low_bits) - 1
        while True:
            high, low = place >> low_bits, place & low_mask
            for k in range(max(8, int(np.ceil(32 / low_bits)))):
                word = philox((high if k % 2 else low, k, epoch, 0xFFFF), (seed % 2**32, seed >> 32))
                if k % 2:
                    low ^= word & low_mask
                else:
                    high ^= word & high_mask
            place = high * 2**low_bits + low
            if place < size:
                return place

    def philox(counter, key):  # the paper's definition, a word at a time
        c, k = list(counter), list(key)
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(p1 // 2**32) ^ c[1] ^ k[0], p1 % 2**32, (p0 // 2**32) ^ c[3] ^ k[1], p0 % 2**32]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        return c[0]

    for size in (2, 3, 10, 1000, 48884, 10**5, 2**40 + 3, 2**63):
        for seed, epoch, place in ((0, 0, 0), (42, 1, 1), (2**64 - 1, 2**32 - 1, size - 1), (123456789012345, 7, size // 2)):
            assert sample(seed, epoch, place, size) == of_the_page(seed, epoch, place, size)
