"""How far it works: accuracy by length."""
