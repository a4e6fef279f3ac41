"""The interface by which processes of one host reach each other."""

import socket


def loopback() -> str | None:
    """Its name, "lo" on Linux and "lo0" on macOS; None where interfaces have no names (Windows).

    By name, because the host's own name may not resolve to an address.
    """
    names = {name for _, name in getattr(socket, "if_nameindex", list)()}
    return next((name for name in ("lo", "lo0") if name in names), None)
