"""A memory calculator: choose a model, a recipe, a stage of ZeRO, and see what a card has left.

It counts states and activations only, and takes a card at its name, as helpers.hybrid.planner does.
Activations peak where the backward pass begins, gradients where it ends, so their sum is an upper bound. It
is reached where gradients lie in DDP's buckets, which stay, or accumulate over micro-batches.
"""

import ipywidgets as widgets

from helpers.controls.live import LiveControl, row
from helpers.memory.needed import CARDS, CUT_FROM, RECIPES, llama_activations, states_by_part
from helpers.models import LLAMA3_8B, LLAMA3_70B, LLAMA3_405B

MODELS = {"Llama 3 8B": LLAMA3_8B, "Llama 3 70B": LLAMA3_70B, "Llama 3 405B": LLAMA3_405B}
KEPT = {
    "with the scores": "scores",
    "without the scores": "no scores",
    "the layers' inputs": "inputs",
}
NAMES = {recipe.name: recipe for recipe in RECIPES}
RANKS = [2**power for power in range(11)]
SEQUENCES = [2**power for power in range(10, 18)]


def describe(model: str, recipe: str, stage: int, ranks: int, kept: str, sequence: int, card: str) -> str:
    """What the fullest rank holds, part by part in decimal GB, and what the card has left: HTML.

    model, recipe, kept and card: names of MODELS, RECIPES, KEPT and CARDS. sequence: tokens, in a micro-batch
    of one. Activations are those of helpers.memory.needed.llama_activations.
    Raises ValueError for other names.
    """
    menus = {"model": (model, MODELS), "recipe": (recipe, NAMES), "kept": (kept, KEPT), "card": (card, CARDS)}
    for argument, (name, known) in menus.items():
        if name not in known:
            raise ValueError(f"{argument}={name!r}: expected one of {', '.join(known)}")
    held = states_by_part(MODELS[model].parameters, NAMES[recipe], ranks, stage)
    rows = ""
    for name, size in held.items():
        cut = f"1/{ranks}" if stage >= CUT_FROM.get(name, stage + 1) else "all"
        rows += row(name, NAMES[recipe].parts()[name], cut, f"{size / 1e9:,.2f}")
    active = llama_activations(MODELS[model], sequence, KEPT[kept])
    working = ", a layer at work" if KEPT[kept] == "inputs" else ""
    rows += row("activations", "", kept + working, f"{active / 1e9:,.2f}")
    needed, room = sum(held.values()) + active, CARDS[card]
    late = held["gradients"] + held.get("main gradients", 0)
    least = max(needed - active, needed - late)  # no gradient yet when activations peak
    if needed <= room:
        verdict = f"{(room - needed) / 1e9:,.2f} GB left</b> for logits, gathered layers and the rest"
    elif least <= room:
        verdict = f"may fit</b>: {least / 1e9:,.2f} GB if there are no gradients when activations peak"
    else:
        verdict = f"does not fit</b>, at least {(least - room) / 1e9:,.2f} GB missing"
    head = row("what", "bytes a parameter", "held", "GB", cell="th")
    return (
        f"<p>{model}, {recipe}, ZeRO stage {stage}, {ranks} GPU(s), {sequence:,} tokens</p>"
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        f"<p>States and activations alone: at most <b>{needed / 1e9:,.2f} GB</b> of {card}, <b>{verdict}.</p>"
    )


def calculator(
    model: str = "Llama 3 8B",
    recipe: str = "mixed-precision Adam",
    stage: int = 0,
    ranks: int = 64,
    kept: str = "without the scores",
    sequence: int = 8192,
    card: str = "80 GB",
) -> LiveControl:
    """Menus for all arguments of `describe`, and its table below them."""
    chosen = {
        "model": widgets.Dropdown(options=list(MODELS), value=model, description="model"),
        "recipe": widgets.Dropdown(options=list(NAMES), value=recipe, description="recipe"),
        "stage": widgets.ToggleButtons(options=[0, 1, 2, 3], value=stage, description="ZeRO"),
        "ranks": widgets.SelectionSlider(options=RANKS, value=ranks, description="GPUs"),
        "kept": widgets.Dropdown(options=list(KEPT), value=kept, description="activations"),
        "sequence": widgets.SelectionSlider(options=SEQUENCES, value=sequence, description="tokens"),
        "card": widgets.Dropdown(options=list(CARDS), value=card, description="card"),
    }

    def told() -> str:
        return describe(**{name: control.value for name, control in chosen.items()})

    text = widgets.HTML(told())

    def update(_change) -> None:
        text.value = told()

    for control in chosen.values():
        control.observe(update, names="value")
    return LiveControl(widgets.VBox([*chosen.values(), text]), told(), "A memory calculator")
