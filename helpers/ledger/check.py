"""Do the chapters keep what the ledger says? Every broken rule is one readable line.

The tests demand an empty list, and the book build turns each line into a warning, which fails it.
Rules about a single cell come first, rules about a claim second.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from helpers.ledger.claims import ID, ROOT, Proof, Row, ids_of, ledger, pages, printed, proofs, tags_of


def problems(root: Path = ROOT) -> list[str]:
    """Every rule of the ledger that a chapter breaks, in words; empty when all is well."""
    rows, found = ledger(root), proofs(root)
    lines = [line for name, cells in pages(root) for cell in cells for line in _cell(name, cell)]
    return lines + list(_claims(rows, found))


def _cell(name: str, cell: Mapping) -> Iterator[str]:
    tags = tags_of(cell)
    roles = [tag for tag in tags if tag in ("claim", "break")]
    place = f"{name}, cell {cell.get('id', '?')}"
    # A chapter may prove more than the ledger asks: then its cells have a role but no id.
    if len(roles) > 1 or (ids_of(cell) and not roles):
        yield f"{place}: a cell with claim ids is either a claim or a break"
    if ("break" in roles) != ("raises-exception" in tags) and (roles or ids_of(cell)):
        yield f"{place}: break and raises-exception belong together"
    for tag in tags:
        if tag != tag.upper() and ID.fullmatch(tag.upper()):
            yield f"{place}: write the tag {tag} as {tag.upper()}"
    if "break" in roles and cell.get("outputs"):
        yield from _break_output(place, cell)


def _break_output(place: str, cell: Mapping) -> Iterator[str]:
    errors = [output for output in cell["outputs"] if output["output_type"] == "error"]
    if [error["ename"] for error in errors] != ["AssertionError"]:
        yield f"{place}: the stored output of a break must be one AssertionError"
    elif len(printed([{"outputs": errors}]).strip().splitlines()) != 1:
        yield f"{place}: the AssertionError must be stored as one line (%xmode Minimal)"


def _claims(rows: Sequence[Row], found: Mapping[str, Proof]) -> Iterator[str]:
    by_id = {row.id: row for row in rows}
    for id_, proof in sorted(found.items()):
        row = by_id.get(id_)
        if row is None:
            yield f"{id_}: used in {', '.join(sorted(proof.chapters))} but not in the ledger"
            continue
        for name in sorted(proof.chapters - {row.chapter}):
            yield f"{id_}: belongs to {row.chapter}, but {name} claims it"
        if len(proof.targets) != 1:
            yield f"{id_}: needs exactly one target ({id_})=, found {len(proof.targets)}"
        if proof.claims and not proof.breaks:
            yield f"{id_}: has a claim cell but no break cell"
        if proof.breaks and not proof.claims:
            yield f"{id_}: has a break cell but no claim cell"
        text = printed(cell for _, cell in proof.claims)
        for string in row.checks:
            if proof.claims and string not in text:
                yield f"{id_}: no claim cell prints {string!r}, which the column check demands"
