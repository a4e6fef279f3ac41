"""Live controls of the first chapters: two ranks' means, a sampler's deal, a sum cut in two."""

from fractions import Fraction

import ipywidgets as widgets

from helpers.average.sampling import deal, tally
from helpers.controls.live import LiveControl, row


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
        row(rank, n, f"{s:g}", f"{float(own):.4g}", f"{float(w):.4g}")
        for rank, (n, s, own, w) in enumerate(
            zip(tokens, loss_sums, found["own"], found["weight"], strict=True)
        )
    )
    head = row("rank", "tokens", "loss sum", "own mean", "× right weight", cell="th")
    return (
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        f"<p>mean of means <b>{float(found['mean of means']):.4g}</b>, "
        f"mean over all tokens <b>{float(found['token mean']):.4g}</b>: {_verdict(tokens, found)}</p>"
    )


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


def describe_deal(samples: int, ranks: int, drop_last: bool) -> str:
    """What DistributedSampler deals, one row a rank, repeated samples in bold; and the tally in words."""
    dealt = deal(samples, ranks, drop_last)
    drawn = [index for share in dealt for index in share]
    rows = ""
    for rank, share in enumerate(dealt):
        shown = " ".join(f"<b>{i}</b>" if drawn.count(i) > 1 else str(i) for i in share)
        rows += row(rank, shown)
    found = tally(dealt, samples)
    words = f"{found['drawn']} drawn of {samples}: {found['again']} more than once (bold),"
    words += f" {found['never']} never."
    head = row("rank", "samples it draws", cell="th")
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table><p>{words}</p>"


def sampler(samples: int = 10, ranks: int = 4) -> LiveControl:
    """Sliders for the size of the data set and the number of ranks, and a box for drop_last."""
    size = widgets.IntSlider(samples, 1, 40, description="samples")
    group = widgets.IntSlider(ranks, 1, 8, description="ranks")
    drop = widgets.Checkbox(False, description="drop_last")
    text = widgets.HTML(describe_deal(samples, ranks, False))

    def update(_change) -> None:
        text.value = describe_deal(size.value, group.value, drop.value)

    for control in (size, group, drop):
        control.observe(update, names="value")
    widget = widgets.VBox([widgets.HBox([size, group, drop]), text])
    return LiveControl(widget, describe_deal(samples, ranks, False), "What DistributedSampler deals")


def describe_cut(values: list[int], cut: int) -> str:
    """Means of the two shares left and right of a cut, their mean, and the mean of all values."""
    left, right = (Fraction(sum(share), len(share)) for share in (values[:cut], values[cut:]))
    of_means, direct = (left + right) / 2, Fraction(sum(values), len(values))
    agree = "they agree" if of_means == direct else "they differ"
    rows = row(0, values[:cut], f"{float(left):.4g}") + row(1, values[cut:], f"{float(right):.4g}")
    head = row("rank", "gradients of its samples", "mean", cell="th")
    return (
        f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"
        f"<p>mean of means <b>{float(of_means):.4g}</b>, mean of all <b>{float(direct):.4g}</b>: {agree}.</p>"
    )


def cut_in_two(values: tuple[int, ...] = (1, 3, 5, -1), cut: int = 2) -> LiveControl:
    """Sliders for the gradients of some samples, and one for the place where the batch is cut in two."""
    sliders = [widgets.IntSlider(v, -9, 9, description=f"sample {i}") for i, v in enumerate(values)]
    place = widgets.IntSlider(cut, 1, len(values) - 1, description="cut after")
    text = widgets.HTML(describe_cut(list(values), cut))

    def update(_change) -> None:
        text.value = describe_cut([slider.value for slider in sliders], place.value)

    for slider in (*sliders, place):
        slider.observe(update, names="value")
    widget = widgets.VBox([*sliders, place, text])
    return LiveControl(widget, describe_cut(list(values), cut), "A batch cut in two")
