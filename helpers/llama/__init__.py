"""Llama 3 without its weights: the parameters of the released code, whole, in blocks, in shards, small."""
