"""What the chapter on memory promises, held without the chapter."""

from fractions import Fraction
from itertools import product
from weakref import finalize

import pytest
import torch
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.functional import scaled_dot_product_attention
from torch.optim import AdamW
from torch.utils.checkpoint import checkpoint

from helpers.controls import memory as calculator
from helpers.llama.shards import layer_activations
from helpers.memory import held
from helpers.memory import needed as memory
from helpers.memory.gpt_layer import GPTLayer
from helpers.memory.master_weights import MasterAdamW
from helpers.memory.needed import RECIPES, activation_bytes, llama_activations, state_bytes
from helpers.models import LLAMA3_8B, LLAMA3_405B
from helpers.processes import run
from helpers.ranks import memory as on_ranks

# Megatron's own table, docs/user-guide/features/dist_optimizer.md: whole, and what d ranks hold of it.
MEGATRON = {
    memory.MEGATRON_16: (20, lambda d: 4 + Fraction(16, d)),
    memory.FP32_GRADIENTS: (18, lambda d: 6 + Fraction(12, d)),
    memory.FP32: (16, lambda d: 8 + Fraction(8, d)),
}


@pytest.mark.parametrize("recipe", MEGATRON, ids=lambda recipe: recipe.name)
@pytest.mark.parametrize("d", (1, 4, 64))
def test_stage_1_is_megatrons_distributed_optimizer(recipe, d):
    whole, cut = MEGATRON[recipe]
    assert recipe.bytes_a_parameter == whole
    assert state_bytes(6400, recipe, d, stage=1) == 6400 * cut(d)


def test_stages_of_mixed_precision_are_those_of_the_paper():
    """Rajbhandari et al. 2020, Figure 1, 7.5 billion parameters on 64 ranks, and a trillion on 1,024."""
    found = [state_bytes(7_500_000_000, memory.MIXED, 64, stage) / 1e9 for stage in range(4)]
    assert [f"{size:.1f}" for size in found] == ["120.0", "31.4", "16.6", "1.9"]
    assert state_bytes(10**12, memory.MIXED, 1024, stage=3) == 15_625_000_000


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_a_rank_holds_at_least_its_share_and_never_more_with_a_later_stage(recipe):
    for parameters, k in product((1, 7, 1000), (1, 2, 3, 8)):
        sizes = [state_bytes(parameters, recipe, k, stage) for stage in range(4)]
        assert sizes == sorted(sizes, reverse=True)
        whole = recipe.bytes_a_parameter * parameters
        assert sizes[0] == whole and sizes[3] * k >= whole - recipe.buckets * parameters


WRONG_STATES = (
    dict(parameters=0),
    dict(parameters=1.5),
    dict(ranks=0),
    dict(ranks=True),
    dict(stage=4),
    dict(stage=True),
    dict(recipe="8-bit Adam"),
)


@pytest.mark.parametrize("wrong", WRONG_STATES, ids=str)
def test_states_refuse_what_cannot_be(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        state_bytes(**dict(parameters=8, recipe=memory.MIXED) | wrong)


@pytest.mark.parametrize("k", (4, 64))
def test_only_stages_with_ddp_have_its_buckets_and_they_are_never_cut(k):
    for with_buckets, without in ((memory.MIXED_DDP, memory.MIXED), (memory.FP32_DDP, memory.FP32)):
        more = [state_bytes(640, with_buckets, k, s) - state_bytes(640, without, k, s) for s in range(4)]
        assert more == [640 * without.gradients] * 2 + [0, 0]


def test_eight_bit_adam_keeps_a_byte_a_moment_and_a_scale_a_block():
    """Counted from moments that are really cut in blocks of 256 and rounded; the rest is mixed Adam's."""
    found = {}
    for name in ("first moment", "second moment"):
        blocks = torch.randn(64, 256)
        scales = blocks.abs().amax(1, keepdim=True)
        found[name] = held.pieces([(blocks / scales * 127).to(torch.int8), scales])
    sizes = {name: sorted(each.values()) for name, each in found.items()}
    P = 64 * 256
    assert sizes == dict.fromkeys(found, [P * 4 // 256, P])
    parts = memory.ADAM_8BIT.parts()
    assert parts == memory.MIXED.parts() | {"first moment": 1, "second moment": 1}
    assert parts == {"weights": 2, "gradients": 2, "master weights": 4} | dict.fromkeys(found, 1)
    with_scales = state_bytes(LLAMA3_8B.parameters, memory.ADAM_8BIT) + LLAMA3_8B.parameters / 32
    assert f"{with_scales / 1e9:.2f}" == "80.55"


@pytest.mark.parametrize("wrong", (dict(heads=3), dict(batch=0), dict(keep="all")), ids=str)
def test_activations_refuse_what_cannot_be(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        activation_bytes(**dict(sequence=8, batch=1, width=16, heads=4) | wrong)


@pytest.mark.parametrize("wrong", (dict(tokens=0), dict(keep="all")), ids=str)
def test_activations_of_llama_refuse_what_cannot_be(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        llama_activations(**dict(model=LLAMA3_8B, tokens=8) | wrong)


def test_activations_are_table_2_of_the_paper():
    s, b, h, a = 2048, 4, 4096, 32
    factors = {"scores": 34 + Fraction(5 * a * s, h), "no scores": 34, "inputs": 2}
    for keep, factor in factors.items():
        assert activation_bytes(s, b, h, a, keep) == s * b * h * factor


def test_scores_of_a_llama_are_two_bytes_for_each_head_and_pair_of_tokens():
    """What attention saves with the softmax written out, beyond what flash attention saves."""
    heads, groups, s, width = 8, 2, 48, 16
    q = torch.randn(1, heads, s, width).bfloat16().requires_grad_()
    k, v = (torch.randn(1, groups, s, width).bfloat16().requires_grad_() for _ in "kv")

    def written_out():
        mine = q.view(groups, heads // groups * s, width)
        return (mine @ k[0].transpose(1, 2)).softmax(-1) @ v[0]

    def flash():
        return scaled_dot_product_attention(q, k, v, enable_gqa=True)

    nothing = torch.nn.Identity()
    sizes = [sum(held.pieces(held.saved_by(f, nothing)).values()) for f in (written_out, flash)]
    row_sums, out = 4 * heads * s, 2 * heads * s * width  # flash keeps these too; `out` feeds the next matrix
    assert sizes[0] - (sizes[1] - row_sums - out) == 2 * heads * s**2
    more = llama_activations(LLAMA3_8B, s, "scores") - llama_activations(LLAMA3_8B, s)
    assert more == LLAMA3_8B.layers * 2 * 32 * s**2


@pytest.mark.parametrize("layers", (1, 4))
def test_recomputation_holds_the_inputs_and_one_layer_at_work(layers):
    """The most that autograd keeps alive at once, forward and backward, as hooks see it come and go."""
    s, b, h, a = 16, 1, 32, 2
    stack = [GPTLayer(h, a) for _ in range(layers)]
    own = {place for layer in stack for place in held.pieces(layer.parameters())}
    alive, most = {}, [0]

    class Kept:
        def __init__(self, tensor):
            self.tensor, self.place = tensor, next(iter(held.pieces([tensor])))
            size, users = alive.get(self.place, (held.pieces([tensor])[self.place], 0))
            alive[self.place] = size, users + 1
            most[0] = max(most[0], sum(n for place, (n, _) in alive.items() if place not in own))
            finalize(self, gone, self.place)

    def gone(place):
        size, users = alive.pop(place)
        if users > 1:
            alive[place] = size, users - 1

    x = torch.randn(s, b, h).bfloat16().requires_grad_()
    with saved_tensors_hooks(Kept, lambda kept: kept.tensor):
        for layer in stack:
            x = checkpoint(layer, x, use_reentrant=True)
        x.backward(torch.ones_like(x))
    one_input = activation_bytes(s, b, h, a, "inputs")
    at_work = activation_bytes(s, b, h, a) + 8 * s * b
    assert most[0] == layers * one_input + at_work - one_input
    formula = llama_activations(LLAMA3_8B, 64, "inputs")
    rest = layer_activations(LLAMA3_8B, 64) - 2 * 64 * 4096
    assert formula == 32 * 2 * 64 * 4096 + rest


@pytest.mark.parametrize("s, b, h, a", ((16, 1, 32, 4), (48, 3, 32, 2), (33, 2, 24, 3)))
@pytest.mark.parametrize("flash", (False, True))
def test_a_layer_saves_what_the_formula_says_and_the_norms_statistics(s, b, h, a, flash):
    layer = GPTLayer(h, a, flash=flash)
    x = torch.randn(s, b, h).bfloat16().requires_grad_()
    statistics = 4 * s * b * 2 + (4 * a * s * b if flash else 0)
    expected = activation_bytes(s, b, h, a, "no scores" if flash else "scores") + statistics
    assert sum(held.pieces(held.saved_by(lambda: layer(x), layer)).values()) == expected


def test_shared_memory_counts_once():
    x = torch.zeros(6)
    assert held.bytes_of({"a": [x, x[2:]], "b": [x.view(2, 3), torch.zeros(1)]}) == {"a": 24, "b": 4}


def test_newborn_tensors_are_all_found():
    old = torch.zeros(5)
    with held.newborn() as new:
        kept = [torch.zeros(7), old[1:], torch.zeros(3, requires_grad=True)]
        kept[2].sum().backward()
        del kept[0]
    assert sum(new.values()) == 4 * (5 + 3 + 3)  # a view is new, and brings its memory


@pytest.mark.parametrize("gradients", ("passing", "copied", "accumulated"))
def test_master_weights_are_adamw_in_fp32(gradients):
    """Same updates as AdamW on FP32 weights given the same gradients; the model holds them rounded."""
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 8).bfloat16()
    alone = [weight.detach().float() for weight in model.parameters()]
    update, reference = MasterAdamW(model, gradients), AdamW(alone)
    for _ in range(3):
        update.zero_grad()
        model(torch.randn(4, 8).bfloat16()).pow(2).sum().backward()
        for other, weight, master in zip(alone, update.weights, update.master, strict=True):
            other.grad = (master if weight.grad is None else weight).grad.float()
        update.step()
        reference.step()
    for other, weight, master in zip(alone, update.weights, update.master, strict=True):
        assert master.equal(other) and weight.equal(other.bfloat16())


def test_fp32_copies_of_all_gradients_at_once_are_seen(monkeypatch):
    """They are gone after the step, and so is the difference between 16 bytes a parameter and 20."""

    def step(self):
        for weight, master in zip(self.weights, self.master, strict=True):
            master.grad = weight.grad.float()
        for master, adam in zip(self.master, self.adams, strict=True):
            adam.step()
            master.grad = None

    alone = held.after_a_step(torch.bfloat16, "passing")
    monkeypatch.setattr(MasterAdamW, "step", step)
    together = held.after_a_step(torch.bfloat16, "passing")
    assert together["parts"] == alone["parts"] and together["new"] == alone["new"]
    assert alone["meanwhile"] == 4 * alone["largest"] < together["meanwhile"] == 4 * alone["parameters"]


def test_a_second_moment_in_bf16_stops_falling_where_the_decay_is_slow():
    weight = torch.ones(1, dtype=torch.bfloat16, requires_grad=True)
    update = AdamW([weight], weight_decay=0, betas=(0.9, 0.997))
    for step in range(6000):
        weight.grad = torch.full_like(weight, -1 if step < 1000 else -0.01)
        update.step()
    assert update.state[weight]["exp_avg_sq"].item() == 0.32421875


def test_master_weights_refuse_another_word():
    with pytest.raises(ValueError, match="gradients='kept'"):
        MasterAdamW(torch.nn.Linear(1, 1), "kept")


@pytest.mark.parametrize("rate, end", ((1e-3, 1), (3.5e-3, 1), (4e-3, 2), (1e-2, 4)))
def test_pure_bf16_loses_small_updates(rate, end):
    """The chapter's weight of 1 that is pushed up a thousand times, and the solution of its exercise."""
    weight = torch.ones(1, dtype=torch.bfloat16, requires_grad=True)
    update = AdamW([weight], lr=rate, weight_decay=0)
    for _ in range(1000):
        weight.grad = torch.full_like(weight, -1)
        update.step()
    assert weight.item() == end


def test_sgd_with_momentum_takes_twelve_bytes():
    momentum = memory.Recipe("SGD with momentum", 2, 2, 4, 4)
    assert momentum.bytes_a_parameter == 12
    assert f"{state_bytes(LLAMA3_8B.parameters, momentum) / 1e9:.1f}" == "96.4"


@pytest.mark.parametrize("k", (2, 4))
def test_sharded_states_are_those_of_stage_3(k):
    for parts, _, parameters in run(on_ranks.states, ranks=k, backend="gloo", shard=True):
        assert sum(parts.values()) == state_bytes(parameters, memory.MIXED, k, stage=3)


def test_without_averaging_parameters_and_moments_part():
    one, other = run(on_ranks.replicas, ranks=2, backend="gloo", sync=False)
    assert one.keys() == other.keys() and [name for name in one if one[name].equal(other[name])] == []


def test_the_calculator_follows_every_menu():
    control = calculator.calculator()
    *menus, text = control.widget.children
    assert text.value == control.picture and "does not fit" in text.value
    stage = next(menu for menu in menus if menu.description == "ZeRO")
    stage.value = 3
    assert "GB left" in text.value
    seen = {text.value}
    for menu in menus:
        menu.value = next(option for option in menu.options if option != menu.value)
        assert text.value not in seen, menu.description
        seen.add(text.value)


def test_the_larger_models_have_room_where_the_exercise_says():
    def told(model, ranks, kept, stage=3):
        return calculator.describe(model, memory.MIXED.name, stage, ranks, kept, 8192, "80 GB")

    large = "Llama 3 70B"
    assert "120.80" in told(large, 64, "without the scores")
    rooms = [(stage, "GB left" in told(large, 64, "the layers' inputs", stage)) for stage in range(4)]
    assert rooms == [(0, False), (1, False), (2, False), (3, True)]
    kept = [told(large, 64, kept) for kept in calculator.KEPT]
    assert ["GB left" in text for text in kept] == [False, False, True]
    tight = told("Llama 3 405B", 128, "the layers' inputs")
    assert "at most <b>87.14 GB" in tight and "does not fit" in tight
    assert "<b>18.23 GB left" in told("Llama 3 405B", 256, "the layers' inputs")
    assert LLAMA3_405B.parameters == 405_853_388_800


@pytest.mark.parametrize(
    "card, said", (("80 GB", "at least 57.12 GB missing"), ("141 GB", "may fit</b>: 137.12 GB if"))
)
def test_the_calculator_knows_that_gradients_come_when_activations_go(card, said):
    text = calculator.describe("Llama 3 8B", memory.MIXED.name, 0, 1, "without the scores", 8192, card)
    assert "at most <b>153.18 GB" in text and said in text


def test_the_calculator_shows_buckets_where_ddp_has_them():
    for stage in range(4):
        text = calculator.describe(
            "Llama 3 8B", memory.MIXED_DDP.name, stage, 64, "without the scores", 8192, "80 GB"
        )
        assert ("<td>buckets</td><td>2</td><td>all</td><td>16.06</td>" in text) == (stage < 2)


@pytest.mark.parametrize("argument", ("model", "recipe", "kept", "card"))
def test_the_calculator_refuses_what_is_on_no_menu(argument):
    known = dict(model="Llama 3 8B", recipe="pure BF16 AdamW", kept="the layers' inputs", card="80 GB")
    with pytest.raises(ValueError, match=f"{argument}='x': expected"):
        calculator.describe(stage=0, ranks=1, sequence=1024, **known | {argument: "x"})
