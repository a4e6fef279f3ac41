"""Every source that the ledger names has an entry, and every entry says whether it was checked."""

import shutil
from pathlib import Path

import pytest

from helpers.ledger.claims import ROOT, ledger
from helpers.ledger.references import BIBLIOGRAPHY, STATES, parts, references


@pytest.mark.parametrize("row", ledger(), ids=lambda row: row.id)
def test_sources_of_a_row_have_entries(row) -> None:
    assert [part.place for part in parts(row.primary_source) if not part.key] == []


def test_entries_say_how_they_were_checked() -> None:
    assert references()
    for entry in references().values():
        assert entry.state in STATES and len(entry.how.split()) >= 3
        assert not entry.how.endswith("."), f"{entry.key}: the page adds the full stop"


def test_no_name_leads_to_two_entries() -> None:
    names = [name for entry in references().values() for name in entry.names]
    assert sorted(names) == sorted(set(names))


def test_the_longest_name_wins() -> None:
    found = parts("nccl-tests issue 212; nccl PERFORMANCE.md; dubey2024llama3 3.3.2; nothing known")
    assert [part.key for part in found] == ["nccl-tests-212", "nccl-tests", "dubey2024llama3", ""]
    assert found[2].place == " 3.3.2"


def test_an_entry_that_does_not_say_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / BIBLIOGRAPHY
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / BIBLIOGRAPHY, copy)
    copy.write_text(copy.read_text(encoding="utf-8").replace("  unchecked =", "  note ="), encoding="utf-8")
    with pytest.raises(ValueError, match="needs one of the fields"):
        references(tmp_path)
