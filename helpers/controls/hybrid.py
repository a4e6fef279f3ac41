"""The planner as a live control: choose a model and a grid, read whether it fits and what each axis moves."""

import ipywidgets as widgets

from helpers.controls.live import LiveControl
from helpers.hybrid.planner import Job, Machine, Plan, plan
from helpers.memory.needed import FP32_GRADIENTS
from helpers.models import LLAMA3_8B, LLAMA3_70B, LLAMA3_405B

MODELS = {"Llama 3 8B": LLAMA3_8B, "Llama 3 70B": LLAMA3_70B, "Llama 3 405B": LLAMA3_405B}
TOKENS = 2**24  # of a step: 16M, as in the table of the Llama 3 paper
START = dict(model="Llama 3 405B", gpus=16_384, tp=8, cp=1, pp=16, zero=1, memory=80, sequence=8192)


def ask(model: str, gpus: int, tp: int, cp: int, pp: int, zero: int, memory: int, sequence: int) -> Plan:
    """The plan for these settings; dp is what is left. memory: GB a GPU; sequence: tokens."""
    job = Job(MODELS[model], sequence, TOKENS // sequence, recipe=FP32_GRADIENTS, stage=zero)
    return plan(job, Machine(gpus, memory=memory * 1e9), tp=tp, cp=cp, pp=pp)


def describe(found: Plan, memory: int) -> str:
    """A plan as HTML: the verdict, and a table of the axes where there is one."""
    verdict = "It fits." if found.fits else f"No. {'; '.join(found.reasons)}."
    text = f"<p><b>{verdict}</b></p>"
    if not found.memory:
        return text
    rows = "".join(
        f"<tr><td>{axis}</td><td>{size}</td><td>{found.sent[axis] / 1e9:.2f}</td>"
        f"<td>{found.seconds[axis]:.3f}</td></tr>"
        for axis, size in found.sizes.items()
    )
    head = "".join(f"<th>{word}</th>" for word in ("axis", "ranks", "GB sent", "seconds"))
    held = ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in found.memory.items())
    return (
        f"{text}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        f"<p>Fullest GPU: {held}, of {memory} GB. {found.micro_batches} micro-batches, "
        f"bubble {float(found.bubble):.0%} of {found.compute:.2f} s of work.</p>"
    )


def control() -> LiveControl:
    """Choices for model, GPUs, grid, ZeRO, memory and sequence, and the planner's answer below."""
    choices = {
        "model": list(MODELS),
        "gpus": [2**i for i in range(15)],
        "tp": [1, 2, 4, 8, 16],
        "cp": [1, 2, 4, 8, 16],
        "pp": [1, 2, 4, 8, 16, 32],
        "zero": [0, 1, 2, 3],
        "memory": [40, 80, 141, 192],
        "sequence": [2048, 8192, 32_768, 131_072],
    }
    names = {"gpus": "GPUs", "zero": "ZeRO stage", "memory": "GB a GPU"}
    boxes = {
        name: widgets.Dropdown(options=options, value=START[name], description=names.get(name, name))
        for name, options in choices.items()
    }

    def answer() -> str:
        settings = {name: box.value for name, box in boxes.items()}
        return describe(ask(**settings), settings["memory"])

    text = widgets.HTML(answer())

    def update(_change) -> None:
        text.value = answer()

    for box in boxes.values():
        box.observe(update, names="value")
    rows = list(boxes.values())
    lines = [widgets.HBox(rows[i : i + 2]) for i in range(0, len(rows), 2)]
    shown = ", ".join(f"{names.get(name, name)} {value}" for name, value in START.items())
    picture = f"<p>{shown}</p>{describe(ask(**START), START['memory'])}"
    return LiveControl(widgets.VBox([*lines, text]), picture, "The planner")
