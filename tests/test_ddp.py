"""The training program: many ranks agree with one, a kill costs only time, and mistakes have a name."""

import dataclasses
import functools
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

import psutil
import pytest
import torch

from helpers.ddp import checkpoint
from helpers.ddp.__main__ import main
from helpers.ddp.data import Batches, windows
from helpers.ddp.group import Place, backend_of, group, place
from helpers.ddp.model import CONTEXT, ByteTransformer
from helpers.ddp.options import Options, SettingError, options_of
from helpers.ddp.progress import Progress
from helpers.ddp.training import backward
from helpers.nodes.launchers import launch
from helpers.page import rounding_bound
from helpers.processes import RankFailure, run
from helpers.processes.backend import Machine
from helpers.processes.loopback import loopback
from helpers.ranks.training import (
    train,
    train_and_die,
    train_and_die_writing,
    train_unsettled,
    train_unsynchronised,
)

ROOT = Path(__file__).parents[1]
TIMEOUT = 120.0  # seconds; a run takes one or two on idle cores
MOMENTS = ("half written", "not yet replaced", "just replaced")


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """No launcher's environment; what the program adds to it goes again after each test."""
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "GLOO_SOCKET_IFNAME"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def digests(f, ranks: int = 4, **options) -> list[str]:
    """The digest of every rank's parameters."""
    return [result["digest"] for result in run(f, ranks=ranks, backend="gloo", timeout=TIMEOUT, **options)]


def kill_and_resume(seed: int) -> bool:
    """Kill one rank of four at a random moment, resume, and compare with a run that nobody killed.

    Random by `seed`: the settings, which rank, and when: after a step, or after a time that may fall
    anywhere, also into the writing of a checkpoint. True when all ranks end with the same bits.
    """
    draw = random.Random(seed)
    options = {"steps": 24, "batch": 2, "seed": seed, "accumulate": draw.choice([1, 2]), "dropout": 0.1}
    when = draw.choice([{"last_step": draw.randint(1, 23)}, {"after": draw.uniform(0.05, 0.6)}])
    whole = digests(train, **options)
    with tempfile.TemporaryDirectory() as folder:
        keep = {"checkpoint": str(Path(folder, "c.pt")), "checkpoint_every": draw.randint(1, 6)}
        try:
            digests(train_and_die, culprit=draw.randrange(4), **when, **keep, **options)
        except RankFailure as failure:
            assert failure.kind == "killed", failure
        resumed = digests(train, resume=True, **keep, **options)
    return len(set(whole)) == 1 and resumed == whole


def killed_while_writing(moment: str, folder: Path) -> tuple[int, int, bool]:
    """Kill rank 0 at `moment` while it writes its second checkpoint; resume.

    Returns the step of the checkpoint that was left, the first step after resuming, and whether the end has
    the bits of a run that nobody killed.
    """
    options = {"steps": 9, "batch": 2, "checkpoint_every": 3, "checkpoint": str(folder / "c.pt")}
    with pytest.raises(RankFailure, match="rank 0 was killed"):
        digests(train_and_die_writing, ranks=2, moment=moment, number=2, **options)
    left = torch.load(folder / "c.pt", weights_only=True)["step"]
    resumed = run(train, ranks=2, backend="gloo", timeout=TIMEOUT, resume=True, **options)
    whole = digests(train, ranks=2, steps=9, batch=2)
    return left, resumed[0]["first_step"], [r["digest"] for r in resumed] == whole


# Many ranks against one


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a - b).norm() / b.norm())


@functools.cache
def one_process(steps: int, clip: float) -> dict:
    return run(train, ranks=1, batch=32, steps=steps, clip=clip, timeout=TIMEOUT)[0]


@pytest.mark.parametrize(("ranks", "batch", "accumulate"), [(4, 8, 1), (2, 8, 2), (4, 4, 2)])
def test_many_ranks_compute_what_one_computes_on_the_global_batch(ranks, batch, accumulate):
    split = {"ranks": ranks, "batch": batch, "accumulate": accumulate, "timeout": TIMEOUT}
    bound = rounding_bound(32 * CONTEXT)  # a gradient is a mean over so many tokens
    one, many = one_process(1, math.inf), run(train, steps=1, clip=math.inf, **split)[0]
    assert relative(many["gradient"], one["gradient"]) < bound
    assert many["losses"] == pytest.approx(one["losses"], rel=bound)
    one, many = one_process(10, 1.0), run(train, steps=10, clip=1.0, **split)[0]
    assert relative(many["parameters"], one["parameters"]) < 1e-12
    assert many["losses"] == pytest.approx(one["losses"], rel=1e-12)
    assert float(many["gradient"].norm()) <= 1 + 1e-5  # clipped


def test_replicas_have_the_same_bits_and_the_loss_falls():
    results = run(train, ranks=4, steps=60, report_every=20, timeout=TIMEOUT)
    assert len({result["digest"] for result in results}) == 1
    losses = results[0]["losses"]
    assert list(losses) == [1, 20, 40, 60] and losses[60] < losses[1] - 2
    assert losses[1] == pytest.approx(math.log(256), rel=0.1)  # knows nothing yet
    assert (results[0]["backend"], results[0]["device"], results[0]["first_step"]) == ("gloo", "cpu", 1)
    assert results[0]["samples_per_second"] > 0
    assert "step 60: loss" in results.output[0] and results.output[1:] == ["", "", ""]


def test_a_step_sees_the_same_windows_on_any_number_of_ranks():
    reference = None
    for ranks, batch, accumulate in ((1, 96, 1), (1, 8, 12), (3, 16, 2), (4, 24, 1), (2, 12, 4)):
        dealt = [Batches(rank, ranks, batch, accumulate, seed=3) for rank in range(ranks)]
        assert dealt[0].per_epoch == 4150 // 96
        steps = []
        for _ in range(dealt[0].per_epoch + 2):  # into the second epoch
            labels = torch.cat([batches.next()[1].flatten(0, 1) for batches in dealt])
            steps.append(sorted(map(tuple, labels.tolist())))
        reference = reference or steps
        assert steps == reference
    assert steps[0] != steps[dealt[0].per_epoch]  # another order in another epoch


def test_an_epoch_sees_no_window_twice():
    batches = Batches(0, 1, 50, 1, seed=0)
    rows = torch.cat([batches.next()[0][0] for _ in range(batches.per_epoch)])
    assert len(rows) == 4150 == len(windows()) and batches.state_dict() == {"epoch": 0, "step": 83}
    assert sorted(map(tuple, rows.tolist())) == sorted(map(tuple, windows()[:, :-1].tolist()))


def test_the_model_looks_back_only():
    model = ByteTransformer().double()
    text = torch.randint(256, (1, CONTEXT))
    changed = text.clone()
    changed[0, 20] += 1 if text[0, 20] < 255 else -1
    before, after = model(text), model(changed)
    assert torch.equal(before[:, :20], after[:, :20]) and not torch.equal(before[:, 20:], after[:, 20:])
    assert sum(p.numel() for p in model.parameters()) == 42_944


@pytest.fixture
def alone():
    """A process group of one, in this process."""
    with group("auto", 30) as (here, device, reason):
        yield here, device, reason


def test_a_step_synchronises_once_however_many_micro_batches_it_has(alone):
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    sent = []

    def hook(state, bucket):
        sent.append(bucket.index())
        return allreduce_hook(None, bucket)

    ddp = torch.nn.parallel.DistributedDataParallel(ByteTransformer().double())
    ddp.register_comm_hook(None, hook)
    backward(ddp, *Batches(0, 1, 2, 5, seed=0).next(), alone[1], "float64")
    assert sent == [0]


@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_other_precisions_learn_as_well(precision):
    results = run(train, ranks=2, steps=30, batch=4, precision=precision, timeout=TIMEOUT)
    assert results[0]["digest"] == results[1]["digest"]
    assert results[0]["parameters"].dtype == torch.float32 and results[0]["parameters"].isfinite().all()
    losses = results[0]["losses"]
    assert losses[30] < losses[1] - 1
    if precision == "bf16":
        exact = run(train, ranks=2, steps=1, batch=4, precision="float32", timeout=TIMEOUT)[0]["losses"][1]
        assert losses[1] != exact and losses[1] == pytest.approx(exact, rel=0.01)


# Kill and resume


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_a_killed_run_resumes_to_the_same_bits(seed):
    assert kill_and_resume(seed)


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_while_the_checkpoint_is_written_leaves_a_whole_one(moment, tmp_path):
    step = 6 if moment == "just replaced" else 3
    assert killed_while_writing(moment, tmp_path) == (step, step + 1, True)


def test_without_settled_buckets_four_ranks_resume_to_other_bits(tmp_path):
    """The reason for settle_buckets, and the proof that comparing bits can fail."""
    path = str(tmp_path / "c.pt")
    whole = digests(train_unsettled, steps=12)
    digests(train_unsettled, steps=6, checkpoint=path)
    resumed = digests(train_unsettled, steps=12, checkpoint=path, resume=True)
    assert len(set(whole)) == len(set(resumed)) == 1 and whole[0] != resumed[0]


def test_the_data_goes_on_where_it_was_also_in_a_later_epoch():
    first, second = (Batches(1, 2, 300, 1, seed=4) for _ in range(2))
    assert first.per_epoch == len(windows()) // 600 == 6
    for _ in range(8):
        first.next()
    assert first.state_dict() == {"epoch": 1, "step": 2}
    second.load_state_dict(first.state_dict())
    for _ in range(6):
        assert torch.equal(first.next()[0], second.next()[0])


def test_resume_stops_when_nothing_is_left_and_refuses_to_go_back(tmp_path):
    options = {"ranks": 2, "batch": 2, "checkpoint": tmp_path / "c.pt", "resume": True, "timeout": TIMEOUT}
    done = run(train, steps=4, **options)[0]
    assert (done["first_step"], done["steps"]) == (1, 4)
    again = run(train, steps=4, **options)[0]
    assert (again["first_step"], again["gradient"], again["digest"]) == (5, None, done["digest"])
    with pytest.raises(RankFailure, match="steps 3: the checkpoint .* is at step 4 already"):
        run(train, steps=3, **options)
    assert (Options(epochs=2).total_steps(6), Options().total_steps(6)) == (12, 200)


def saved(path: Path, **settings) -> dict:
    """A checkpoint without much in it."""
    state = dict.fromkeys(checkpoint.PARTS, 0) | {"settings": Options(**settings).binding(2, "gloo")}
    checkpoint.save(path, state)
    return state


def test_other_settings_are_named_with_both_values(tmp_path):
    saved(tmp_path / "c.pt", batch=8, seed=1)
    here = Options(batch=4, seed=2, precision="bf16").binding(3, "gloo")
    with pytest.raises(SettingError) as caught:
        checkpoint.load((tmp_path / "c.pt").read_bytes(), "c.pt", here)
    assert str(caught.value) == (
        "checkpoint c.pt: belongs to other settings: batch 8, here 4; precision float64, here bf16; "
        "ranks 2, here 3; seed 1, here 2"
    )


class Evil:
    """Pickles to a call that makes a folder."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def test_a_file_that_is_no_checkpoint_is_refused_and_runs_nothing(tmp_path):
    path, here = tmp_path / "c.pt", Options().binding(2, "gloo")
    state = saved(path)
    data = path.read_bytes()
    assert checkpoint.load(data, path, here) == state
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        with pytest.raises(SettingError, match=r"can't be read \(\w+\); it is cut short or no checkpoint$"):
            checkpoint.load(data[:cut], path, here)
    for other in ([1], {"model": 1}):
        torch.save(other, path)
        with pytest.raises(SettingError, match="not written by this program"):
            checkpoint.load(path.read_bytes(), path, here)
    torch.save(Evil(tmp_path / "made"), path)
    with pytest.raises(SettingError, match="can't be read"):
        checkpoint.load(path.read_bytes(), path, here)
    assert not (tmp_path / "made").exists()


# The command line


REFUSED = [
    (["--batch", "0"], "batch 0: expected a whole number of at least 1"),
    (["--steps", "0"], "steps 0: expected a whole number of at least 1"),
    (["--steps", "many"], "argument --steps: invalid int value: 'many'"),
    (["--epochs", "-1"], "epochs -1: expected a whole number of at least 1"),
    (["--steps", "3", "--epochs", "2"], "steps 3 and epochs 2: expected one of them"),
    (["--accumulate", "0"], "accumulate 0: expected"),
    (["--report-every", "0"], "report every 0: expected"),
    (["--seed", "-1"], "seed -1: expected"),
    (["--seed", str(2**40)], "expected less than 4294967296"),
    (["--precision", "fp8"], "precision fp8: expected one of float64, float32, bf16"),
    (["--learning-rate", "nan"], "learning rate nan: expected a number above 0"),
    (["--clip", "0"], "clip 0.0: expected a number above 0"),
    (["--dropout", "1"], "dropout 1.0: expected 0, or a number above 0 and below 1"),
    (["--backend", "mpi"], "backend mpi: expected one of auto, gloo, nccl"),
    (["--backend", "nccl"], "backend nccl: no GPU here; expected gloo or auto"),
    (["--timeout", "0"], "timeout 0: expected seconds above 0"),
    (["--expect-ranks", "4"], "expect ranks 4: this world has 1; see what every node was told"),
    (["--resume"], "resume without checkpoint: expected its path too"),
    (["--checkpoint-every", "5"], "checkpoint every without checkpoint: expected its path too"),
    (["--checkpoint", ""], "checkpoint '': expected a path"),
    (
        ["--checkpoint", "/no/such/folder/c.pt"],
        "checkpoint /no/such/folder/c.pt: expected a file in a folder",
    ),
    (["--batch", "5000"], "batch 5000: a step of 1 x 1 x 5000 windows is more than the text's 4150"),
    (["--ranks", "2"], "unrecognized arguments: --ranks 2"),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(row[0]) for row in REFUSED])
def test_mistakes_are_told_in_one_line(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    shown = capsys.readouterr()
    assert caught.value.code == 2 and shown.out == ""
    assert shown.err.startswith("python -m helpers.ddp: ") and words in shown.err
    assert len(shown.err.splitlines()) == 1


def test_a_mistake_is_told_by_one_rank_of_a_node(capsys, monkeypatch):
    monkeypatch.setenv("LOCAL_RANK", "1")
    with pytest.raises(SystemExit) as caught:
        main(["--batch", "0"])
    assert caught.value.code == 2 and capsys.readouterr() == ("", "")


def test_checkpoints_that_cannot_go_on_are_refused(tmp_path, capsys):
    path = str(tmp_path / "c.pt")
    short = ["--steps", "2", "--batch", "1", "--checkpoint", path]
    assert main(short) == 0
    data = Path(path).read_bytes()
    for arguments, words in (
        (short, "is there already; resume from it, or name another path"),
        ([*short, "--resume", "--seed", "7"], "belongs to other settings: seed 0, here 7"),
        (["--steps", "1", "--batch", "1", "--checkpoint", path, "--resume"], "steps 1: the checkpoint"),
        (["--checkpoint", str(tmp_path)], "expected a file in a folder"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2 and words in capsys.readouterr().err
        assert Path(path).read_bytes() == data
    Path(path).write_bytes(data[: len(data) // 2])
    with pytest.raises(SystemExit):
        main([*short, "--resume"])
    assert "can't be read (RuntimeError); it is cut short or no checkpoint" in capsys.readouterr().err


def test_a_notebook_is_told_the_same():
    with pytest.raises(RankFailure, match="raised SettingError: batch 0: expected a whole number"):
        run(train, ranks=2, batch=0)
    for told, words in (({"bach": 4}, "option bach: expected one of steps"), ({"batch": "4"}, "batch 4: ")):
        with pytest.raises(SettingError, match=words):
            options_of(told)


def test_help_names_every_option_with_its_default(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert caught.value.code == 0
    for field in dataclasses.fields(Options):
        assert f"--{field.name.replace('_', '-')} " in text, field.name
        if field.default not in (None, False):
            assert f"(default: {field.default})" in text, field.name
    for words in ("--backend", "--timeout", "(default: 200)", "(default: 50)", "torchrun", "seconds"):
        assert words in text


def torchrun(*arguments: str, restarts: int = 0) -> subprocess.Popen:
    """Two ranks of the program. torchrun is given the local address: the host's name may not resolve."""
    launch = ["torch.distributed.run", "--standalone", "--local-addr=127.0.0.1", "--nproc_per_node=2"]
    command = [sys.executable, "-m", *launch, f"--max-restarts={restarts}", "-m", "helpers.ddp", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(job: subprocess.Popen) -> tuple[str, str]:
    """What a job wrote; one that hangs is ended with its ranks, and fails the test."""
    try:
        return job.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        for process in [*psutil.Process(job.pid).children(recursive=True), job]:
            process.kill()
        raise


def test_torchrun_restarts_killed_ranks_and_ends_with_the_bits_of_a_cell(tmp_path):
    path = tmp_path / "c.pt"
    keep = ["--checkpoint", str(path), "--checkpoint-every", "5", "--resume"]
    job = torchrun("--steps", "80", "--batch", "2", "--accumulate", "2", *keep, restarts=1)
    while not path.exists() and job.poll() is None:
        time.sleep(0.01)
    max(psutil.Process(job.pid).children(), key=lambda process: process.create_time()).kill()
    out, err = ended(job)
    assert job.returncode == 0 and "(exitcode: -9)" in err, err
    assert "c.pt: not there yet, nothing done" in out and "c.pt: done to step" in out
    assert out.count("2 ranks, float64; no GPU: 2 on the CPU with gloo") == 2
    assert "replicas with the bits of rank 0: 2 of 2" in out and out.count("step 80: loss") == 1
    cell = digests(train, ranks=2, steps=80, batch=2, accumulate=2)
    assert f"sha256 {cell[0]}" in out and cell[0] == cell[1]


def test_under_torchrun_a_mistake_is_told_once(tmp_path):
    (tmp_path / "c.pt").write_bytes(b"not a checkpoint")
    job = torchrun("--checkpoint", str(tmp_path / "c.pt"), "--resume")
    out, err = ended(job)
    assert job.returncode != 0 and out == ""
    said = [line for line in err.splitlines() if line.startswith("python -m helpers.ddp")]
    assert len(said) == 1 and "can't be read" in said[0]


def test_alone_it_is_one_rank(capsys):
    assert main(["--steps", "5", "--expect-ranks", "1"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("1 rank, float64; no GPU") and "1 of 1" in shown
    assert digests(train, ranks=1, steps=5)[0] in shown


def test_no_speed_is_told_where_there_is_none(capsys):
    assert main(["--steps", "1", "--batch", "1"]) == 0
    shown = capsys.readouterr().out
    assert "step 1: loss" in shown and "nan" not in shown and "windows/s" not in shown


def test_the_loss_of_a_later_step_shows_whether_gradients_are_averaged_the_first_does_not():
    options = {"ranks": 2, "steps": 10, "backend": "gloo", "timeout": TIMEOUT}
    together, apart = (run(f, **options)[0]["losses"] for f in (train, train_unsynchronised))
    assert together[1] == apart[1] and together[10] < apart[10]


# A script of one's own

# What runs the script and then writes down the parameters of every rank.
EVERY_RANK = """
import os, runpy, sys, torch
told = runpy.run_path(sys.argv[1])
torch.save(told["model"].state_dict(), os.environ["RANK"] + ".pt")
"""


def trained_alone() -> torch.nn.Module:
    """What book/framework/recipes/train_ddp.py trains on two ranks with 8 samples each, on one with 16."""
    torch.manual_seed(0)
    x, y = torch.randn(64, 8), torch.randn(64, 1)
    model = torch.nn.Linear(8, 1)
    for epoch in range(2):
        order = torch.randperm(64, generator=torch.Generator().manual_seed(epoch))  # as the sampler does it
        for batch in order.split(16):
            model.zero_grad()
            (model(x[batch]) - y[batch]).square().mean().backward()
            for parameter in model.parameters():
                parameter.data -= 0.1 * parameter.grad
    return model


def test_the_script_for_torchrun_trains_replicas_that_agree_and_do_what_one_process_does(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    own = {"PYTHONPATH": str(ROOT), "GLOO_SOCKET_IFNAME": loopback() or ""}
    how = ["--standalone", "--local-addr=127.0.0.1", "--nproc-per-node=2", "--no-python"]
    script = str(ROOT / "book" / "framework" / "recipes" / "train_ddp.py")
    ended = launch([[*how, sys.executable, "-c", EVERY_RANK, script]], TIMEOUT, own)[0]
    assert ended.status == 0, ended.err
    saved = [torch.load(name, weights_only=True) for name in ("0.pt", "1.pt", "model.pt")]
    assert all(state.keys() == {"weight", "bias"} for state in saved)
    for name, expected in trained_alone().state_dict().items():
        assert all(torch.equal(state[name], saved[0][name]) for state in saved)
        assert torch.allclose(saved[0][name], expected, rtol=1e-5, atol=1e-6)


# Where and on what


@pytest.mark.parametrize(
    ("wanted", "local", "gpus", "nccl", "expected"),
    [
        ("auto", 4, 0, False, "gloo"),
        ("auto", 4, 4, True, "nccl"),
        ("auto", 1, 1, True, "nccl"),
        ("auto", 4, 2, True, "gloo"),
        ("auto", 4, 4, False, "gloo"),
        ("gloo", 4, 8, True, "gloo"),
        ("nccl", 8, 8, True, "nccl"),
        ("nccl", 8, 4, True, "backend nccl: 8 ranks but 4 GPUs here"),
        ("nccl", 2, 4, False, "backend nccl: this torch has no NCCL"),
        ("nccl", 2, 0, True, "backend nccl: no GPU here; expected gloo or auto"),
    ],
)
def test_the_backend_follows_from_what_the_node_has(wanted, local, gpus, nccl, expected):
    here, machine = Place(5, 16, 1, local), Machine(gpus, nccl)
    if expected in ("gloo", "nccl"):
        assert backend_of(wanted, here, machine)[0] == expected
    else:
        with pytest.raises(SettingError, match=expected):
            backend_of(wanted, here, machine)


def test_the_place_comes_from_torchrun_or_is_the_only_one():
    told = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    assert place(told | {"MASTER_ADDR": "a", "MASTER_PORT": "1"}) == (5, 8, 1, 4)
    assert place({"LOCAL_RANK": "0", "MASTER_ADDR": "a"}) is None
    with pytest.raises(SettingError, match="environment: MASTER_ADDR, MASTER_PORT not set"):
        place(told)
    with pytest.raises(SettingError, match="environment: RANK is abc"):
        place(told | {"RANK": "abc", "MASTER_ADDR": "a", "MASTER_PORT": "1"})


def test_a_bar_needs_tqdm_a_terminal_and_permission(monkeypatch, capsys):
    class Bar:
        def __init__(self, **told):
            self.told, self.moved, self.lines = told, 0, []

        def update(self):
            self.moved += 1

        def write(self, line):
            self.lines.append(line)

        def close(self):
            self.moved = -1

    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", types.SimpleNamespace(tqdm=Bar))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert Progress(0, 10, 2).bar is None
    monkeypatch.delenv("TQDM_DISABLE")
    assert Progress(1, 10, 2).bar is None
    progress = Progress(0, 10, 2)
    progress.advance()
    progress.say("a line")
    assert (progress.bar.told["initial"], progress.bar.moved, progress.bar.lines) == (2, 1, ["a line"])
    progress.close()
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    progress = Progress(0, 10, 2)
    progress.say("another")
    assert progress.bar is None and capsys.readouterr().out == "another\n"
