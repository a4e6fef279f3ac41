"""Rank functions, by topic: f(rank, world_size, ...) -> result, importable by every process."""
