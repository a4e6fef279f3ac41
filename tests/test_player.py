"""The player replays what really happens: its trace is the run of real processes, and its script is small."""

import gzip
import json
from fractions import Fraction

import pytest
from extensions import load_extension

from helpers import algorithms
from helpers.algorithms.broken import literal_all_gather, resending_ring
from helpers.drawn import module_of, style_of, widgets
from helpers.player import compact, play, trace_of
from helpers.processes import run
from helpers.ranks import ring

SIZES = range(2, 9)
LARGEST_STATE = 12_000  # bytes that the ring for 2 to 8 ranks may add to a page
LARGEST_SCRIPT = 12 * 1024  # compressed, with its style sheet

drawn = load_extension("drawn")


def replayed(small: dict) -> list[list[list[int]]]:
    """All states, from the compact form that a page carries: what player.js does with it."""
    states = [small["start"]]
    for step in small["steps"]:
        state = [list(row) for row in states[-1]]
        for _, destination, chunk, _, mask in step["moves"]:
            state[destination][chunk] = mask
        states.append(state)
    return states


def test_the_trace_is_what_four_real_processes_pass_through():
    seen = run(ring.states, ranks=4, backend="gloo")
    trace = trace_of(algorithms.ring_allreduce(4))
    assert trace["states"] == [list(state) for state in zip(*seen, strict=True)]
    assert len(trace["states"]) == 7


@pytest.mark.parametrize("ranks", (2, 3, 8))
def test_the_trace_of_the_ring_by_hand(ranks):
    """Independent of the simulation: rank i sends chunk i - t, and what has come is the ranks before it."""
    trace = trace_of(algorithms.ring_allreduce(ranks))
    for done in range(ranks):
        for rank in range(ranks):
            for chunk in range(ranks):
                hops = (rank - chunk) % ranks  # chunk's way from its first sender to this rank
                inside = range(chunk, chunk + hops + 1) if 0 < hops <= done else [rank]
                assert trace["states"][done][rank][chunk] == sum(1 << r % ranks for r in inside)
    assert trace["states"][-1] == [[2**ranks - 1] * ranks] * ranks


@pytest.mark.parametrize("ranks", SIZES)
def test_a_rank_of_the_ring_has_sent_all_but_two_shares_of_two_vectors(ranks):
    trace = trace_of(algorithms.ring_allreduce(ranks))
    halves = [trace["sent"][ranks - 1], trace["sent"][-1]]
    assert halves == [f"{ranks - 1}/{ranks}", str(Fraction(2 * (ranks - 1), ranks))]
    assert trace["even"] is True


@pytest.mark.parametrize("write", [*algorithms.BY_RANKS.values(), resending_ring, literal_all_gather])
def test_every_algorithm_can_be_traced_and_replayed(write):
    for ranks in SIZES:
        trace = json.loads(json.dumps(trace_of(write(ranks))))
        assert replayed(compact(trace)) == trace["states"]
        assert len(trace["states"]) == len(trace["sent"]) == len(trace["steps"]) + 1
    assert play(write, sizes=[3, 2], start=3).state["traces"].keys() == {"2", "3"}


def test_a_centre_sends_more_than_the_others():
    trace = trace_of(algorithms.parameter_server(4))
    assert (trace["sent"], trace["even"], len(trace["states"][0])) == (["0", "1", "4"], False, 5)


def test_a_page_carries_little():
    player = play(algorithms.ring_allreduce)
    assert len(json.dumps(player.state, separators=(",", ":"))) <= LARGEST_STATE
    assert "<script" not in player.box() and player.box().count("data-widget") == 1
    bundle = player._repr_mimebundle_()
    assert bundle["text/html"] == player.box() and bundle["text/plain"] == repr(player)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"sizes": []}, "sizes=[]: expected one or more numbers of ranks from 2 to 8"),
        ({"sizes": [4, 9]}, "sizes=[4, 9]: expected"),
        ({"sizes": [1, 4]}, "sizes=[1, 4]: expected"),
        ({"start": 9}, "start=9: expected one of the sizes [2, 3, 4, 5, 6, 7, 8]"),
    ],
)
def test_what_cannot_be_played_is_refused(arguments, words):
    with pytest.raises(ValueError) as refused:
        play(algorithms.ring_allreduce, **arguments)
    assert str(refused.value).startswith(words)


def test_the_script_is_small_and_carries_no_algorithm():
    script = drawn.classic_script("player", module_of("player"))
    style = style_of("player")
    assert sum(len(gzip.compress(text.encode(), mtime=0)) for text in (script, style)) <= LARGEST_SCRIPT
    assert "const widget = { render };" in script and "export" not in script
    for word in ("ring-", "reduce-scatter", "all-gather", "butterfly", "fetch("):
        assert word not in script, word


@pytest.mark.parametrize(
    "module",
    [
        'import x from "y";\nexport default {};',
        'const a = 1;\nimport x from "y";\nexport default {};',
        "const a = 1;",
        "export default {};\nexport default {};",
    ],
)
def test_a_module_that_is_no_classic_script_is_refused(module):
    with pytest.raises(ValueError, match="example.js: expected no import and one default export"):
        drawn.classic_script("example", module)


def test_the_player_is_among_the_widgets():
    assert widgets() == ["explorer", "player"]
