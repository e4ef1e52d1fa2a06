"""Delayed attention in the trainers that people already use, and the trackers that they watch runs with. Each module needs the
library that it is named after; follower.py none.
"""
