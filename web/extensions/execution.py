"""Lets the environment choose between running the notebooks and showing their stored outputs.

`BOOK_EXECUTE=off` builds the site from stored outputs in seconds; it is meant for previews and for
the site tests, which run right after the notebooks were verified cell by cell. Anything else, the
unset variable included, leaves the choice of _config.yml (`force`). Why not a second configuration
file: two files drift apart, and relative paths in it would mean another folder.
"""

import os

from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

VARIABLE = "BOOK_EXECUTE"


def choose_execution_mode(app: Sphinx, config: Config) -> None:
    mode = os.environ.get(VARIABLE, "")
    if mode not in ("", "off", "force"):
        raise ConfigError(f"{VARIABLE} is {mode!r}, but only 'off' and 'force' are known")
    if mode:
        config.nb_execution_mode = mode


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", choose_execution_mode)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
