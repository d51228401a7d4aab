# SPDX-License-Identifier: Apache-2.0
"""The order of samples is a permutation that is computed, not stored: a function of (seed, epoch, position) alone.

The permutation of 0 .. size - 1 is a Feistel network whose round function is Philox4x32-10. The network permutes the numbers
of the fewest bits that hold size - 1. A value at or above size is permuted again until it is below (cycle walking); on average
a position takes at most two permutations in all. Any rank computes the sample at any position directly, so ranks agree without communication.

References: J. Salmon, M. Moraes, R. Dror and D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011 (Philox);
J. Black and P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002 (cycle walking); M. Luby and C. Rackoff, "How to
construct pseudorandom permutations from pseudorandom functions", SIAM J. Comput. 17(2), 1988 (Feistel)."""
from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import Error

_WORD = 0xFFFFFFFF
_PURPOSE = 0xFFFF  # last word of the counter; no draw of an operation has it, so that none shares a counter with the order
_LARGEST = 1 << 63
_APART = 0x9E3779B97F4A7C15  # difference of the seeds of successive classes in Balance


def philox4x32(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """Evaluates Philox4x32-10, the random function of the library.

    Parameters
    ----------
    counter : tuple of int or arrays of uint64
        Four words of 32 bits. Arrays have one dimension or more and evaluate many counters at once.
    key : tuple of int
        Two words of 32 bits.

    Returns
    -------
    tuple of int or arrays of uint64
        Four words of 32 bits.

    Examples
    --------
    >>> [hex(word) for word in philox4x32((0, 0, 0, 0), (0, 0))]
    ['0x6627e8d5', '0xe169c58d', '0xbc57ac4c', '0x9b00dbd8']
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        a, b = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (b >> 32) ^ c1 ^ k0, b & _WORD, (a >> 32) ^ c3 ^ k1, a & _WORD
        k0, k1 = (k0 + 0x9E3779B9) & _WORD, (k1 + 0xBB67AE85) & _WORD
    return c0, c1, c2, c3


class _Network:
    """The Feistel network of one (seed, epoch) on the fewest bits, two at least, that hold size - 1."""

    def __init__(self, seed: int, epoch: int, size: int) -> None:
        self.size, self.epoch = size, epoch
        self.key = seed & _WORD, seed >> 32
        bits = max(2, (size - 1).bit_length())
        self.low_bits = bits // 2
        self.low, self.high = (1 << self.low_bits) - 1, (1 << (bits - self.low_bits)) - 1
        # Each round divides the dependence between two positions by about 2^low_bits, all of them by 2^32 at least.
        self.rounds = max(8, -(-32 // self.low_bits))

    def _mix(self, x: Any, rounds: range) -> Any:
        high, low = x >> self.low_bits, x & self.low
        for k in rounds:
            if k % 2:
                low = low ^ (philox4x32((high, k, self.epoch, _PURPOSE), self.key)[0] & self.low)
            else:
                high = high ^ (philox4x32((low, k, self.epoch, _PURPOSE), self.key)[0] & self.high)
        return high << self.low_bits | low

    def forward(self, x: Any) -> Any:
        return self._mix(x, range(self.rounds))

    def backward(self, x: Any) -> Any:
        return self._mix(x, range(self.rounds)[::-1])

    def walk(self, mix: Callable[[Any], Any], x: int) -> int:
        x = mix(x)
        while x >= self.size:
            x = mix(x)
        return x

    def walk_all(self, mix: Callable[[Any], Any], values: NDArray[np.uint64]) -> NDArray[np.int64]:
        if not values.size:
            return values.astype(np.int64)
        out = mix(values)
        while (outside := np.flatnonzero(out >= self.size)).size:
            out[outside] = mix(out[outside])
        made: NDArray[np.int64] = out.astype(np.int64)
        return made


def _whole(value: Any, name: str, low: int, high: int, way: str) -> int:
    """Returns a whole number in low .. high - 1, and refuses anything else."""
    try:
        number = operator.index(value)
    except TypeError:
        number = low - 1
    if isinstance(value, (bool, np.bool_)) or not low <= number < high:
        bits = (high - 1).bit_length()
        end = {1 << bits: f"2^{bits} - 1", (1 << (bits - 1)) + 1: f"2^{bits - 1}"}.get(high, str(high - 1)) if bits > 30 else str(high - 1)
        raise Error(f"suture: order: {name}: expected a whole number in {low} .. {end}, got {value!r}. {way}")
    return number


def _network(seed: int, epoch: int, size: int) -> _Network:
    return _Network(_whole(seed, "seed", 0, 1 << 64, "Take the remainder, seed % 2**64"),
                    _whole(epoch, "epoch", 0, 1 << 32, "Count epochs from 0 on"),
                    _whole(size, "size", 1, _LARGEST + 1, "Give the number of samples, one at least"))


def _all_below(values: ArrayLike, name: str, size: int) -> NDArray[np.uint64]:
    given = np.asarray(values)
    if given.size == 0:
        return np.zeros(given.shape, np.uint64)
    if given.dtype.kind not in "iu":
        raise Error(f"suture: order: {name}: expected whole numbers, got {given.dtype}. Give an array of int64")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= size:
        raise Error(f"suture: order: {name}: expected 0 .. {size - 1}, got {low if low < 0 else high}. There are {size} samples")
    return given.astype(np.uint64)


def _many(seed: int, epoch: int, values: ArrayLike, size: int, name: str, backward: bool) -> NDArray[np.int64]:
    network = _network(seed, epoch, size)
    given = _all_below(values, name, network.size)
    if network.size == 1:
        return np.zeros(given.shape, np.int64)
    return network.walk_all(network.backward if backward else network.forward, given.reshape(-1)).reshape(given.shape)


def sample(seed: int, epoch: int, position: int, size: int) -> int:
    """Returns the sample at a position of a shuffled pass through the cohort.

    Parameters
    ----------
    seed : int
        The seed, 0 .. 2^64 - 1.
    epoch : int
        The number of the pass, 0 .. 2^32 - 1. Every pass has a permutation of its own.
    position : int
        The position in the pass, 0 .. size - 1.
    size : int
        The number of samples, 1 .. 2^63.

    Returns
    -------
    int
        The sample, 0 .. size - 1. Each sample is at one position.

    Raises
    ------
    Error
        If a number is outside its range.

    Examples
    --------
    >>> sorted(sample(42, 0, position, 5) for position in range(5))
    [0, 1, 2, 3, 4]
    """
    network = _network(seed, epoch, size)
    place = _whole(position, "position", 0, network.size, f"There are {network.size} samples")
    return network.walk(network.forward, place) if network.size > 1 else 0


def samples(seed: int, epoch: int, positions: ArrayLike, size: int) -> NDArray[np.int64]:
    """Returns the samples at many positions: `sample` for an array.

    Parameters
    ----------
    seed, epoch, size : int
        As `sample` has them.
    positions : array of int
        Positions in the pass, in any shape.

    Returns
    -------
    numpy.ndarray of int64
        The samples, in the shape of positions.

    Raises
    ------
    Error
        If a number is outside its range.
    """
    return _many(seed, epoch, positions, size, "positions", False)


def position(seed: int, epoch: int, sample: int, size: int) -> int:
    """Returns the position of a sample in a shuffled pass: the inverse of `sample`.

    Parameters
    ----------
    seed, epoch, size : int
        As `sample` has them.
    sample : int
        The sample, 0 .. size - 1.

    Returns
    -------
    int
        The position, 0 .. size - 1.

    Raises
    ------
    Error
        If a number is outside its range.
    """
    network = _network(seed, epoch, size)
    known = _whole(sample, "sample", 0, network.size, f"There are {network.size} samples")
    return network.walk(network.backward, known) if network.size > 1 else 0


def positions(seed: int, epoch: int, samples: ArrayLike, size: int) -> NDArray[np.int64]:
    """Returns the positions of many samples: `position` for an array.

    Parameters
    ----------
    seed, epoch, size : int
        As `sample` has them.
    samples : array of int
        The samples, in any shape.

    Returns
    -------
    numpy.ndarray of int64
        The positions, in the shape of samples.

    Raises
    ------
    Error
        If a number is outside its range.
    """
    return _many(seed, epoch, samples, size, "samples", True)


def share(batch: int, rank: int, world: int) -> range:
    """Returns the positions of a global batch whose samples a rank loads.

    The shares of all ranks are contiguous and together cover the batch. Their sizes differ by at most one; with more ranks than
    samples some shares are empty.

    Parameters
    ----------
    batch : int
        The size of the batch of all ranks together.
    rank, world : int
        The rank, 0 .. world - 1, and the number of ranks.

    Returns
    -------
    range
        Positions in the batch.

    Raises
    ------
    Error
        If a number is outside its range.

    Examples
    --------
    >>> [list(share(5, rank, 2)) for rank in range(2)]
    [[0, 1], [2, 3, 4]]
    """
    batch = _whole(batch, "batch", 0, _LARGEST, "Give the batch of all ranks together")
    world = _whole(world, "world", 1, 1 << 31, "Give the number of ranks")
    rank = _whole(rank, "rank", 0, world, f"Ranks of a world of {world} go up to {world - 1}")
    return range(batch * rank // world, batch * (rank + 1) // world)


@dataclass(frozen=True)
class Balance:
    """Passes in which each class has a fixed share of the positions, however many samples it has.

    A pass has `size` positions, of which each class has as many as its ratio says, rounded. A class goes through its own
    samples in shuffled rounds. A round that a pass does not finish goes on in the next one. After any number of whole passes a class
    has used each of its samples equally often, to within one. Everything is computed from (seed, pass, position).

    Parameters
    ----------
    members : sequence of arrays of int64
        The samples of each class. A sample may be in several classes.
    ratios : sequence of float
        Relative share of each class.
    size : int
        Number of positions of a pass.

    Raises
    ------
    Error
        If a pass has no position for a class whose ratio is above 0, so that its samples would never be used.
    """

    members: Sequence[NDArray[np.int64]]
    ratios: Sequence[float]
    size: int

    def __post_init__(self) -> None:
        counts = np.diff(self.ends, prepend=0)
        lost = next((kind for kind, (ratio, count) in enumerate(zip(self.ratios, counts)) if ratio > 0 and count == 0), None)
        if lost is not None:
            raise Error(f"suture: order: ratios: expected a position of a pass for each class, got none of {self.size} for class {lost}, whose share is "
                        f"{self.ratios[lost] / sum(self.ratios):.3g}. Raise its ratio, or make the pass longer, as by draws= of a feed")

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the classes, the ratios and the size."""
        parts = [repr((tuple(self.ratios), self.size)).encode(), *(np.asarray(own, "<i8").tobytes() for own in self.members)]
        return hashlib.sha256(b"".join(len(part).to_bytes(8, "little") + part for part in parts)).hexdigest()

    @property
    def ends(self) -> NDArray[np.int64]:
        """One past the last position of each class, before a pass is shuffled.

        Halves are rounded up, also those that the division leaves slightly below, so that a share of one position is never lost.
        """
        shares = np.cumsum(np.asarray(self.ratios, np.float64))
        made: NDArray[np.int64] = np.floor(shares / shares[-1] * self.size + (.5 + 1e-12 * self.size)).astype(np.int64)
        return made

    def at(self, seed: int, turn: int, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the samples at positions of a pass before it is shuffled (first all positions of class 0, then of class 1, and so on),
        and the number of each use.

        Parameters
        ----------
        seed : int
            The seed of the order.
        turn : int
            Number of the pass, counted from the beginning of the run.
        slots : array of int64
            Positions in the pass, in 0 .. size - 1.

        Returns
        -------
        tuple of numpy.ndarray of int64
            Samples, and for each use the number k * classes + class, where k counts the class's own passes. No sample is used
            twice with the same number.
        """
        ends = self.ends
        starts = np.concatenate([[0], ends[:-1]])
        kinds = np.searchsorted(ends, slots, side="right")
        out, uses = np.empty(len(slots), np.int64), np.empty(len(slots), np.int64)
        for kind in np.unique(kinds):
            here, own = np.flatnonzero(kinds == kind), self.members[kind]
            drawn = turn * int(ends[kind] - starts[kind]) + slots[here] - starts[kind]
            turns, places = np.divmod(drawn, len(own))
            for each in np.unique(turns):
                some = turns == each
                out[here[some]] = own[samples((seed + (int(kind) + 1) * _APART) % (1 << 64), int(each), places[some], len(own))]
            uses[here] = turns * len(self.members) + kind
        return out, uses


class Places(NamedTuple):
    """The samples that a rank loads for one step.

    Attributes
    ----------
    epoch : int
        The epoch that the draws of the pipeline depend on.
    samples : numpy.ndarray of int64
        The samples, as positions in the sorted cohort.
    draws : numpy.ndarray of int64
        The `draw` of `suture.sample_id` for each sample. It is the pass that the sample comes from, counted from
        the one in which the epoch begins, or with `Balance` the number of its use. No sample has the same number twice in an epoch.
    """

    epoch: int
    samples: NDArray[np.int64]
    draws: NDArray[np.int64]


@dataclass(frozen=True)
class Order:
    """The order of all batches of a training run.

    Steps are counted from the beginning of the run. The step alone is needed to resume: batches do not depend on the number of ranks,
    which may change between the parts of a run.

    Without `steps_per_epoch` an epoch is one pass through the cohort, and `last` says what happens to its last, smaller batch.
    With `steps_per_epoch` one pass directly follows another, across the ends of epochs: all batches are full and, without `balance`,
    the uses of two samples differ by one at most. An epoch may be shorter or longer than the cohort. A batch may hold the end of a
    pass and the beginning of the next, and so a sample twice.

    Parameters
    ----------
    size : int
        The number of samples in the cohort.
    batch : int
        The batch of all ranks together.
    seed : int, default 0
        The seed.
    steps_per_epoch : int, optional
        The steps of an epoch; by default a pass through the cohort.
    last : {"keep", "drop"}, default "keep"
        Without steps_per_epoch, what happens to the last batch of an epoch if `batch` does not divide the cohort. "keep" makes it
        smaller, so that every sample is used once and some ranks may have none. "drop" leaves its samples out of this epoch.
    shuffle : bool, default True
        Whether passes are shuffled; otherwise they are in the order of the cohort.
    balance : Balance, optional
        Chooses the samples at the positions of a pass; by default each sample has one position.

    Raises
    ------
    Error
        If a number is outside its range, or no batch would be left.

    Examples
    --------
    >>> order = suture.feed.Order(size=10, batch=4, seed=42)
    >>> order.steps, [order.at(step).samples.size for step in range(4)]
    (3, [4, 4, 2, 4])
    """

    size: int
    batch: int
    seed: int = 0
    steps_per_epoch: int | None = None
    last: Literal["keep", "drop"] = "keep"
    shuffle: bool = True
    balance: Balance | None = None

    def __post_init__(self) -> None:
        _network(self.seed, 0, self.size)
        _whole(self.batch, "batch", 1, 1 << 31, "Give the batch of all ranks together")
        if self.last not in ("keep", "drop"):
            raise Error(f"suture: order: last: expected 'keep' or 'drop', got {self.last!r}. 'keep' makes the last batch smaller")
        if self.steps_per_epoch is not None:
            _whole(self.steps_per_epoch, "steps_per_epoch", 1, 1 << 31, "Leave it out for one pass through the cohort")
        elif self.steps == 0:
            raise Error(f"suture: order: batch: expected at most the {self.size} samples of the cohort, got {self.batch}, and last='drop' "
                        "leaves no batch. Take a smaller batch, or last='keep'")

    @property
    def steps(self) -> int:
        """The number of steps in an epoch."""
        if self.steps_per_epoch is not None:
            return self.steps_per_epoch
        return self.size // self.batch if self.last == "drop" else -(-self.size // self.batch)

    def begin(self, step: int) -> tuple[int, int]:
        """Returns the pass and the position where the batch of a step begins.

        Parameters
        ----------
        step : int
            The step, from the beginning of the run.

        Returns
        -------
        tuple of int
            Number of the pass, and the position in it.

        Raises
        ------
        Error
            If the step is not a whole number in its range.
        """
        step = _whole(step, "step", 0, _LARGEST, "Count steps from the beginning of the run")
        if self.steps_per_epoch is not None:
            return divmod(step * self.batch, self.size)
        epoch, within = divmod(step, self.steps)
        return epoch, within * self.batch

    def count(self, step: int) -> int:
        """Returns the size of the global batch of a step.

        Parameters
        ----------
        step : int
            The step, from the beginning of the run.

        Returns
        -------
        int
            `batch`; less for the last batch of an epoch that last="keep" made smaller.
        """
        return self.batch if self.steps_per_epoch is not None else min(self.batch, self.size - self.begin(step)[1])

    def at(self, step: int, rank: int = 0, world: int = 1) -> Places:
        """Returns the samples that a rank loads for a step.

        Parameters
        ----------
        step : int
            The step, from the beginning of the run.
        rank, world : int
            The rank and the number of ranks; the whole batch by default.

        Returns
        -------
        Places
            The epoch, and the samples of the rank's share of the batch with their draws.

        Raises
        ------
        Error
            If a number is outside its range.
        """
        turn, start = self.begin(step)
        mine = share(self.count(step), rank, world)
        epoch = step // self.steps
        first = self.begin(epoch * self.steps)[0]
        out, draws = np.empty(len(mine), np.int64), np.empty(len(mine), np.int64)
        done = 0
        while done < len(mine):  # a piece for each pass that the share touches
            further, place = divmod(start + mine.start + done, self.size)
            piece = min(len(mine) - done, self.size - place)
            where = np.arange(place, place + piece, dtype=np.int64)
            found = samples(self.seed, turn + further, where, self.size) if self.shuffle else where
            uses: int | NDArray[np.int64] = turn + further - first
            if self.balance is not None:
                found, uses = self.balance.at(self.seed, turn + further, found)
            out[done:done + piece], draws[done:done + piece] = found, uses
            done += piece
        return Places(epoch, out, draws)
