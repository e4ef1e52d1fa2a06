"""HOW FAST it is: the loop that a reader would write (textbook.py, loop.py) beside ours, on one machine, in one go."""
