"""Attention: softmax.py, and what it is made of: positions (where a token stands) and scores (how sharp it looks)."""
