"""Delayed attention in the trainers that people already use. Each module needs the library that it is named after."""
