"""Say in one line what this machine lacks for the book, and its cure. Runs on any Python 3, before anything is installed."""

import sys

LOWEST, TOO_NEW = (3, 11), (3, 14)


def missing():
    """The first thing that is missing, with its cure; None when all is there."""
    version = ".".join(str(n) for n in sys.version_info[:3])
    if not LOWEST <= sys.version_info[:2] < TOO_NEW:
        return (
            "Python %s is too %s: the book needs 3.11, 3.12 or 3.13. Install one and run: make PYTHON=python3.12 ..."
            % (version, "old" if sys.version_info[:2] < LOWEST else "new")
        )
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        return "Python %s has no venv module. Cure on Debian and Ubuntu: apt install python3-venv" % version
    return None


if __name__ == "__main__":
    problem = missing()
    if problem:
        sys.exit(problem)
