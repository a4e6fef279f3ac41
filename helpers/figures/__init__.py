"""Figures of the book: each function draws numbers that it is given and computes none."""
