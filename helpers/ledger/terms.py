"""Key terms of the ledger in English, simplified and traditional Chinese.

The Chinese is the sources' own where they use the term: simplified as in source A, traditional as
in source B (whose 引數 for "parameter" is a converter's choice, kept so that it can be found there).
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from helpers.ledger.claims import ROOT, Row

TERMS = Path("book", "data", "terms.csv")


@dataclass(frozen=True)
class Term:
    """One term; `pattern` finds it in English text."""

    english: str
    simplified: str
    traditional: str
    pattern: re.Pattern[str]

    def chinese(self, source: str) -> tuple[str, str]:
        """(language tag, words) in the script of the source: A is simplified, B traditional."""
        return ("zh-Hans", self.simplified) if source.startswith("A") else ("zh-Hant", self.traditional)


def terms(root: Path = ROOT) -> list[Term]:
    """All terms of terms.csv, in file order."""
    with (root / TERMS).open(encoding="utf-8", newline="") as file:
        return [
            Term(line["english"], line["simplified"], line["traditional"], _pattern(line["words"]))
            for line in csv.DictReader(file, strict=True)
        ]


def terms_of(row: Row, known: list[Term]) -> list[Term]:
    """The terms that the claim or its right statement uses, in the order of `known`."""
    text = f"{row.claim} {row.correct_statement}"
    return [term for term in known if term.pattern.search(text)]


def _pattern(words: str) -> re.Pattern[str]:
    """Whole words, plural allowed. Words in capitals are abbreviations, and their case counts."""
    choices = []
    for word in words.split(" | "):
        escaped = re.escape(word)
        choices.append(f"{escaped}s?" if word.isupper() else f"(?i:{escaped}(?:s|es)?)")
    return re.compile(rf"(?<![\w-])(?:{'|'.join(choices)})(?![\w])")
