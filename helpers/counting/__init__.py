"""Bytes that real programs move: handed to collectives, and carried by a network of their own."""
