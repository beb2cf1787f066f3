"""Frequency oracles over arrays: from the same bytes the reports that the scalar clients give.

Words are consumed report by report in the scalar order. Reports are made from as many words as they
take if none is refused; the first report that these do not finish, because of a refused word or a
level with a longer report, is made by the scalar client, and then all goes on behind it.
"""

import os

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edge_ldp.arrays import Ints, Truths, WordArray
from edge_ldp.checks import ORACLE, array, taking
from edge_ldp.device.draw import Draw
from edge_ldp.device.errors import ParameterError
from edge_ldp.device.oracle import Grr, HaarHrr, Hierarchy, Hrr, Olh, Oue
from edge_ldp.entropy import Checked, Entropy
from edge_ldp.oracles import Oracle
from edge_ldp.oracles.base import WaveClient
from edge_ldp.oracles.hierarchy import PADDING
from edge_ldp.vectorized.perturb import Words, accepted_words, over_limit, sample_many

_CHUNK = 1 << 16  # reports, or words of OUE, at a time: bounds memory
_CODED = (Grr, Olh, Hrr, HaarHrr)  # one word for each integer


@taking(oracle=ORACLE)
def perturb_oracle_many(
    oracle: Oracle, values: ArrayLike, *, entropy: Entropy | None = None
) -> NDArray[np.int64] | NDArray[np.uint8]:
    """Return one report a row for each value (categories, shape as given, flat).

    Shape: (n, report_length), int64; rows of a tree's shorter reports end with -1, which the
    oracle's own methods pass over. OUE: uint8, packed as the scalar's bytes.
    `entropy(size) -> bytes` is the operating system's unless given. Cost: O(n), at most 2^16
    reports' words in memory. Raises ParameterError for values that are no categories.
    """
    given = array("values", values)
    if given.dtype.kind not in "iu":
        raise ParameterError("values", "an array of integers")
    if given.size and not 0 <= int(given.min()) <= int(given.max()) < oracle.size:
        raise ParameterError("values", f"0..{oracle.size - 1}")
    items = given.ravel().astype(np.int64)
    words = Words(entropy or Checked(os.urandom))
    client = oracle.client
    if isinstance(client, Oue):
        return _unary(client, items, words)
    if not isinstance(client, (*_CODED, Hierarchy)):
        raise ParameterError("oracle", "one of edge_ldp.oracles")
    made = np.full((len(items), oracle.report_length), PADDING, np.int64)
    for at in range(0, len(items), _CHUNK):
        _fill(made[at : at + _CHUNK], client, items[at : at + _CHUNK], words)
    return made


def _fill(made: Ints, client: WaveClient | Hierarchy, items: Ints, words: Words) -> None:
    """Write the reports of the items into the rows of `made`."""
    while len(items):
        done = _try_fill(made, client, items, words)
        made, items = made[done:], items[done:]
        if len(items):
            report = client.perturb(int(items[0]), Draw(words.read, block_words=1))
            made[0, : len(report)] = report
            made, items = made[1:], items[1:]


def _try_fill(made: Ints, client: WaveClient | Hierarchy, items: Ints, words: Words) -> int:
    """Write the first reports, for all of which the words suffice; return how many."""
    if isinstance(client, Hierarchy):
        return _try_tree(made, client, items, words)
    drawn = words.take(made.size).reshape(made.shape)
    reports, refused = _reports(client, items, drawn)
    done = _before(refused)
    made[:done] = reports[:done]
    words.put_back(drawn[done:])
    return done


def _try_tree(made: Ints, client: Hierarchy, items: Ints, words: Words) -> int:
    """Do what `_try_fill` does, where the number of words goes with the level drawn."""
    lengths = np.array([_length(level) for level in client.levels])
    drawn = words.take((1 + int(lengths.min())) * len(items))
    levels = (drawn % np.uint64(len(lengths))).astype(np.int64)  # if a report started there
    starts, end = _starts(1 + lengths[levels], 1 + int(lengths.min()))
    refused = over_limit(drawn[starts], len(lengths))
    reports = np.full((len(starts), made.shape[1]), PADDING, np.int64)
    reports[:, 0] = levels[starts]
    for level, inner in enumerate(client.levels):
        rows = np.flatnonzero(reports[:, 0] == level)
        places = starts[rows, np.newaxis] + np.arange(1, 1 + lengths[level])
        nodes = items[rows] // client.widths[level]
        reports[rows, 1 : 1 + lengths[level]], bad = _reports(inner, nodes, drawn[places])
        refused[rows] |= bad
    done = _before(refused)
    made[:done] = reports[:done]
    words.put_back(drawn[starts[done] if done < len(starts) else end :])
    return done


def _starts(steps: Ints, least: int) -> tuple[Ints, int]:
    """Return where the reports start that end within the words, and the end of the last.

    A report that starts at word k ends before k + steps[k]; len(steps) is a multiple of `least`.
    """
    if steps.max() == least:
        return np.arange(0, len(steps), least), len(steps)
    starts, at = [], 0
    following = (np.arange(len(steps)) + steps).tolist()
    while at < len(following) and following[at] <= len(following):
        starts.append(at)
        at = following[at]
    return np.array(starts, np.int64), at


def _reports(client: WaveClient, items: Ints, words: WordArray) -> tuple[Ints, Truths]:
    """Return (one report a row, rows with a refused word); reports of such rows mean nothing."""
    public, limits, index = _public(client, items, words)
    total = client.channel.total
    refused = np.zeros(len(items), bool)
    for column, limit in enumerate([*limits, total]):
        refused |= over_limit(words[:, column], limit)
    code = sample_many(client.channel, index, words[:, -1] % np.uint64(total))
    return np.stack([*public, code], axis=1), refused


def _public(
    client: WaveClient, items: Ints, words: WordArray
) -> tuple[list[Ints], list[int], Ints]:
    """Return (numbers drawn before the code, their ranges, inputs of the channel)."""
    if isinstance(client, Grr):
        return [], [], items
    if isinstance(client, Olh):
        a = 1 + _below(words[:, 0], client.prime - 1)
        b = _below(words[:, 1], client.prime)
        hashed = (a * items + b) % client.prime % client.channel.d  # below 2^62
        return [a, b], [client.prime - 1, client.prime], hashed
    if isinstance(client, Hrr):
        row = _below(words[:, 0], client.order)
        return [row], [client.order], _parity(row & items)
    level = _below(words[:, 0], client.height)
    nodes = np.int64(1) << (client.height - 1 - level)
    row = (words[:, 1] % nodes.view(np.uint64)).view(np.int64)
    half = items >> level
    any_power = 1  # of two: no word is refused
    return [level, row], [client.height, any_power], _parity(row & (half >> 1)) ^ (half & 1)


def _unary(client: Oue, items: Ints, words: Words) -> NDArray[np.uint8]:
    """Return OUE's reports: all words are of one kind, so refused ones are simply passed over."""
    own = client.r_num + client.r_den
    many = max(1, _CHUNK // client.size)
    made = np.empty((len(items), (client.size + 7) // 8), np.uint8)
    for at in range(0, len(items), many):
        chosen = items[at : at + many, np.newaxis]
        limits = np.where(
            np.arange(client.size) == chosen, np.uint64(own), np.uint64(2 * client.r_den)
        )
        drawn = accepted_words(words, 2 * own, limits.size).reshape(limits.shape)
        made[at : at + many] = np.packbits(drawn < limits, axis=1, bitorder="little")
    return made


def _below(words: WordArray, n: int) -> Ints:
    return (words % np.uint64(n)).astype(np.int64)


def _parity(bits: Ints) -> Ints:
    for shift in (16, 8, 4, 2, 1):
        bits = bits ^ (bits >> shift)
    return bits & 1


def _before(refused: Truths) -> int:
    """Return how many rows stand before the first refused one."""
    return int(np.argmax(refused)) if refused.any() else len(refused)


def _length(client: Grr | Olh) -> int:
    return 1 if isinstance(client, Grr) else 3
