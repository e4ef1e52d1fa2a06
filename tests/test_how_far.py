"""How far a result lasts, on the page of rules: at the longest length, the longest that is still good, and over tasks."""

from __future__ import annotations

from collections.abc import Mapping

from lengthlab.experiments import find_study, rules
from lengthlab.report.evidence import Evidence
from lengthlab.report.page import Page, Table, Text, plain
from lengthlab.report.results import gather
from lengthlab.report.study_page import study_page
from lengthlab.store.rows import Row

STUDY = find_study("rules")
LENGTHS = (3, 4, 5, 6)
DIRECT, SCRATCHPAD, TRACE = rules.FORMS


def rows_of(task: str, form: str, shares: tuple[float, ...], totals: Mapping[str, int] | None = None) -> list[Row]:
    """Of two seeds, the second a tenth lower; every question has the same share of its own number of samples."""
    arm = rules.rule_arm(task, form, "log-n")  # type: ignore[arg-type]
    about = {"experiment": "rules", "arm": arm.name, "size": "cpu", "model": arm.model, "task": task, "training": arm.training}
    return [
        Row(
            length, question, round((share - 0.1 * seed) * total), total, seed=seed, run=f"{hash_of(task, form, seed)}", **about
        )
        for seed in (0, 1)
        for length, share in zip(LENGTHS, shares, strict=True)
        for question, total in (totals or {"all": 1000, "answer": 1000, "result": 100}).items()
    ]


def hash_of(task: str, form: str, seed: int) -> str:
    return f"{len(task):04x}{len(form):04x}{seed:04x}"


def page_of(rows: list[Row]) -> Page:
    evidence = Evidence(tuple(rows), (), ())
    size = STUDY.size("cpu")
    return study_page(gather(STUDY, size, STUDY.sections_at(size), evidence))


def tables(page: Page, column: str) -> list[tuple[tuple[str, ...], ...]]:
    found = [block for block in page.blocks if isinstance(block, Table) and column in map(plain, block.header)]
    return [tuple(tuple(map(plain, row)) for row in table.rows) for table in found]


def test_the_longest_length_that_is_good_enough_is_told_by_the_mean_over_seeds() -> None:
    page = page_of(
        [
            *rows_of("rule-coin-flips", SCRATCHPAD, (1.0, 0.95, 0.6, 0.5)),
            *rows_of("rule-coin-flips", TRACE, (1.0, 0.5, 0.95, 0.4)),
            *rows_of("rule-digit-sum", SCRATCHPAD, (1.0, 0.9, 0.9, 0.3)),
            *rows_of("rule-digit-sum", DIRECT, (0.5, 0.4, 0.3, 0.2)),
        ]
    )
    flips, sums, over = tables(page, "longest with 0.90")
    assert [row[-2:] for row in flips] == [("0.450", "4"), ("0.350", "5")]  # the longest, whatever is in between
    assert [row[-2:] for row in sums] == [("0.150", "0"), ("0.250", "3")]
    assert [row[-3:] for row in over] == [("2", "0.350", "3.5")]  # of what both tasks have


def test_results_on_fewer_samples_stand_beside_all_others() -> None:
    page = page_of(rows_of("rule-coin-flips", SCRATCHPAD, (1.0, 0.9, 0.8, 0.7)))
    told = " ".join(plain(block.words) for block in page.blocks if isinstance(block, Text))
    assert "1,000 samples a length and seed, 100 of result" in told
    assert "Left out" not in told


def test_a_seed_on_other_numbers_of_samples_is_still_left_out() -> None:
    rows = rows_of("rule-coin-flips", SCRATCHPAD, (1.0, 0.9, 0.8, 0.7))
    odd = next(row for row in rows if row.question == "result" and row.seed == 1)
    changed = [Row(**{**vars(row), "total": 50, "correct": 0}) if row is odd else row for row in rows]
    third = [Row(**{**vars(row), "seed": 2, "run": "0" * 11 + "2"}) for row in rows if row.seed == 0]
    told = " ".join(plain(block.words) for block in page_of([*changed, *third]).blocks if isinstance(block, Text))
    assert "Left out, because numbers of samples are not mixed: 1 rows of 50 samples, at n = 3." in told
