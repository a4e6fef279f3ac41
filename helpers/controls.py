"""Live controls: sliders with Python behind them in JupyterLab, a picture of the same numbers on the site."""

from fractions import Fraction

import ipywidgets as widgets


class LiveControl:
    """A widget that also knows how to stand still.

    Where a kernel runs the widget is shown; everywhere else (the site, GitHub) its `picture`.
    """

    def __init__(self, widget: widgets.Widget, picture: str, name: str):
        self.widget, self.picture, self.name = widget, picture, name

    def __repr__(self) -> str:
        return f"{self.name} (move the sliders in JupyterLab)"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        note = "<p><em>Open this page in JupyterLab to change these numbers.</em></p>"
        view = self.widget._repr_mimebundle_(**kwargs)
        return {
            **{kind: data for kind, data in view.items() if kind.endswith("widget-view+json")},
            "text/plain": repr(self),
            "text/html": f'<div class="live-control">{self.picture}{note}</div>',
        }


def two_means(tokens: list[int], loss_sums: list[float]) -> dict:
    """Both means of two ranks in exact arithmetic, and what one token weighs beside what it should.

    Raises ValueError for a rank without tokens: its own mean does not exist.
    """
    if min(tokens) < 1:
        raise ValueError(f"tokens={tokens}: expected at least one token on every rank")
    means = [Fraction(s) / n for s, n in zip(loss_sums, tokens, strict=True)]
    everyone = Fraction(sum(map(Fraction, loss_sums))) / sum(tokens)
    return {
        "own": means,
        "mean of means": sum(means) / len(means),
        "token mean": everyone,
        "weight": [Fraction(sum(tokens), len(tokens) * n) for n in tokens],
    }


def describe(tokens: list[int], loss_sums: list[float]) -> str:
    """The numbers of `two_means` as a small table in HTML, with a sentence on whether and why they agree."""
    found = two_means(tokens, loss_sums)
    rows = "".join(
        _row(rank, n, f"{s:g}", f"{float(own):.4g}", f"{float(w):.4g}")
        for rank, (n, s, own, w) in enumerate(
            zip(tokens, loss_sums, found["own"], found["weight"], strict=True)
        )
    )
    head = _row("rank", "tokens", "loss sum", "own mean", "weight of a token / right weight", cell="th")
    return (
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        f"<p>mean of means <b>{float(found['mean of means']):.4g}</b>, "
        f"mean over all tokens <b>{float(found['token mean']):.4g}</b>: {_verdict(tokens, found)}</p>"
    )


def _row(*values, cell: str = "td") -> str:
    return f"<tr>{''.join(f'<{cell}>{value}</{cell}>' for value in values)}</tr>"


def _verdict(tokens: list[int], found: dict) -> str:
    if found["mean of means"] != found["token mean"]:
        ratio = max(found["weight"]) / min(found["weight"])
        return f"they differ; a token of the short rank weighs {float(ratio):.4g} times one of the long rank."
    if len(set(tokens)) == 1:
        return "they agree, because both ranks hold the same number of tokens."
    return "they agree, because both ranks happen to have the same mean."


def unequal_tokens(
    tokens: tuple[int, int] = (100, 300), loss_sums: tuple[float, float] = (250, 600)
) -> LiveControl:
    """Sliders for the tokens and loss sums of two ranks, and what becomes of both means."""
    counts = [widgets.IntSlider(n, 1, 400, description=f"tokens {r}") for r, n in enumerate(tokens)]
    sums = [
        widgets.FloatSlider(s, min=0, max=1000, step=10, description=f"loss sum {r}")
        for r, s in enumerate(loss_sums)
    ]
    text = widgets.HTML(describe(list(tokens), list(loss_sums)))

    def update(_change) -> None:
        text.value = describe([c.value for c in counts], [s.value for s in sums])

    for slider in (*counts, *sums):
        slider.observe(update, names="value")
    widget = widgets.VBox([widgets.HBox([c, s]) for c, s in zip(counts, sums, strict=True)] + [text])
    return LiveControl(widget, describe(list(tokens), list(loss_sums)), "Unequal tokens on two ranks")
