"""The rules, as one would write them in Python. They are read as text (types and the text at the top of each are left out); the
tests also run them, and compare.

Addition, base 9, last letters and coin flips are tasks of rule-following fine-tuning (Hu et al. 2024, arXiv 2402.17709; 2025,
arXiv 2502.11525), the sum of digits is one of the latter's; the functions are our own.
"""

from __future__ import annotations


def addition(num1: list[int], num2: list[int]) -> list[int]:
    """The digits of a sum, from the digits of two numbers."""
    result: list[int] = []
    carry = 0
    while num1 or num2:
        digit1 = num1.pop() if num1 else 0
        digit2 = num2.pop() if num2 else 0
        total = digit1 + digit2 + carry
        result.insert(0, total % 10)
        carry = total // 10
    if carry:
        result.insert(0, carry)
    return result


def base_9(num1: list[int], num2: list[int]) -> list[int]:
    """The same of numbers in base 9."""
    result: list[int] = []
    carry = 0
    while num1 or num2:
        digit1 = num1.pop() if num1 else 0
        digit2 = num2.pop() if num2 else 0
        total = digit1 + digit2 + carry
        result.insert(0, total % 9)
        carry = total // 9
    if carry:
        result.insert(0, carry)
    return result


def last_letters(words: list[str]) -> str:
    """The last letter of each word, joined."""
    joined = ""
    for word in words:
        joined += word[-1]
    return joined


def coin_flips(flips: list[bool]) -> bool:
    """Whether a coin that lies heads up still does, after each person has flipped it or not."""
    heads = True
    while flips:
        flip = flips.pop(0)
        if flip:
            heads = not heads
    return heads


def digit_sum(digits: list[int]) -> int:
    """The sum of the digits; of that the sum of the digits, and so on, until one is left."""
    total = 0
    while digits:
        total += digits.pop(0)
        while total > 9:
            total = total // 10 + total % 10
    return total
