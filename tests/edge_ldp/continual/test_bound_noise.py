"""Noise bound to slots and values: the same again for the same, another for anything else."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, count, product

import pytest

from edge_ldp.continual import Curator, CuratorState, Design, Shape, parse_state
from edge_ldp.continual.chunk import causal_step
from edge_ldp.continual.noise import KEY_BYTES, BoundNoise, NodeNoise, nothing_seen
from edge_ldp.continual.threshold import Fixed
from edge_ldp.continual.variance import prefix
from edge_ldp.device.errors import ParameterError
from edge_ldp.protocol.strict_json import MessageError

THETA = 1 << 38  # noise that two draws do not share by chance: less than 2^-30 a pair
CHUNK = 12
ONE_LEVEL = ((0, 12, 12), (1, 4, 16))
KINDS = ("flat", "causal", "consistent")
SHAPES = [  # of one level, then of several: kind, pruned, fan-out, chunk
    *((kind, pruned, fanout, chunk) for kind in KINDS for pruned, fanout, chunk in ONE_LEVEL),
    ("causal", 0, 2, 16),
    ("causal", 1, 3, 54),
    ("tree", 0, 2, 16),
    ("tree", 0, 3, 20),
]
KEY = bytes(range(KEY_BYTES))


def design(kind: str = "flat", pruned: int = 0, *, chunk: int = CHUNK, fanout: int = 12) -> Design:
    return Design(
        optimiser=Fixed(THETA),
        shape=Shape(kind, fanout, chunk, pruned),
        epsilon=Fraction(1),
        ceiling=THETA,
        readings=0,
    )


def draws() -> Iterator[int]:
    return count(1 << 60, 977)


def begun(one: Design) -> Curator:
    words = draws()
    return Curator(one, draw=lambda n: next(words) % n, bound=True)


def copy_of(one: Design, state: CuratorState) -> Curator:
    return Curator(one, state=parse_state(state.to_json()), bound=True)


def noises(curator: Curator, pushed: list[tuple[int, int]]) -> list[int]:
    """Return what was added to each value, blocks of one value."""
    released = [curator.push(value, slot).value for slot, value in pushed]
    return [
        one - value for one, (_, value) in zip(released, pushed, strict=True) if one is not None
    ]


@pytest.mark.parametrize(("kind", "pruned", "fanout", "chunk"), SHAPES)
def test_a_restart_anywhere_goes_on_bit_for_bit_PRV_19(
    kind: str, pruned: int, fanout: int, chunk: int
) -> None:
    made = design(kind, pruned, chunk=chunk, fanout=fanout)
    pushed = [(3 * at + at % 2, at * 10**9) for at in range(chunk - 1)]
    calm = begun(made)
    wanted = [calm.push(value, slot) for slot, value in pushed]
    for broken_at in range(chunk - 1):
        shaken = begun(made)
        found = [shaken.push(value, slot) for slot, value in pushed[:broken_at]]
        if broken_at:
            shaken = copy_of(made, shaken.state())
        found += [shaken.push(value, slot) for slot, value in pushed[broken_at:]]
        assert found == wanted


@pytest.mark.parametrize(
    ("kind", "fanout", "chunk"),
    [*((kind, 12, CHUNK) for kind in KINDS), ("causal", 2, 16), ("causal", 3, 27)],
)
@pytest.mark.parametrize("other", [(0, 1), (1, 0), (7, 10**9)])
def test_two_copies_share_no_noise_from_where_slot_or_value_differ_PRV_19(
    kind: str, fanout: int, chunk: int, other: tuple[int, int]
) -> None:
    """The attack: copies of one state, each with its own readings, differed exactly by them.

    A causal prefix's noise is Σ of nodes finished before: what is new of it is bound at each value.
    """
    made = design(kind, chunk=chunk, fanout=fanout)
    pushed = [(10 * at, 5 * 10**9 + at) for at in range(chunk - 1)]
    for parted_at in range(1, chunk - 1):
        first = begun(made)
        for slot, value in pushed[:parted_at]:
            first.push(value, slot)
        second = copy_of(made, first.state())
        later, value = pushed[parted_at]
        changed = [(later + other[0], value + other[1]), *pushed[parted_at + 1 :]]
        ours, theirs = noises(first, pushed[parted_at:]), noises(second, changed)
        assert not set(ours) & set(theirs)
        if kind == "causal":
            assert not set(accumulate(ours)) & set(accumulate(theirs))


def test_without_binding_the_same_attack_meets_the_same_noise() -> None:
    """The control, and what the library does unless it is asked."""
    made = design()
    words = draws()
    first = Curator(made, draw=lambda n: next(words) % n)
    first.push(1, 0)
    second = Curator(made, state=parse_state(first.state().to_json()))
    assert noises(first, [(1, 10), (2, 20)]) == noises(second, [(1, 99), (2, 77)])
    chunk = first.state().chunk
    assert chunk is not None
    assert chunk.seen == b""


def test_blocks_of_several_values_are_released_with_noise_of_all_of_them_PRV_19() -> None:
    made = design("consistent", 1, chunk=16, fanout=4)
    pushed = [(at, 10**9) for at in range(4)]
    first = begun(made)
    first.push(10**9, 0)
    first.push(10**9, 1)
    second = copy_of(made, first.state())
    ours = [first.push(value, slot).value for slot, value in pushed[2:]]
    theirs = [second.push(value + 1, slot).value for slot, value in pushed[2:]]
    assert ours[0] == theirs[0]  # the prediction: nothing of the block is in it yet
    assert ours[1] is not None
    assert theirs[1] is not None
    assert abs(ours[1] - theirs[1]) > 1 << 10


def test_every_history_has_its_own_noise_and_only_the_same_one_has_the_same_PRV_19() -> None:
    """Exact: all 3^6 runs of six values in three forms, and the digests of all their prefixes."""
    forms = ((1, 0), (1, 1), (2, 0))  # slots on, value
    digests: dict[bytes, tuple[tuple[int, int], ...]] = {}
    for run in product(forms, repeat=6):
        noise = BoundNoise(KEY, Fraction(10), nothing_seen(KEY))
        history: tuple[tuple[int, int], ...] = ()
        slot = 0
        for step, value in run:
            slot += step
            noise.see(slot, value)
            history = (*history, (slot, value))
            assert digests.setdefault(noise.seen, history) == history
    assert len(digests) == sum(3**length for length in range(1, 7))


def test_the_noise_is_that_of_a_key_of_its_own() -> None:
    """So its law is NodeNoise's, which is tested exactly (test_noise)."""
    noise = BoundNoise(KEY, Fraction(10), nothing_seen(KEY))
    noise.see(5, 7)
    keys = {noise.seen, KEY, nothing_seen(KEY)}
    assert len(keys) == 3
    assert {len(one) for one in keys} == {KEY_BYTES}
    found = [noise.noise(0, index) for index in range(400)]
    assert all(NodeNoise(key, Fraction(10)).many(0, 0, 400) != found for key in keys)
    assert 5 < sum(map(abs, found)) / 400 < 15  # the mean is 10; off by 5: once in 10^20 keys


def test_what_is_above_theta_counts_as_theta_and_no_noise_tells_it() -> None:
    made = design()
    first = begun(made)
    first.push(1, 0)
    second = copy_of(made, first.state())
    assert first.push(THETA, 1).value == second.push(THETA + 5, 1).value


@pytest.mark.parametrize(("fanout", "chunk"), [(2, 16), (3, 27)])
def test_a_walked_trees_nodes_are_bound_to_all_that_is_under_them_PRV_19(
    fanout: int, chunk: int
) -> None:
    made = design("tree", chunk=chunk, fanout=fanout)
    for parted_at in range(1, chunk - 1):
        first = begun(made)
        for at in range(parted_at):
            first.push(10**9, at)
        second = copy_of(made, first.state())
        ours = [first.push(10**9, at) for at in range(parted_at, chunk - 1)]
        theirs = [second.push(10**9 + (at == parted_at), at) for at in range(parted_at, chunk - 1)]
        for one, other in zip(ours, theirs, strict=True):
            assert abs((one.value or 0) - (other.value or 0)) > 1
            assert all(abs(a - b) > 1 for a, b in zip(one.nodes, other.nodes, strict=True))


def test_a_causal_prefix_has_the_noise_of_its_nodes_each_met_once() -> None:
    """So its law is the unbound one's: as many nodes in every prefix, none of them drawn again."""
    shape = Shape("causal", 2, 16)
    made: dict[tuple[int, int], int] = {}

    def own(level: int, index: int) -> int:
        assert (level, index) not in made
        return made.setdefault((level, index), 3 ** (7 * level + index))

    held = [0] * shape.levels
    total = 0
    for leaf in range(shape.blocks):
        total += causal_step(held, shape.fanout, leaf, own)
        assert total == sum(held) == sum(made[node] for node in prefix(shape, leaf + 1))


def test_least_squares_over_several_levels_cannot_be_bound_PRV_19() -> None:
    """A block is released with noise of nodes that end later, whose values nobody knows yet."""
    made = design("consistent", fanout=4, chunk=16)
    assert made.shape.looks_ahead
    with pytest.raises(ParameterError, match="bound"):
        begun(made)
    assert Curator(made).push(1, 0).value is not None


def test_a_state_keeps_what_was_seen_and_one_without_goes_on_as_it_began() -> None:
    made = design()
    curator = begun(made)
    curator.push(1, 0)
    state = curator.state()
    assert state.chunk is not None
    assert parse_state(state.to_json()) == state
    before = replace(state, chunk=replace(state.chunk, seen=b""))
    assert b"seen" not in before.to_json()
    older = copy_of(made, before)
    older.push(1, 1)
    after = older.state()
    assert after.chunk is not None
    assert after.chunk.seen == b""
    with pytest.raises(MessageError):
        parse_state(state.to_json().replace(b'"seen":"', b'"seen":"0'))
