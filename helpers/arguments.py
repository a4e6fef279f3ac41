"""What functions ask of the numbers they are given."""


def whole_numbers(**values: int) -> None:
    """Raises ValueError for the first value that is no whole number of 1 or more."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"{name}={value!r}: expected a whole number of 1 or more")
