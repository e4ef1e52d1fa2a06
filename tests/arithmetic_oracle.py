"""The arithmetic tasks, read and answered a second time: written from their statements alone, in plain Python.

Each function takes a written sequence apart, holds it to its format and gives what should stand after `=`, together with the
position id of every token when ids start at `start`. Nothing here looks at how the package draws, solves or places a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

Read = tuple[list[str], list[int]]
"""The right answer, and ids."""


def addition(words: Sequence[str], reverse: bool, start: int) -> Read:
    """
    >>> addition("<bos> 6 5 3 + 0 4 9 = 2 0 7 0 <end>".split(), reverse=True, start=6)
    (['2', '0', '7', '0', '<end>'], [0, 9, 8, 7, 6, 9, 8, 7, 6, 7, 8, 9, 10, 0])
    """
    terms = _numbers(words, "+")
    (digits,) = {len(term) for term in terms}
    assert any(term[0] != "0" or digits == 1 for term in terms), f"no operand has all digits: {words}"
    total, carried = [], 0
    for place in range(digits + 1 + (len(terms) > 10)):
        column = carried + sum(int(term[-1 - place]) for term in terms if place < digits)
        total.append(str(column % 10))
        carried = column // 10
    assert carried == 0
    ids = [0]
    for _ in terms:
        ids += [start + 1 + place for place in reversed(range(digits))] + [start]
    return _answer(total, ids, reverse, start)


def multiplication(words: Sequence[str], reverse: bool, start: int) -> Read:
    first, second = _numbers(words, "×")
    assert all(number[0] != "0" or len(number) == 1 for number in (first, second)), f"leading zeros: {words}"
    columns = [0] * (len(first) + len(second) + 1)
    for i, a in enumerate(reversed(first)):
        for j, b in enumerate(reversed(second)):
            columns[i + j] += int(a) * int(b)
    for place in range(len(columns) - 1):
        columns[place + 1] += columns[place] // 10
        columns[place] %= 10
    assert columns.pop() == 0
    ids = [0]
    for number in (first, second):
        ids += [start + 1 + place for place in reversed(range(len(number)))] + [start]
    return _answer([str(digit) for digit in columns], ids, reverse, start)


def minesweeper(words: Sequence[str], start: tuple[int, int]) -> tuple[list[str], list[tuple[int, int]]]:
    squares = list(words[1 : list(words).index("=")])
    side = round(len(squares) ** 0.5)
    assert side * side == len(squares), f"not a square: {words}"
    board = [squares[side * row : side * row + side] for row in range(side)]
    said, ids = [], []
    for row in range(side):
        for column in range(side):
            beside = [line[max(0, column - 1) : column + 2] for line in board[max(0, row - 1) : row + 2]]
            mines = sum(line.count("M") for line in beside)
            said.append("M" if board[row][column] == "M" else str(mines))
            ids.append((start[0] + 1 + row, start[1] + 1 + column))
    return [*said, "<end>"], [(0, 0), *ids, start, *ids, (0, 0)]


def parity_scratchpad(words: Sequence[str], start: int) -> Read:
    bits = list(words[1 : list(words).index("=")])
    said = ["01"[bits[: place + 1].count("1") % 2] for place in range(len(bits))]
    ids = [start + 1 + place for place in range(len(bits))]
    return [*said, "<end>"], [0, *ids, start, *ids, 0]


def _numbers(words: Sequence[str], sign: str) -> list[list[str]]:
    assert words[0] == "<bos>", f"does not start with <bos>: {words}"
    numbers: list[list[str]] = [[]]
    for word in words[1 : list(words).index("=")]:
        if word == sign:
            numbers.append([])
        else:
            assert word.isdigit(), f"{word} is not a digit"
            numbers[-1].append(word)
    return numbers


def _answer(units_first: list[str], ids: list[int], reverse: bool, start: int) -> Read:
    up = [start + 1 + place for place in range(len(units_first))]
    if not reverse:
        units_first, up = units_first[::-1], up[::-1]
    return [*units_first, "<end>"], [*ids, *up, 0]
