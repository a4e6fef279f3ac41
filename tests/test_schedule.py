"""Writers and readers of schedules: every algorithm against numpy, counts and prices against the formulas."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.algorithms import BY_RANKS, hierarchical_allreduce, rails_allreduce
from helpers.algorithms.halving_doubling import halving_doubling_allreduce
from helpers.algorithms.parameter_server import parameter_server
from helpers.algorithms.ring import ring_allreduce
from helpers.algorithms.trees import double_binary_tree_allreduce, in_order_tree, second_tree
from helpers.cost import price as formulas
from helpers.cost.network import Link, Network, flat
from helpers.cost.price import FORMULAS, price
from helpers.count import count
from helpers.player import trace_of
from helpers.processes import run
from helpers.ranks.schedules import run_by_name, run_schedule
from helpers.schedule import ADD, COPY, Builder, Schedule, chunk_sizes
from helpers.schedule.__main__ import main
from helpers.simulate import DoubleCount, check_complete, simulate

ALLREDUCES = [name for name in BY_RANKS if "allreduce" in name or name == "parameter-server"]
LENGTHS = (0, 1, 3, 7, 64, 101)


def integers(ranks, length):
    draw = np.random.default_rng(0)
    return [draw.integers(-99, 100, length).astype(float) for _ in range(ranks)]


def check_allreduce(schedule: Schedule, length: int) -> None:
    """Every rank ends with the sum over ranks, exactly, and every mask is full."""
    arrays = integers(schedule.ranks, length)
    done = simulate(schedule, arrays)
    check_complete(schedule, done.masks)
    for rank in range(schedule.ranks):
        assert np.array_equal(done.arrays[rank], sum(arrays)), f"rank {rank}"


@pytest.mark.parametrize("ranks", (1, 2, 3, 4, 5, 7, 8, 13, 16, 33))
@pytest.mark.parametrize("name", ALLREDUCES)
def test_allreduces_add_up(name, ranks):
    for length in LENGTHS:
        check_allreduce(BY_RANKS[name](ranks), length)


@pytest.mark.parametrize("ranks", (1, 2, 3, 4, 7, 8))
def test_reduce_scatter_all_gather_and_all_to_all(ranks):
    for name in ("ring-reduce-scatter", "ring-all-gather", "all-to-all"):
        schedule = BY_RANKS[name](ranks)
        for length in LENGTHS:
            check_complete(schedule, simulate(schedule, integers(ranks, length)).masks)
    arrays = integers(ranks, 12 * ranks)
    done = simulate(BY_RANKS["ring-reduce-scatter"](ranks), arrays)
    for rank in range(ranks):
        own = (rank + 1) % ranks
        chunk = slice(12 * own, 12 * own + 12)
        assert np.array_equal(done.arrays[rank][chunk], sum(arrays)[chunk]), "rank i owns chunk i + 1"
    arrays = integers(ranks, ranks**2)
    done = simulate(BY_RANKS["all-to-all"](ranks), arrays)
    for i in range(ranks):
        for j in range(ranks):
            assert done.arrays[j][i * ranks + j] == arrays[i][i * ranks + j], "block i, j goes from i to j"


@pytest.mark.parametrize(("nodes", "gpus"), ((1, 4), (4, 1), (2, 3), (3, 2), (2, 8)))
def test_rails_and_hierarchical_add_up(nodes, gpus):
    for rails in range(1, gpus + 1):
        check_allreduce(rails_allreduce(nodes, gpus, rails), 50)
    check_allreduce(hierarchical_allreduce(nodes, gpus), 50)


@pytest.mark.parametrize("servers", (1, 2, 3, 5))
def test_parameter_servers_of_their_own_and_on_workers(servers):
    check_allreduce(parameter_server(5, servers), 23)
    check_allreduce(parameter_server(5, servers, colocated=True), 23)


@pytest.mark.parametrize("ranks", range(1, 40))
def test_double_trees(ranks):
    for segments in (1, 3):
        check_allreduce(double_binary_tree_allreduce(ranks, segments), 17)
    first = in_order_tree(ranks)
    second = second_tree(first)
    inner = [{p for p in parents if p is not None} for parents in (first, second)]
    assert len(inner[0] & inner[1]) <= (0 if ranks % 2 == 0 else 1), "a rank does the work of both trees"


@pytest.mark.parametrize("ranks", (1, 2, 5, 8, 16))
def test_halving_doubling_far_first(ranks):
    check_allreduce(halving_doubling_allreduce(ranks, far_first=True), 37)


def test_the_seven_states_of_the_ring_of_four():
    """The picture of the source: contributions in each chunk of each rank, before and after each step."""
    trace = simulate(ring_allreduce(4), integers(4, 8), trace=True).trace
    counts = [[[mask.bit_count() for mask in rank] for rank in state] for state in trace]
    assert len(counts) == 7 and counts[0] == [[1] * 4] * 4
    assert counts[1] == [[1, 1, 1, 2], [2, 1, 1, 1], [1, 2, 1, 1], [1, 1, 2, 1]]
    assert counts[3] == [[1, 4, 3, 2], [2, 1, 4, 3], [3, 2, 1, 4], [4, 3, 2, 1]]
    assert counts[6] == [[4] * 4] * 4


def test_a_double_count_is_found_where_ones_hide_it():
    broken = Builder("broken", 3, 1)
    broken.step([(0, 1, 0, ADD), (1, 0, 0, ADD)], "exchange")
    broken.step([(0, 2, 0, ADD)], "on")
    broken.step([(2, 1, 0, COPY), (2, 0, 0, COPY)], "back")
    good = simulate(broken.finish(), integers(3, 4))
    check_complete(broken.finish(), good.masks)
    wrong = Builder("wrong", 2, 1)
    wrong.step([(0, 1, 0, ADD)], "there")
    wrong.step([(1, 0, 0, ADD)], "and back again")
    with pytest.raises(DoubleCount, match="step 2: rank 0 would count chunk 0 twice"):
        simulate(wrong.finish(), integers(2, 4))
    assert simulate(wrong.finish(), [np.ones(1), np.ones(1)], strict=False).arrays[0] == 3


BAD = [
    (lambda: ring_allreduce(0), "ring-allreduce: ranks=0: expected a whole number of at least 1"),
    (lambda: ring_allreduce(2.5), "ranks=2.5"),
    (lambda: halving_doubling_allreduce(-1), "halving-doubling-allreduce: ranks=-1"),
    (lambda: rails_allreduce(2, 4, 5), "rings=5: expected 1 to 4"),
    (lambda: rails_allreduce(0, 4, 1), "nodes=0"),
    (lambda: hierarchical_allreduce(2, 0), "gpus=0"),
    (lambda: parameter_server(3, 0), "servers=0"),
    (lambda: parameter_server(3, 4, colocated=True), "servers=4: expected 1 to 3"),
    (lambda: Builder("x", 2, 1).step([(0, 2, 0, ADD)], "p"), "step 1: destination 2 is out of range 0 to 1"),
    (lambda: Builder("x", 2, 1).step([(0, 1, 1, ADD)], "p"), "step 1: chunk 1 is out of range"),
    (lambda: Builder("x", 2, 1).step([(1, 1, 0, ADD)], "p"), "rank 1 sends to itself"),
    (
        lambda: Builder("x", 2, 1, starts=np.array([[True], [False]])).step([(1, 0, 0, ADD)], "p"),
        "rank 1 sends chunk 0 before it holds anything of it",
    ),
    (lambda: chunk_sizes(-1, 2), "length=-1"),
    (lambda: simulate(ring_allreduce(2), [np.ones(3)]), "expected 2 one-dimensional arrays"),
    (lambda: flat(-1, 1), "alpha=-1"),
    (lambda: flat(0, 0), "bandwidth=0"),
]


@pytest.mark.parametrize(("call", "words"), BAD, ids=[words[:30] for _, words in BAD])
def test_bad_input_is_refused_by_name(call, words):
    with pytest.raises(ValueError) as refused:
        call()
    assert words in str(refused.value)


@pytest.mark.parametrize("ranks", (2, 3, 4, 8, 9))
def test_bytes_of_the_ring_are_the_formula(ranks):
    moved = count(ring_allreduce(ranks), 12 * ranks, itemsize=4)
    whole = 12 * ranks * 4
    assert moved.sent.tolist() == moved.received.tolist() == [2 * (ranks - 1) * whole // ranks] * ranks
    assert set(moved.by_link) == {(i, (i + 1) % ranks) for i in range(ranks)}
    assert moved.by_phase["reduce-scatter"] == moved.by_phase["all-gather"]
    assert moved.messages.tolist() == [2 * (ranks - 1)] * ranks
    uneven = count(ring_allreduce(ranks), 12 * ranks + 1, itemsize=4)
    assert uneven.total == 2 * (ranks - 1) * (12 * ranks + 1) * 4, "in all, also where K does not divide"


def test_bytes_of_the_centre():
    moved = count(parameter_server(64), 1000, itemsize=4)
    assert moved.received[64] == moved.sent[64] == 64 * 4000
    assert moved.sent[:64].tolist() == [4000] * 64


ranks_, alphas = st.integers(1, 40), st.floats(0, 1e-3)
bandwidths, sizes = st.floats(1e6, 1e12), st.floats(0, 1e11)


@settings(max_examples=40, deadline=None)
@given(K=ranks_, alpha=alphas, B=bandwidths, M=sizes)
def test_events_agree_with_every_closed_formula(K, alpha, B, M):
    for name, formula in FORMULAS.items():
        events = price(BY_RANKS[name](K), M, flat(alpha, B)).seconds
        assert events == pytest.approx(formula(K, M, alpha, B), rel=1e-12, abs=1e-18), name


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 5), g=st.integers(1, 6), alpha=alphas, M=sizes, data=st.data())
def test_events_agree_with_the_formulas_of_rails_and_hierarchy(n, g, alpha, M, data):
    network = Network(Link(alpha, 50e9), Link(alpha / 4, 450e9), gpus=g)
    R = data.draw(st.integers(1, g))
    events = price(rails_allreduce(n, g, R), M, network).seconds
    assert events == pytest.approx(formulas.rails(n, g, R, M, network), rel=1e-12, abs=1e-18)
    events = price(hierarchical_allreduce(n, g), M, network).seconds
    assert events == pytest.approx(formulas.hierarchical(n, g, M, network), rel=1e-12, abs=1e-18)


TABLE_7_2 = [  # K, bytes, latency term and bandwidth term in ms, as the source prints them
    (64, 16_060_522_496, "2.5", "632"),
    (64, 25 * 2**20, "2.5", "1.0"),
    (1024, 16_060_522_496, "40.9", "642"),
    (1024, 25 * 2**20, "40.9", "1.0"),
]


@pytest.mark.parametrize(("K", "M", "latency", "bandwidth"), TABLE_7_2)
def test_the_eight_cells_of_table_7_2(K, M, latency, bandwidth):
    terms = 1e3 * formulas.ring(K, 0, 20e-6, 50e9), 1e3 * formulas.ring(K, M, 0, 50e9)
    digits = 0 if "." not in bandwidth else 1
    assert (f"{terms[0]:.1f}", f"{terms[1]:.{digits}f}") == (latency, bandwidth)


def test_eight_rails_undo_the_0_63_seconds():
    network = Network(Link(0, 50e9), Link(0, 450e9), gpus=8)
    seconds = {R: price(rails_allreduce(8, 8, R), 16_060_522_496, network).seconds for R in (1, 2, 4, 8)}
    assert [round(s, 4) for s in seconds.values()] == [0.6324, 0.3162, 0.1581, 0.079]


def test_a_thousand_ranks_are_priced_by_events():
    events = price(ring_allreduce(1024), 1e9, flat(20e-6, 50e9)).seconds
    assert events == pytest.approx(formulas.ring(1024, 1e9, 20e-6, 50e9), rel=1e-12)
    assert formulas.ring(16_384, 1e9, 20e-6, 50e9) > events


@pytest.mark.parametrize("ranks", (2, 3, 4))
@pytest.mark.parametrize("name", [n for n in ALLREDUCES if n != "parameter-server"])
def test_real_processes_run_the_schedule(name, ranks):
    schedule = BY_RANKS[name](ranks)
    for length in (0, 3, 10):
        done = run(run_by_name, ranks=ranks, backend="gloo", name=name, length=length)
        counted = count(schedule, length, itemsize=8)
        for rank, told in enumerate(done):
            assert told["result"].equal(told["reference"])
            assert told["sent"] == counted.sent[rank]


def test_a_new_algorithm_takes_one_writer():
    """Not shipped: all ranks send all they have to everybody, at once. Every reader takes it as it is."""

    def everybody_to_everybody(ranks):
        build = Builder("flood", ranks, 1)
        pairs = [(i, j) for i in range(ranks) for j in range(ranks) if i != j]
        build.step([(i, j, 0, ADD) for i, j in pairs], "flood")
        return build.finish()

    schedule = everybody_to_everybody(5)
    check_allreduce(schedule, 9)
    assert count(schedule, 9, 4).sent.tolist() == [4 * 36] * 5
    assert price(schedule, 100, flat(1, 100)).seconds == pytest.approx(1 + 4)
    assert trace_of(schedule)["states"] == [[[1 << rank] for rank in range(5)], [[31]] * 5]
    for rank, told in enumerate(run(run_schedule, ranks=5, backend="gloo", schedule=schedule, length=9)):
        assert told["result"].equal(told["reference"]), f"rank {rank}"
        assert told["sent"] == 4 * 72


def test_command_line(capsys):
    assert main(["--list"]) == 0 and "ring-allreduce" in capsys.readouterr().out
    options = ["--ranks", "4", "--length", "10", "--alpha", "20e-6", "--bandwidth", "50e9"]
    assert main(["ring-allreduce", *options, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["steps"] == 6 and told["bytes sent by rank"] == [60, 64, 60, 56]
    assert told["seconds by events"] == pytest.approx(told["seconds by formula"], rel=1e-12)
    assert main(["double-binary-tree-allreduce", *options]) == 0


def test_the_command_line_prints_what_can_be_read_and_json_all_of_it(capsys):
    many = ["ring-allreduce", "--ranks", "17", "--length", "1e2", "--bandwidth", "3e9"]
    assert main(many) == 0  # 15 chunks of 6 and 2 of 5: a rank does not send two neighbouring ones
    printed = capsys.readouterr().out
    assert "bytes sent by rank:   752 to 760\n" in printed
    assert main([*many, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (len(told["bytes sent by rank"]), sum(told["bytes sent by rank"])) == (17, 2 * 16 * 400)
    exact = 2 * 16 * (20e-6 + 400 / 17 / 3e9)
    assert told["seconds by formula"] == pytest.approx(exact, rel=1e-12)
    assert f"seconds by formula:   {exact:.6g}\n" in printed
    assert main(["parameter-server", "--ranks", "2", "--length", "3"]) == 0
    printed = capsys.readouterr().out
    assert "by rank:   [12, 12]\nbytes sent by server: [24]\n" in printed


def test_the_command_line_explains_itself(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    told = capsys.readouterr().out
    assert left.value.code == 0 and told.startswith("usage: python -m helpers.schedule [-h]")
    example = next(line for line in told.splitlines() if line.startswith("  python -m helpers.schedule"))
    assert main(example.split()[3:]) == 0 and "elements of each rank's" in told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "usage: python -m helpers.schedule ALGORITHM [options]; see --list"),
        (["ring"], "algorithm 'ring': expected one of ring-allreduce"),
        (["--list", "foo"], "--list and algorithm 'foo': expected one of the two"),
        (["ring-allreduce", "--list"], "--list and algorithm 'ring-allreduce': expected one of the two"),
        (["ring-allreduce", "--ranks", "0"], "ranks=0: expected a whole number"),
        (["ring-allreduce", "--ranks", "many"], "--ranks: 'many': expected a whole number"),
        (["ring-allreduce", "--length", "-1"], "length=-1"),
        (["ring-allreduce", "--length", "1.5"], "--length: '1.5': expected a whole number"),
        (["ring-allreduce", "--length", "1e400"], "--length: '1e400': expected a whole number"),
        (["ring-allreduce", "--length", "1e15"], "length=1000000000000000: expected at most 1e+15 bytes"),
        (["ring-allreduce", "--itemsize", "-4"], "itemsize=-4: expected a whole number of bytes, at least 1"),
        (["ring-allreduce", "--itemsize", "0"], "itemsize=0: expected a whole number of bytes, at least 1"),
        (["ring-allreduce", "--bandwidth", "0"], "bandwidth=0"),
    ],
)
def test_the_command_line_refuses_in_one_line(arguments, words):
    command = [sys.executable, "-m", "helpers.schedule", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and words in done.stderr
    assert len(done.stderr.splitlines()) == 1 and done.stdout == ""


@pytest.mark.parametrize("ranks", (2, 64, 1024))
def test_at_the_threshold_both_terms_of_the_ring_are_equal(ranks):
    bytes_ = formulas.threshold(ranks, 20e-6, 50e9)
    latency, transfer = formulas.ring(ranks, 0, 20e-6, 50e9), formulas.ring(ranks, bytes_, 0, 50e9)
    assert latency == pytest.approx(transfer, rel=1e-12)
