"""A live control for the chapter on scaling: cards, batch, wire and buckets in; step and efficiency out."""

import ipywidgets as widgets

from helpers.controls.live import LiveControl
from helpers.cost import price
from helpers.scaling.step_time import TOKENS, step

REGIMES = ("weak: 4 sequences a card", "strong: 256 sequences in all")
COSTS = {"ring": price.ring, "halving-doubling": price.halving_doubling}


def describe(
    cards: int, regime: str, alpha: float = 20.0, gigabytes: float = 50.0, cap: int = 25, by: str = "ring"
) -> str:
    """The step of `cards` cards as a small table in HTML, with a sentence on what it means.

    regime: of REGIMES; alpha: microseconds a message; gigabytes: a second and port; cap: DDP's bucket cap in
    MiB; by: of COSTS. Raises ValueError for another regime or algorithm, and as
    helpers.scaling.step_time.step does.
    """
    for name, value, known in (("regime", regime, REGIMES), ("by", by, tuple(COSTS))):
        if value not in known:
            raise ValueError(f"{name}={value!r}: expected one of {known}")
    tokens = TOKENS if regime == REGIMES[0] else TOKENS * 64 / cards
    found = step(cards, tokens, alpha * 1e-6, gigabytes * 1e9, None if cap == 25 else cap, COSTS[by])
    rows = {
        "computing": f"{found.compute:.3f} s",
        "sending": f"{found.sending:.3f} s",
        "of it exposed": f"{found.exposed:.3f} s",
        "step": f"{found.seconds:.3f} s",
        "efficiency": f"{found.efficiency:.2f}",
        "speed-up": f"{cards * found.efficiency:,.0f} on {cards:,} cards",
    }
    body = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items())
    head = f"<p>{cards:,} cards, {regime}, {alpha:g} µs, {gigabytes:g} GB/s, cap {cap} MiB, {by}</p>"
    idle = cards * (1 - found.efficiency)
    return f"{head}<table><tbody>{body}</tbody></table><p>As if {idle:,.1f} cards did nothing.</p>"


def scaling(cards: int = 256, regime: str = REGIMES[1]) -> LiveControl:
    """Controls for everything that `describe` takes, and what becomes of the step."""
    controls = [
        widgets.SelectionSlider(options=[2**n for n in range(12)], value=cards, description="cards"),
        widgets.Dropdown(options=REGIMES, value=regime, description="batch"),
        widgets.FloatSlider(20.0, min=0, max=40, step=1, description="alpha, µs"),
        widgets.SelectionSlider(options=[12.5, 25.0, 50.0, 100.0, 400.0], value=50.0, description="GB/s"),
        widgets.SelectionSlider(options=[1, 25, 100, 400, 1600, 16_000], value=25, description="cap, MiB"),
        widgets.Dropdown(options=list(COSTS), value="ring", description="AllReduce"),
    ]
    text = widgets.HTML(describe(cards, regime))

    def update(_change) -> None:
        text.value = describe(*(control.value for control in controls))

    for control in controls:
        control.observe(update, names="value")
    return LiveControl(widgets.VBox([*controls, text]), describe(cards, regime), "A step on many cards")
