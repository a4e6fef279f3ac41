"""The code behind "Data Parallelism, Proven": one idea a file, imported by every chapter."""
