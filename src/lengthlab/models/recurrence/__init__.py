"""Recurrences: a state that is carried from token to token. One a file."""
