"""The promise: 2.25 and 2.125 come out of a real DDP run over 400 tokens, and the chapter shows them."""

import math
from fractions import Fraction

import nbformat
import pytest
import torch
from notebooks import ROOT, chapters

from helpers import text
from helpers.average.token_loss import (
    ALL_TOKENS,
    OWN_MEAN,
    TOKEN_MEAN,
    mean_of_means,
    scale_loss,
    spread,
    token_mean,
)
from helpers.byte_model import ByteModel
from helpers.controls import idea as controls
from helpers.processes import run
from helpers.ranks import accumulation, optimizers, unequal_tokens, who_divides

SHARDS = [spread(100, 250), spread(300, 600)]


def test_the_losses_are_what_the_source_says():
    assert [(len(shard), sum(shard)) for shard in SHARDS] == [(100, 250), (300, 600)]
    assert all(loss != sum(shard) / len(shard) for shard in SHARDS for loss in shard), "not 400 equal numbers"


@pytest.mark.parametrize(
    ("recipe", "expected"), [(OWN_MEAN, 2.25), (TOKEN_MEAN, 2.125), (ALL_TOKENS, 1.0625)], ids=str
)
def test_ddp_computes_2_25_and_2_125(recipe, expected):
    assert (
        run(unequal_tokens.gradient, ranks=2, backend="gloo", shards=SHARDS, recipe=recipe) == [expected] * 2
    )


def test_the_chapter_shows_2_25_and_2_125():
    chapter = nbformat.read(ROOT / "book" / "idea" / "unequal-tokens.ipynb", 4)
    cells = {
        tag: cell
        for cell in chapter.cells
        for tag in cell.metadata.get("tags", [])
        if "claim" in cell.metadata.tags
    }
    printed = cells["A-27"].outputs[0].text
    assert "[2.25, 2.25]" in printed and "[2.125, 2.125]" in printed
    assert (
        "on_cpu(unequal_tokens.gradient" in cells["A-27"].source and "check_gradient(" in cells["A-27"].source
    )


def test_exact_means():
    assert mean_of_means(SHARDS) == Fraction(9, 4) and token_mean(SHARDS) == Fraction(17, 8)


@pytest.mark.parametrize("ranks", (2, 3, 4, 5))
def test_leaving_out_k_shrinks_by_exactly_k(ranks):
    shards = [spread(2**r, 3 * 2**r) for r in range(ranks)]
    shards[0] += [1.0] * (2**ranks - sum(map(len, shards)))  # a power of two in all, so that nothing rounds
    (shrunk, *_) = run(unequal_tokens.gradient, ranks=ranks, backend="gloo", shards=shards, recipe=ALL_TOKENS)
    assert float(token_mean(shards)) / shrunk == pytest.approx(ranks, rel=1e-15)


def test_weights_sum_to_one_in_both_recipes_and_differ():
    for recipe, expected in ((OWN_MEAN, (1 / 200, 1 / 600)), (TOKEN_MEAN, (1 / 400, 1 / 400))):
        weights = run(
            unequal_tokens.token_weights, ranks=2, backend="gloo", counts=[100, 300], recipe=recipe
        )[0]
        assert math.fsum(weights) == pytest.approx(1, rel=1e-14)
        assert (weights[0], weights[399]) == pytest.approx(expected, rel=1e-15)


def test_logging_two_ways():
    assert run(unequal_tokens.logged_losses, ranks=2, backend="gloo", shards=SHARDS) == [(2.25, 2.125)] * 2


def test_one_denominator_for_the_window():
    windows = [[spread(3, 6), spread(5, 5)], [spread(1, 4), spread(7, 14)]]
    everything = [sum(window, []) for window in windows]
    call = {"ranks": 2, "backend": "gloo", "windows": windows}
    assert run(accumulation.accumulated, per_window=True, **call) == [float(token_mean(everything))] * 2
    assert run(accumulation.accumulated, per_window=False, **call)[0] != float(token_mean(everything))


def test_a_wrapper_that_divides_has_to_be_compensated_once():
    windows = [[spread(3, 6), spread(5, 5)], [spread(1, 4), spread(7, 14)]]
    mean = float(token_mean([sum(window, []) for window in windows]))
    call = {"ranks": 2, "backend": "gloo", "windows": windows, "per_window": True, "wrapper_divides": 2}
    assert run(accumulation.accumulated, **call) == [mean] * 2
    assert run(accumulation.accumulated, compensate=False, **call) == [mean / 2] * 2


def test_the_lines_to_paste():
    windows = [[spread(3, 6), spread(5, 5)], [spread(1, 4), spread(7, 14)]]
    mean = float(token_mean([sum(window, []) for window in windows]))
    assert run(accumulation.take_home, ranks=2, backend="gloo", windows=windows) == [mean] * 2
    assert run(accumulation.take_home, ranks=2, backend="gloo", windows=[[[]], [[]]]) == [0.0] * 2


@pytest.mark.parametrize(
    ("wrapper", "left"),
    [("DDP", 2.25), ("DDP, summing hook", 4.5), ("fully_shard", 2.25), ("fully_shard, factor 1", 4.5)],
)
def test_who_divides_in_torch(wrapper, left):
    assert (
        run(who_divides.who_divides, ranks=2, backend="gloo", means=[2.5, 2.0], wrapper=wrapper) == [left] * 2
    )


def test_a_rank_without_tokens():
    call = {"ranks": 2, "backend": "gloo", "labels": [[1, 2], [-100, -100]]}
    alone = run(unequal_tokens.without_tokens, ranks=1, backend="gloo", labels=[[1, 2]], recipe=TOKEN_MEAN)[0]
    own, masked, right = (
        run(unequal_tokens.without_tokens, recipe=recipe, **call)
        for recipe in (OWN_MEAN, "mask and divide", TOKEN_MEAN)
    )
    assert math.isnan(own[1]["loss"]) and torch.allclose(
        own[0]["gradient"] * 2, alone["gradient"], rtol=1e-14
    )
    assert all(rank["gradient"].isnan().all() for rank in masked)
    assert all(torch.allclose(rank["gradient"], alone["gradient"], rtol=1e-14) for rank in right)


def test_ddp_divides_before_it_adds():
    assert run(who_divides.halved_where, ranks=2, backend="gloo", value=40000.0) == [(40000.0, math.inf)] * 2
    assert run(who_divides.halved_where, ranks=2, backend="gloo", value=2.0**-24) == [(0.0, 2.0**-24)] * 2


def test_adam_hides_what_sgd_and_clipping_show():
    def moved(**options):
        right, shrunk = (
            run(optimizers.train, ranks=2, backend="gloo", recipe=recipe, steps=10, **options)[0]["weights"]
            for recipe in (TOKEN_MEAN, ALL_TOKENS)
        )
        return float((right - shrunk).abs().max())

    assert moved(optimizer="Adam") == 0.0
    assert 0 < moved(optimizer="Adam", unit=1e-6)
    assert moved(optimizer="SGD") > 0.1 and moved(optimizer="Adam", clip=60.0) > 0.01


def test_samples_in_step():
    call = {"backend": "gloo", "per_micro_batch": 3}
    assert run(accumulation.samples_in_step, ranks=2, micro_batches=5, **call) == [30, 30]
    assert run(accumulation.samples_in_step, ranks=3, micro_batches=1, **call) == [9, 9, 9]


def test_unknown_recipe_is_named():
    with pytest.raises(ValueError, match="recipe='mean'"):
        scale_loss(torch.tensor(1.0), 1, 1, 1, "mean")


def test_the_control_follows_its_sliders():
    control = controls.unequal_tokens()
    (tokens_0, sum_0), (tokens_1, sum_1) = (row.children for row in control.widget.children[:2])
    shown = control.widget.children[2]
    assert "<b>2.25</b>" in shown.value and "<b>2.125</b>" in shown.value and "weighs 3 times" in shown.value
    tokens_0.value = 300
    assert "same number of tokens" in shown.value
    tokens_0.value, sum_0.value = 100, 200
    assert "happen to have the same mean" in shown.value
    tokens_1.value, sum_1.value = 1, 0
    assert "they differ" in shown.value
    bundle = control._repr_mimebundle_()
    assert (
        "JupyterLab" in bundle["text/html"] and "IntSlider" not in str(bundle) and "0x" not in repr(control)
    )


def test_the_control_refuses_a_rank_without_tokens():
    with pytest.raises(ValueError, match="tokens="):
        controls.two_means([0, 3], [1, 1])


def test_the_text_is_checked_and_cut_into_sentences(monkeypatch, tmp_path):
    lines = text.sentences()
    assert len(lines) > 1000 and all(2 <= len(line) <= 400 for line in lines)
    inputs, labels = text.batch([b"abc", b"de"])
    assert inputs.tolist() == [[97, 98], [100, 0]] and labels.tolist() == [[98, 99], [101, text.PADDING]]
    other = tmp_path / "alice.txt"
    other.write_bytes(text.PATH.read_bytes().replace(b"Alice", b"Bob"))
    monkeypatch.setattr(text, "PATH", other)
    with pytest.raises(ValueError, match="git checkout"):
        text.sentences()


def test_the_byte_model_sees_eight_bytes_and_not_the_future():
    torch.manual_seed(0)
    model, line = ByteModel(), torch.arange(20).unsqueeze(0)
    changed = line.clone()
    changed[0, 10] = 99
    moved = (model(line) - model(changed)).abs().sum(-1)[0] > 0
    assert moved.nonzero().flatten().tolist() == list(range(10, 18))
    assert sum(p.numel() for p in model.parameters()) == 41_280


def test_every_chapter_is_found_but_no_copy_that_jupyterlab_keeps(tmp_path):
    assert ROOT / "book" / "idea" / "unequal-tokens.ipynb" in chapters()
    for folder in ("idea", "idea/.ipynb_checkpoints"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "one.ipynb").touch()
    assert chapters(tmp_path) == [tmp_path / "idea" / "one.ipynb"]
