"""Gradients in fewer bits, and additions that round."""
