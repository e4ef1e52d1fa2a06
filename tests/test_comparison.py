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

from lengthlab.errors import LabError
from lengthlab.experiments.dat import DAT
from lengthlab.experiments.dat.arms import ARMS, LENGTHS, arm_of
from lengthlab.experiments.dat.claims import CLAIMS
from lengthlab.experiments.dat.readings import READINGS
from lengthlab.experiments.study import Arm
from lengthlab.report import results as report_results
from lengthlab.report.evidence import Evidence
from lengthlab.report.figure import pictures
from lengthlab.report.markdown import markdown
from lengthlab.report.provenance import Origin, _busy, as_text, read_origins, unite
from lengthlab.report.publication import texts
from lengthlab.report.results import Results, gather
from lengthlab.report.scores import Series, tally, verdict
from lengthlab.report.study_page import study_page
from lengthlab.report.terminal import console_for, show
from lengthlab.store.interval import wilson
from lengthlab.store.rows import Row, as_jsonl, merge, read_rows
from paper_rows import as_in_the_paper, origin, rows_of

LSTM = arm_of("table1", "lstm")
SANDWICH = arm_of("figure1", "sandwich", "delayed")
TABLES = ("table1", "table2", "figure1")


def results_of(rows: list[Row], parts: tuple[str, ...] = TABLES, origins: list[Origin] | None = None) -> Results:
    evidence = Evidence(tuple(rows), tuple([origin(rows)] if origins is None else origins))
    return gather(DAT, DAT.size("short"), [DAT.section(part) for part in parts], evidence)


def series_of(rows: list[Row], arm: Arm) -> Series:
    return results_of(rows).series(arm)


def page(results: Results) -> str:
    return markdown(study_page(results))


def in_terminal(results: Results, width: int = 80) -> list[str]:
    console = console_for(width)
    console.file = io.StringIO()
    show(study_page(results), console)
    return console.file.getvalue().splitlines()


@given(st.integers(0, 100), st.integers(0, 1000))
def test_two_accuracies_agree_up_to_five_hundredths(paper: int, ours: int) -> None:
    agrees = abs(10 * paper - ours) <= 50
    assert verdict(paper / 100, ours / 1000) == ("agrees" if agrees else "differs")


@pytest.mark.parametrize("ours", [0.0, 0.5, 1.0])
def test_where_the_paper_is_silent_or_we_are_there_is_no_more_to_say(ours: float) -> None:
    assert verdict(None, ours) == "silent"
    assert verdict(ours, None) == "missing"
    assert verdict(None, None) == "missing"


def test_ours_is_the_mean_over_seeds_and_the_interval_that_of_all_samples() -> None:
    rows = [
        *rows_of([LSTM], [0], lambda *_: 0.90),
        *rows_of([LSTM], [2], lambda *_: 0.60),
        *rows_of([LSTM], [1], lambda *_: 0.75),
    ]
    entry = series_of(rows, LSTM).at(25)
    assert (entry.reference, entry.verdict) == (0.83, "differs")
    assert entry.mean == pytest.approx(0.75)
    assert entry.by_seed == {0: 0.9, 1: 0.75, 2: 0.6}
    assert list(entry.by_seed) == [0, 1, 2]
    assert entry.samples == 3000
    assert entry.interval == wilson(2250, 3000)
    assert entry.spread == (0.6, 0.9)


def test_rows_of_fewer_samples_are_left_out_and_a_sentence_says_so() -> None:
    usual, few = rows_of([LSTM], [0, 2], lambda *_: 0.90), rows_of([LSTM], [1], lambda *_: 0.75, total=400)
    results = results_of([*usual, *few], ("table1",))
    assert {row.total for row in results.rows} == {1000}
    assert {row.seed for row in results.left_out} == {1}
    told = "Left out, because numbers of samples are not mixed: 24 rows of 400 samples, at n = 5, 10,"
    assert told in page(results)
    assert told in " ".join(" ".join(in_terminal(results)).split())


def test_a_length_may_have_fewer_samples_than_others_and_the_page_says_so() -> None:
    rows = [replace(row, correct=9, total=10) if row.length == 75 else row for row in rows_of([LSTM], [0], lambda *_: 0.90)]
    results = results_of(rows, ("table1",))
    assert not results.left_out
    assert "1,000 samples a length and seed, but 10 at n = 75." in page(results)


def test_the_papers_own_numbers_agree_everywhere() -> None:
    lines = [series_of(rows_of(), arm) for arm in ARMS]
    assert tally(lines) == "312 values: 168 agrees, 144 silent"
    assert all(line.seeds == [0] for line in lines)


def test_what_has_no_rows_is_missing_and_stays_in_its_place() -> None:
    results = results_of([row for row in rows_of() if row.model != "lstm" and row.length != 75])
    for arm in ARMS:
        scores = results.series(arm).scores
        assert [score.length for score in scores] == list(LENGTHS)
        for score in scores:
            missing = arm.model == "lstm" or score.length == 75
            assert (score.verdict == "missing") == (score.mean is None) == missing


def test_rows_of_another_task_training_or_size_are_not_taken_for_an_arms() -> None:
    rows = rows_of([LSTM])
    others = [
        replace(row, **change) for row in rows for change in ({"task": "modulo"}, {"training": "delayed"}, {"size": "paper"})
    ]
    assert series_of(others, LSTM).verdicts == {"missing": 12}


def test_two_runs_of_one_seed_are_refused_by_name() -> None:
    rows = rows_of([LSTM])
    other = [replace(row, run="f" * 12) for row in rows]
    with pytest.raises(LabError, match=f"table1 lstm end-to-end, seed 0: {rows[0].run} and ffffffffffff"):
        series_of(rows + other, LSTM)


def test_every_claim_holds_in_what_the_paper_says() -> None:
    assert [finding.verdict for finding in results_of(rows_of()).findings()] == ["holds"] * len(CLAIMS)


def test_no_claim_is_judged_without_rows() -> None:
    assert {finding.verdict for finding in results_of([]).findings()} == {"missing"}


def spoilt(cell: Arm, length: int, accuracy: float) -> list[Row]:
    """The paper's numbers, but for one."""
    return rows_of(accuracy=lambda c, s, n: accuracy if (c, n) == (cell, length) else as_in_the_paper(c, s, n))


@pytest.mark.parametrize(
    ("cell", "length", "accuracy", "claim"),
    [
        (arm_of("figure1", "lstm"), 25, 0.90, "lstm below 0.90"),
        (arm_of("figure1", "transformer"), 50, 0.51, "transformer at least"),
        (arm_of("figure1", "parallel"), 50, 0.51, "every hybrid, end to end"),
        (arm_of("figure1", "parallel"), 20, 0.89, "every hybrid, end to end"),
        (SANDWICH, 75, 0.90, "every delayed hybrid above"),
        (SANDWICH, 100, 0.95, "every delayed hybrid lower"),
        (arm_of("table2", "lstm"), 100, 0.98, "lstm at least 0.99"),
        (arm_of("table2", "sandwich"), 75, 0.31, "every other architecture"),
        (arm_of("table1", "sandwich"), 25, 0.98, "transformer and every hybrid"),
    ],
)
def test_one_number_on_the_wrong_side_is_against_its_claim_and_named(
    cell: Arm, length: int, accuracy: float, claim: str
) -> None:
    findings = results_of(spoilt(cell, length, accuracy)).findings()
    (against,) = [finding for finding in findings if finding.verdict == "does not hold"]
    assert against.claim.checked.startswith(claim)
    assert f"{cell} ({accuracy:.3f} at n={length})" in against.evidence


def test_a_claim_with_a_missing_cell_is_open_and_says_how_much_holds() -> None:
    rows = [row for row in rows_of() if report_results.arm_of(row) != SANDWICH]
    (finding,) = [f for f in results_of(rows).findings() if f.claim.checked.startswith("every delayed hybrid above")]
    assert (finding.verdict, finding.evidence) == ("missing", "4 of 4 checks hold; 1 of 5 checks have no rows")


def test_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    rows = rows_of(seeds=(0, 1))
    (tmp_path / "results.jsonl").write_text(as_jsonl(rows))
    assert read_rows(tmp_path / "results.jsonl") == rows


@pytest.mark.parametrize(
    "line",
    [
        *("", "{", "5", "null", '{"arm": "table1"}', '{"part": "table1"}'),
        *(json.dumps(rows_of([LSTM])[0].to_json() | change) for change in ({"correct": 1001}, {"total": 0}, {"seed": "0"})),
        *(
            json.dumps(rows_of([LSTM])[0].to_json() | change)
            for change in ({"model": 3}, {"more": 1}, {"length": True}, {"tokens": -1})
        ),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(as_jsonl(rows_of([LSTM])[:1]) + line + "\n")
    with pytest.raises(LabError, match=r"results\.jsonl, line 2"):
        read_rows(path)


@given(st.lists(st.sampled_from(range(26)), max_size=12), st.lists(st.sampled_from(range(26)), max_size=12))
def test_merging_is_a_union_whatever_the_order(here: list[int], there: list[int]) -> None:
    first, second = (rows_of([ARMS[place] for place in dict.fromkeys(places)], lengths=(5,)) for places in (here, there))
    assert set(merge({"here": first, "there": second})) == set(first) | set(second)
    assert len(merge({"here": first, "there": second})) == len(set(first) | set(second))


def test_one_run_with_two_results_is_refused_by_both_their_names() -> None:
    (row,) = rows_of([LSTM], lengths=(5,))[:1]
    other = replace(row, correct=7)
    with pytest.raises(LabError, match=rf"run {row.run}, n=5, recall: 1000 of 1000 .* in here, 7 of 1000 in there"):
        merge({"here": [row], "there": [other]})


def test_one_run_may_speak_for_two_cells_but_not_differently() -> None:
    (row,) = rows_of([LSTM], lengths=(5,))[:1]
    assert len(merge({"here": [row, replace(row, arm="readings")]})) == 2
    with pytest.raises(LabError, match="two results"):
        merge({"here": [row, replace(row, arm="readings", correct=3)]})


def entry_lines(lines: list[str], name: str, count: int) -> list[list[str]]:
    """The lines of numbers under the line that names an entry."""
    at = next(number for number, line in enumerate(lines) if line.startswith(name))
    return [line.split() for line in lines[at + 1 : at + 1 + count]]


def test_the_terminal_shows_paper_ours_every_seed_interval_and_verdict() -> None:
    lines = in_terminal(results_of(rows_of(seeds=(0, 1))))
    shown = entry_lines(lines, "lstm, LSTM, end-to-end: 12 agrees", 7)
    assert [" ".join(words[:2]) if words[0] == "seed" else words[0] for words in shown] == [
        *("paper", "all", "seed 0", "seed 1", "low", "high", "verdict")
    ]
    assert shown[0][-1] == shown[1][-1] == "0.28"
    assert shown[-1][1:] == ["="] * 12
    assert max(map(len, lines)) <= 80


def test_lengths_that_do_not_fit_stand_below_each_other() -> None:
    lines = in_terminal(results_of(rows_of(), ("table1",)), width=40)
    heads = [line.split()[1:] for line in lines if line.split()[:1] == ["n"]]
    assert [int(length) for head in heads for length in head] == list(LENGTHS)
    assert len(heads) == 2
    assert max(map(len, lines)) <= 40


def test_the_terminal_shows_missing_cells_as_missing() -> None:
    lines = in_terminal(results_of(rows_of([cell for cell in ARMS if cell.model != "lstm"])))
    assert entry_lines(lines, "lstm, LSTM, end-to-end: 12 missing", 2)[1] == ["all", *["–"] * 12]


def cells_of(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]


DETAILS = 11
"""Columns of the table that has every number: model, in the paper, training, n, question, paper, mean, ..."""


def details(text: str, model: str, training: str) -> list[list[str]]:
    return [cells for cells in cells_of(text) if len(cells) == DETAILS + 1 and (cells[0], cells[2]) == (model, training)]


def test_every_number_of_the_page_has_seeds_samples_interval_verdict_and_origin() -> None:
    text = page(results_of(rows_of(seeds=(0, 1))))
    (line,) = [cells for cells in details(text, "lstm", "end-to-end") if (cells[3], cells[5]) == ("100", "0.28")]
    low, high = wilson(560, 2000)
    assert line[5:] == ["0.28", "0.280", "0: 0.280, 1: 0.280", f"{low:.3f}–{high:.3f}", "2 × 1000", "agrees", "[1](#made-1)"]
    numbers = [cells for cells in cells_of(text) if len(cells) == DETAILS + 1 and cells[3].isdigit()]
    assert len(numbers) == 26 * 12
    for word in ("lengthlab reproduce dat", "0123456789ab", "a slide rule", "torch 2.13.0", "2026-01-02", "90 seconds"):
        assert word in text.split("## Where the numbers come from")[1]


def test_the_page_shows_missing_cells_and_fills_none() -> None:
    text = page(results_of(rows_of([cell for cell in ARMS if cell != SANDWICH])))
    (brief,) = [
        cells for cells in cells_of(text) if cells[0] == "sandwich" and cells[2:] == ["delayed", *["missing"] * 12, "–"]
    ]
    assert brief[1] == "LSTM ∘ Attn ∘ LSTM"
    assert [cells[-2] for cells in details(text, "sandwich", "delayed")] == ["missing"] * 12


def test_a_seed_that_other_cells_of_the_part_have_is_shown_as_missing() -> None:
    others = [cell for cell in ARMS if cell.name == "figure1" and cell != SANDWICH]
    results = results_of([*rows_of(others, (0, 1, 2)), *rows_of([SANDWICH], (0, 2)), *rows_of([LSTM])])
    text = page(results)
    assert "0, 2; 1 missing" in [cells[-1] for cells in cells_of(text) if (cells[0], cells[2]) == ("sandwich", "delayed")]
    (at75,) = [cells for cells in details(text, "sandwich", "delayed") if cells[3] == "75"]
    assert at75[7] == "0: 0.950, 1: missing, 2: 0.950"
    one = [cells for cells in details(text, "lstm", "end-to-end") if cells[3] == "75" and cells[5] == "0.37"]
    assert "missing" not in one[0][7]  # no arm of Table 1 has another seed
    shown = entry_lines(in_terminal(results), "sandwich, LSTM ∘ Attn ∘ LSTM, delayed: 12 silent", 3)
    assert shown[2] == ["seed", "1", *["–"] * 12]
    assert "LSTM ∘ Attn ∘ LSTM, 2 of 3 seeds" in texts(pictures(study_page(results))["figure1.svg"])


def test_a_claim_says_what_each_seed_says_of_it() -> None:
    def worse(cell: Arm, seed: int, length: int) -> float:
        return 0.0 if (cell, seed, length) == (SANDWICH, 1, 75) else as_in_the_paper(cell, seed, length)

    cells = [cell for cell in ARMS if cell.name == "figure1"]
    rows = [*rows_of(cells, (0, 1), worse), *rows_of([cell for cell in cells if cell != SANDWICH], (2,))]
    results = results_of(rows, ("figure1",))
    (claim,) = [claim for claim in CLAIMS if "three times" in claim.words]
    assert results.verdicts_by_seed(claim) == {0: "holds", 1: "does not hold", 2: "missing"}
    assert "0: holds, 1: does not hold, 2: missing" in page(results)
    assert "0: holds, 1: does not hold, 2: missing" in " ".join(in_terminal(results))


def test_each_number_names_the_command_that_made_it() -> None:
    rows = rows_of([LSTM, SANDWICH])
    here, there = ([row for row in rows if row.model == model] for model in ("lstm", "sandwich"))
    made = [origin(there, command="on the GPU", date="2026-02"), origin(here, date="2026-01"), origin(here, date="2026-01")]
    results = results_of(rows, origins=made)
    assert [entry.date for entry in results.evidence.origins] == ["2026-01", "2026-02"]
    assert {cells[-1] for cells in details(page(results), "sandwich", "delayed")} == {"[2](#made-2)"}


def readings_rows() -> list[Row]:
    return rows_of([reading.arm for reading in READINGS if reading.covers == "part"], accuracy=lambda *_: 0.75)


def test_every_table_of_the_page_is_rectangular() -> None:
    text = page(results_of(rows_of() + readings_rows(), (*TABLES, "readings")))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(cells) for cells in cells_of(table)}) == 1


def test_readings_have_a_table_of_their_own() -> None:
    results = results_of(readings_rows(), ("readings",))
    text = page(results)
    lines = [
        cells for cells in cells_of(text) if cells[0].startswith(("attention-on-lstm", "hybrid-block")) and len(cells) == 18
    ]
    assert len(lines) == len(READINGS)
    for cells in lines:
        assert set(cells[5:17]) == ({"0.75"} if cells[2] == "the whole part" else {"missing"})
    low, high = wilson(750, 1000)
    assert text.count(f"| 0.750 | 0: 0.750 | {low:.3f}–{high:.3f} |") == 6 * 12 * 3  # all, modulo and recall
    assert len([line for line in in_terminal(results) if line.split()[:2] == ["recall", "0.75"]]) == 6


def test_the_figures_show_every_number_and_are_the_same_every_time() -> None:
    made = study_page(results_of(rows_of([cell for cell in ARMS if cell != SANDWICH])))
    drawn = pictures(made)
    assert list(drawn) == [f"{part}.{form}" for part in TABLES for form in ("svg", "png")]
    assert drawn == pictures(made)
    figure = texts(drawn["figure1.svg"])
    assert figure.count("0.95") == 4
    assert figure.count("–") == 12
    assert figure.count("sandwich") == 2
    assert b"<dc:date>" not in drawn["table1.svg"]
    assert texts(drawn["table1.svg"]).count("0.28") == 2  # ours and the paper's


def test_a_part_without_rows_has_no_figure() -> None:
    assert list(pictures(study_page(results_of(rows_of([LSTM]))))) == ["table1.svg", "table1.png"]


def test_provenance_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = [origin(rows_of([LSTM])), origin(rows_of([SANDWICH]), size="paper")]
    path = tmp_path / "provenance.json"
    assert read_origins(path) == []
    path.write_text(as_text(made))
    assert read_origins(path) == made
    assert unite(made, [row.run for row in rows_of([SANDWICH])]) == made[1:]


def test_the_page_says_which_runs_of_a_command_it_shows_and_that_entries_may_share_some() -> None:
    """Runs of a recipe that was replaced stay in the provenance, or the seconds would be those of fewer runs than they were."""
    ours, others = rows_of([LSTM]), rows_of([SANDWICH])
    made = [origin([*ours, *others]), origin(ours, command="lengthlab reproduce dat --part table1")]
    told = page(results_of(ours, ("table1",), made)).split("## Where the numbers come from")[1]
    assert "2 runs (1 of them on this page), 90 seconds" in told
    assert "1 run, 90 seconds" in told
    assert "Some runs are in several entries" in told
    alone = page(results_of(ours, ("table1",), made[1:]))
    assert "several entries" not in alone
    assert "on this page" not in alone


@pytest.mark.parametrize("text", ["{", "5", '[{"command": "x"}]', '{"command": "x"}'])
def test_a_file_that_is_no_provenance_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "provenance.json"
    path.write_text(text)
    with pytest.raises(LabError, match=r"provenance\.json is not a provenance"):
        read_origins(path)


def test_seconds_of_runs_side_by_side_count_once() -> None:
    def made(seconds: float, date: str) -> dict[str, object]:
        return {"seconds": seconds, "date": f"2026-01-02T03:{date}+00:00"}

    # Two side by side, then nothing for a minute, then one more.
    assert _busy([made(60, "01:00"), made(90, "01:10"), made(10, "02:20")]) == 90 + 10
