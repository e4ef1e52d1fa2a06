"""Ours beside the paper's: verdicts, claims, tables, page and figures, all from rows."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lengthlab.errors import LabError
from lengthlab.evaluation.interval import wilson
from lengthlab.paper import CELLS, CLAIMS, LENGTHS, PARTS, READINGS, Cell
from lengthlab.report.claims import judge
from lengthlab.report.comparison import compare, summary, verdict
from lengthlab.report.grid import grids
from lengthlab.report.page import page
from lengthlab.report.provenance import _busy, as_text, read_makings, unite
from lengthlab.report.readings import readings_board
from lengthlab.report.results import Results, gather
from lengthlab.report.scoreboard import scoreboard
from lengthlab.rows import Row, as_jsonl, merge, read_rows
from paper_rows import as_in_the_paper, making, rows_of, texts

LSTM = Cell("table1", "recall", "lstm", "end-to-end")
SANDWICH = Cell("figure1", "modulo-recall", "sandwich", "delayed")


def results_of(rows: list[Row], parts: tuple[str, ...] = tuple(PARTS)) -> Results:
    return gather(rows, [making(rows)], parts)


def in_terminal(results: Results) -> list[str]:
    console = Console(file=io.StringIO(), width=80, color_system=None)
    console.print(scoreboard(results))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@given(st.integers(0, 100), st.integers(0, 1000))
def test_two_accuracies_agree_up_to_five_hundredths(paper: int, ours: int) -> None:
    agrees = abs(10 * paper - ours) <= 50
    assert verdict(paper / 100, ours / 1000) == ("agrees" if agrees else "differs")


@pytest.mark.parametrize("ours", [0.0, 0.5, 1.0])
def test_where_the_paper_is_silent_or_we_are_there_is_no_more_to_say(ours: float) -> None:
    assert verdict(None, ours) == "paper silent"
    assert verdict(ours, None) == "missing"
    assert verdict(None, None) == "missing"


def test_ours_is_the_mean_over_seeds_and_the_interval_that_of_all_samples() -> None:
    rows = [
        *rows_of([LSTM], [0], lambda *_: 0.90),
        *rows_of([LSTM], [2], lambda *_: 0.60),
        *rows_of([LSTM], [1], lambda *_: 0.75, total=400),
    ]
    entry = compare(rows, [LSTM])[0].at(25)
    assert (entry.paper, entry.verdict) == (0.83, "differs")
    assert entry.ours == pytest.approx(0.75)
    assert entry.by_seed == {0: 0.9, 1: 0.75, 2: 0.6}
    assert list(entry.by_seed) == [0, 1, 2]
    assert entry.samples == 2400
    assert entry.interval == wilson(1800, 2400)


def test_the_papers_own_numbers_agree_everywhere() -> None:
    lines = compare(rows_of())
    assert summary(lines) == "312 values: 168 agrees, 144 paper silent"
    assert all(line.seeds == [0] for line in lines)


def test_what_has_no_rows_is_missing_and_stays_in_its_place() -> None:
    rows = [row for row in rows_of() if row.model != "lstm" and row.length != 75]
    lines = compare(rows)
    assert [line.cell for line in lines] == list(CELLS)
    assert all([entry.length for entry in line.entries] == list(LENGTHS) for line in lines)
    for line in lines:
        for entry in line.entries:
            missing = line.cell.model == "lstm" or entry.length == 75
            assert (entry.verdict == "missing") == (entry.ours is None) == missing


def test_rows_of_another_task_or_training_are_not_taken_for_a_cells() -> None:
    rows = [replace(row, task="modulo") for row in rows_of([LSTM])] + [
        replace(row, training="delayed") for row in rows_of([LSTM])
    ]
    assert compare(rows, [LSTM])[0].verdicts == {"missing": 12}


def test_two_runs_of_one_seed_are_refused_by_name() -> None:
    rows = rows_of([LSTM])
    other = [replace(row, run="f" * 12) for row in rows]
    with pytest.raises(LabError, match=f"table1 lstm end-to-end, seed 0: {rows[0].run} and ffffffffffff"):
        compare(rows + other)


def test_every_claim_holds_in_what_the_paper_says() -> None:
    assert [finding.verdict for finding in judge(compare(rows_of()))] == ["holds"] * len(CLAIMS)


def test_no_claim_is_judged_without_rows() -> None:
    assert {finding.verdict for finding in judge(compare([]))} == {"missing"}


def spoilt(cell: Cell, length: int, accuracy: float) -> list[Row]:
    """The paper's numbers, but for one."""
    return rows_of(accuracy=lambda c, s, n: accuracy if (c, n) == (cell, length) else as_in_the_paper(c, s, n))


@pytest.mark.parametrize(
    ("cell", "length", "accuracy", "claim"),
    [
        (Cell("figure1", "modulo-recall", "lstm", "end-to-end"), 25, 0.90, "lstm below 0.90"),
        (Cell("figure1", "modulo-recall", "transformer", "end-to-end"), 50, 0.51, "transformer at least"),
        (Cell("figure1", "modulo-recall", "parallel", "end-to-end"), 50, 0.51, "every hybrid, end to end"),
        (Cell("figure1", "modulo-recall", "parallel", "end-to-end"), 20, 0.89, "every hybrid, end to end"),
        (SANDWICH, 75, 0.90, "every delayed hybrid above"),
        (SANDWICH, 100, 0.95, "every delayed hybrid lower"),
        (Cell("table2", "modulo", "lstm", "end-to-end"), 100, 0.98, "lstm at least 0.99"),
        (Cell("table2", "modulo", "sandwich", "end-to-end"), 75, 0.31, "every other architecture"),
        (Cell("table1", "recall", "sandwich", "end-to-end"), 25, 0.98, "transformer and every hybrid"),
    ],
)
def test_one_number_on_the_wrong_side_is_against_its_claim_and_named(
    cell: Cell, length: int, accuracy: float, claim: str
) -> None:
    findings = judge(compare(spoilt(cell, length, accuracy)))
    (against,) = [finding for finding in findings if finding.verdict == "does not hold"]
    assert against.claim.checked.startswith(claim)
    assert f"{cell.label} ({accuracy:.3f} at n={length})" in against.evidence


def test_a_claim_with_a_missing_cell_is_open_and_says_how_much_holds() -> None:
    rows = [row for row in rows_of() if Cell(row.part, row.task, row.model, row.training) != SANDWICH]
    (finding,) = [f for f in judge(compare(rows)) if f.claim.checked.startswith("every delayed hybrid above")]
    assert (finding.verdict, finding.evidence) == ("missing", "4 of 4 checks hold; 1 of 5 checks have no rows")


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = rows_of(seeds=(0, 1))
    (tmp_path / "results.jsonl").write_text(as_jsonl(rows))
    assert read_rows(tmp_path / "results.jsonl") == rows


@pytest.mark.parametrize(
    "line",
    [
        *("", "{", "5", "null", '{"part": "table1"}'),
        *(json.dumps(rows_of([LSTM])[0].to_json() | change) for change in ({"correct": 1001}, {"total": 0}, {"seed": "0"})),
        *(json.dumps(rows_of([LSTM])[0].to_json() | change) for change in ({"model": 3}, {"more": 1}, {"length": True})),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(as_jsonl(rows_of([LSTM])[:1]) + line + "\n")
    with pytest.raises(LabError, match=r"results\.jsonl, line 2"):
        read_rows(path)


@given(st.lists(st.sampled_from(range(26)), max_size=12), st.lists(st.sampled_from(range(26)), max_size=12))
def test_merging_is_a_union_whatever_the_order(here: list[int], there: list[int]) -> None:
    first, second = (rows_of([CELLS[place] for place in dict.fromkeys(places)], lengths=(5,)) for places in (here, there))
    assert set(merge({"here": first, "there": second})) == set(first) | set(second)
    assert len(merge({"here": first, "there": second})) == len(set(first) | set(second))


def test_one_run_with_two_results_is_refused_by_both_their_names() -> None:
    (row,) = rows_of([LSTM], lengths=(5,))[:1]
    other = replace(row, correct=7)
    with pytest.raises(LabError, match=rf"run {row.run}, n=5, recall: 1000 of 1000 .* in here, 7 of 1000 in there"):
        merge({"here": [row], "there": [other]})


def test_one_run_may_speak_for_two_cells_but_not_differently() -> None:
    (row,) = rows_of([LSTM], lengths=(5,))[:1]
    assert len(merge({"here": [row, replace(row, part="readings")]})) == 2
    with pytest.raises(LabError, match="two results"):
        merge({"here": [row, replace(row, part="readings", correct=3)]})


def test_the_terminal_shows_paper_ours_every_seed_interval_and_verdict() -> None:
    lines = in_terminal(results_of(rows_of(seeds=(0, 1))))
    at = lines.index("lstm (LSTM), end-to-end: 12 agrees")
    shown = [line.split() for line in lines[at + 1 : at + 8]]
    assert [" ".join(words[:2]) if words[0] == "seed" else words[0] for words in shown] == [
        *("paper", "ours", "seed 0", "seed 1", "low", "high", "verdict")
    ]
    assert shown[0][-1] == shown[1][-1] == "0.28"
    assert shown[-1][1:] == ["="] * 12
    assert max(map(len, lines)) <= 80


def test_the_terminal_shows_missing_cells_as_missing() -> None:
    lines = in_terminal(results_of(rows_of([cell for cell in CELLS if cell.model != "lstm"])))
    at = lines.index("lstm (LSTM), end-to-end: 12 missing")
    assert lines[at + 2].split() == ["ours", *["–"] * 12]


def cells_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


def test_every_number_of_the_page_has_seeds_samples_interval_verdict_and_origin() -> None:
    text = page(results_of(rows_of(seeds=(0, 1))))
    (line,) = [cells for cells in cells_of(text) if cells[:3] == ["lstm", "end-to-end", "100"] and cells[3] == "0.28"]
    low, high = wilson(560, 2000)
    assert line[3:] == [*("0.28", "0.280", "0: 0.280, 1: 0.280", f"{low:.3f}–{high:.3f}", "2 × 1000", "agrees", "[1](#made-1)")]
    numbers = [cells for cells in cells_of(text) if len(cells) == 10 and cells[2].isdigit()]
    assert len(numbers) == 26 * 12
    for word in ("lengthlab reproduce dat", "0123456789ab", "a slide rule", "torch 2.13.0", "2026-01-02", "90 seconds"):
        assert word in text.split("## Where the numbers come from")[1]


def test_the_page_shows_missing_cells_and_fills_none() -> None:
    rows = rows_of([cell for cell in CELLS if cell != SANDWICH])
    lines = cells_of(page(results_of(rows)))
    (brief,) = [cells for cells in lines if cells[0].startswith("sandwich (") and cells[1] == "delayed"]
    assert brief[2:] == [*["missing"] * 12, "–"]
    details = [cells for cells in lines if cells[:2] == ["sandwich", "delayed"]]
    assert [cells[-2] for cells in details] == ["missing"] * 12


def test_a_seed_that_other_cells_of_the_part_have_is_shown_as_missing() -> None:
    others = [cell for cell in CELLS if cell.part == "figure1" and cell != SANDWICH]
    results = results_of([*rows_of(others, (0, 1, 2)), *rows_of([SANDWICH], (0, 2)), *rows_of([LSTM])])
    lines = cells_of(page(results))
    (brief,) = [cells for cells in lines if cells[0].startswith("sandwich (") and cells[1] == "delayed"]
    assert brief[-1] == "0, 2; 1 missing"
    details = [cells for cells in lines if cells[:3] == ["sandwich", "delayed", "75"]]
    assert [cells[5] for cells in details] == ["0: 0.950, 1: missing, 2: 0.950"]
    (one,) = [cells for cells in lines if cells[:3] == ["lstm", "end-to-end", "75"] and cells[6] != "–" and cells[3] != "–"]
    assert "missing" not in one[5]  # no cell of Table 1 has another seed
    drawn = in_terminal(results)
    at = drawn.index("sandwich (LSTM ∘ Attn ∘ LSTM), delayed: 12 paper silent")
    assert drawn[at + 3].split() == ["seed", "1", *["–"] * 12]
    assert "LSTM ∘ Attn ∘ LSTM, 2 of 3 seeds" in texts(grids(results)["figure1.svg"])


def test_a_claim_says_what_each_seed_says_of_it() -> None:
    def worse(cell: Cell, seed: int, length: int) -> float:
        return 0.0 if (cell, seed, length) == (SANDWICH, 1, 75) else as_in_the_paper(cell, seed, length)

    cells = [cell for cell in CELLS if cell.part == "figure1"]
    rows = [*rows_of(cells, (0, 1), worse), *rows_of([cell for cell in cells if cell != SANDWICH], (2,))]
    results = results_of(rows, ("figure1",))
    (claim,) = [claim for claim in CLAIMS if "three times" in claim.words]
    assert results.verdicts_by_seed(claim) == {0: "holds", 1: "does not hold", 2: "missing"}
    assert "0: holds, 1: does not hold, 2: missing" in page(results)
    assert "0 holds, 1 does not hold, 2 missing" in " ".join(in_terminal(results))


def test_each_number_names_the_command_that_made_it() -> None:
    rows = rows_of([LSTM, SANDWICH])
    here, there = ([row for row in rows if row.model == model] for model in ("lstm", "sandwich"))
    made = [making(there, command="on the GPU", date="2026-02"), making(here, date="2026-01"), making(here, date="2026-01")]
    results = gather(rows, made, tuple(PARTS))
    assert [entry.date for entry in results.made] == ["2026-01", "2026-02"]
    lines = cells_of(page(results))
    assert {cells[-1] for cells in lines if cells[:2] == ["sandwich", "delayed"]} == {"[2](#made-2)"}


def test_every_table_of_the_page_is_rectangular() -> None:
    text = page(results_of(rows_of() + readings_rows(), (*PARTS, "readings")))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(cells) for cells in cells_of(table)}) == 1


def readings_rows() -> list[Row]:
    return rows_of([reading.cell for reading in READINGS if reading.covers == "part"], accuracy=lambda *_: 0.75)


def test_readings_have_a_table_of_their_own() -> None:
    results = results_of(readings_rows(), ("readings",))
    lines = [cells for cells in cells_of(page(results)) if cells[0] in ("attention-on-lstm", "hybrid-block")]
    assert len(lines) == len(READINGS)
    low, high = wilson(750, 1000)
    whole = [cells for cells in lines if cells[2] == "the whole part"]
    assert {cells[4] for cells in whole} == {f"0.750 ({low:.3f}–{high:.3f}); 0.75, 0.75"}
    assert {cells[4] for cells in lines if cells not in whole} == {"missing"}
    console = Console(file=io.StringIO(), width=80)
    console.print(readings_board(results))
    assert isinstance(console.file, io.StringIO)
    assert len(re.findall(r"both +0\.75", console.file.getvalue())) == 6


def test_the_figures_show_every_number_and_are_the_same_every_time() -> None:
    results = results_of(rows_of([cell for cell in CELLS if cell != SANDWICH]))
    pictures = grids(results)
    assert list(pictures) == [f"{part}.{form}" for part in PARTS for form in ("svg", "png")]
    assert pictures == grids(results)
    drawn = texts(pictures["figure1.svg"])
    assert drawn.count("0.95") == 4
    assert drawn.count("–") == 12
    assert drawn.count("sandwich") == 2
    assert b"<dc:date>" not in pictures["table1.svg"]
    drawn = texts(pictures["table1.svg"])
    assert drawn.count("0.28") == 2  # ours and the paper's


def test_a_part_without_rows_has_no_figure() -> None:
    assert list(grids(results_of(rows_of([LSTM])))) == ["table1.svg", "table1.png"]


def test_provenance_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = [making(rows_of([LSTM])), making(rows_of([SANDWICH]), profile="paper")]
    path = tmp_path / "provenance.json"
    assert read_makings(path) == []
    path.write_text(as_text(made))
    assert read_makings(path) == made
    assert unite(made, [row.run for row in rows_of([SANDWICH])]) == made[1:]


def test_the_page_says_which_runs_of_a_command_it_shows_and_that_entries_may_share_some() -> None:
    """Runs of a recipe that was replaced stay in the provenance, or the seconds would be those of fewer runs than they were."""
    ours, others = rows_of([LSTM]), rows_of([SANDWICH])
    made = [making([*ours, *others]), making(ours, command="lengthlab reproduce dat --part table1")]
    told = page(gather(ours, made, ("table1",))).split("## Where the numbers come from")[1]
    assert "2 runs (1 of them on this page), 90 seconds" in told
    assert "1 run, 90 seconds" in told
    assert "Some runs are in several entries" in told
    alone = page(gather(ours, made[1:], ("table1",)))
    assert "several entries" not in alone
    assert "on this page" not in alone


@pytest.mark.parametrize("text", ["{", "5", '[{"command": "x"}]', '{"command": "x"}'])
def test_a_file_that_is_no_provenance_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "provenance.json"
    path.write_text(text)
    with pytest.raises(LabError, match=r"provenance\.json is not a provenance"):
        read_makings(path)


def test_seconds_of_runs_side_by_side_count_once() -> None:
    def made(seconds: float, date: str) -> dict[str, object]:
        return {"seconds": seconds, "date": f"2026-01-02T03:{date}+00:00"}

    # Two side by side, then nothing for a minute, then one more.
    assert _busy([made(60, "01:00"), made(90, "01:10"), made(10, "02:20")]) == 90 + 10
