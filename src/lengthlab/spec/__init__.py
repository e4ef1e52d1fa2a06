"""A run as data: what is trained, how, and under which seed; to JSON, from TOML, with a user's own files."""
