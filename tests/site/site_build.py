"""Where the built site lies, and which pages it has."""

import os

from helpers.ledger.claims import ROOT

# `make test` builds a second site from the outputs it has just verified, and names it in SITE.
SITE = ROOT / os.environ.get("SITE", "_build/html")
NOT_BUILT = f"the site is not built ({SITE}); cure: make book"


def pages() -> list[str]:
    """Every page of the built site, the search page included, but not the redirect at its root."""
    if not SITE.is_dir():
        return ["not built"]  # one test each, so that the run fails with the cure instead of testing nothing
    paths = (path.relative_to(SITE) for path in SITE.rglob("*.html"))
    return sorted(path.as_posix() for path in paths if path.parts[0] not in ("_static", "index.html"))
