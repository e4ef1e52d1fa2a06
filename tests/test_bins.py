"""Lengths that are shown as one, parts with lengths of their own, seeds that succeed, and claims on medians."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lengthlab.errors import LabError
from lengthlab.experiments import Arm, Check, Claim, Reference, Section, Size, Source, Study
from lengthlab.report.bins import bins_told, in_bins
from lengthlab.report.evidence import Evidence
from lengthlab.report.markdown import markdown
from lengthlab.report.results import Results, gather
from lengthlab.report.scores import Score
from lengthlab.report.study_page import study_page
from lengthlab.spec.run import Run
from lengthlab.store.rows import Row, as_jsonl

BINNED = Size("gpu", (1, 4), (2, 4, 6, 8), bins=(4, 8))
ARM, OTHER = Arm("one", "gpt2", "copy", "end-to-end"), Arm("two", "gpt2", "sort", "end-to-end")


def no_run(arm: Arm, size: str) -> Run:
    raise AssertionError("nothing is trained here")


def row(arm: Arm, seed: int, length: int, correct: int, total: int = 10) -> Row:
    names = {"experiment": "tried", "size": "gpu", "arm": arm.name, "model": arm.model, "task": arm.task}
    return Row(length, "all", correct, total, **names, training=arm.training, seed=seed, run=f"{seed:012x}")  # type: ignore[arg-type]


def results_of(study: Study, rows: list[Row]) -> Results:
    return gather(study, study.sizes[0], study.sections_at(study.sizes[0]), Evidence(tuple(rows)))


def page_of(study: Study, rows: list[Row]) -> str:
    return markdown(study_page(results_of(study, rows)))


def tried(**parts: object) -> Study:
    return Study("tried", "Tried", "How far?", no_run, (BINNED,), **{"arms": (ARM,), **parts})  # type: ignore[arg-type]


@given(st.dictionaries(st.sampled_from(BINNED.lengths), st.integers(0, 10), min_size=1))
def test_a_bin_has_all_samples_of_its_lengths_or_is_missing(correct: dict[int, int]) -> None:
    found = {each.length: each for each in in_bins([row(ARM, 0, n, right) for n, right in correct.items()], BINNED)}
    for end in BINNED.bins:
        own = BINNED.in_bin(end)
        if set(own) <= set(correct):
            assert (found[end].correct, found[end].total) == (sum(correct[n] for n in own), 10 * len(own))
        else:
            assert end not in found


def test_runs_questions_and_tokens_of_a_bin_stay_apart() -> None:
    tokens = [replace(row(ARM, 0, n, 5), right_tokens=n, tokens=10, question="sum") for n in (2, 4)]
    first, second = in_bins([*tokens, *(row(ARM, 1, n, 9) for n in (2, 4))], BINNED)
    assert (first.question, first.right_tokens, first.tokens, first.seed) == ("sum", 6, 20, 0)
    assert (second.question, second.right_tokens, second.accuracy, second.seed) == ("all", None, 0.9, 1)


def test_without_bins_rows_are_as_they_are() -> None:
    rows = [row(ARM, 0, 2, 5)]
    assert in_bins(rows, replace(BINNED, bins=())) == rows
    assert bins_told(replace(BINNED, bins=())) == ""


@pytest.mark.parametrize(
    ("bins", "message"),
    [
        ((8, 4), "the shortest first"),
        ((3, 8), "no bin ends with the training range, at 4"),
        ((4,), "longer sequences are measured"),
        ((1, 4, 8), "nothing is measured in the one that ends at 1"),
    ],
)
def test_bins_that_cannot_be_are_refused_in_one_line(bins: tuple[int, ...], message: str) -> None:
    with pytest.raises(LabError, match=message):
        replace(BINNED, bins=bins)


def test_a_page_shows_bins_says_what_they_are_and_keeps_a_row_a_length() -> None:
    rows = [row(ARM, 0, n, right) for n, right in ((2, 10), (4, 9), (6, 5), (8, 2))]
    study = tried(claims=(Claim("It reaches far.", "at n = 8", (Check(ARM, 8, "≥", 0.35),)),))
    page = page_of(study, rows)
    assert "n = 4 stands for all samples of the lengths measured in 1…4 (2, 4), n = 8 for those in 5…8 (6, 8)." in page
    assert "| n=4 (1×) | n=8 (2×) |" in page
    assert "**0.950** | 0.350 |" in page
    assert "1 of 1 checks hold" in page
    assert as_jsonl(results_of(study, rows).evidence.rows) == as_jsonl(rows)


def test_a_claim_speaks_of_a_bin_by_its_end_alone() -> None:
    with pytest.raises(LabError, match="not measured at every size"):
        tried(claims=(Claim("It reaches far.", "at n = 6", (Check(ARM, 6, "≥", 0.9),)),))


def test_seeds_that_succeed_are_counted_and_have_a_mean_of_their_own() -> None:
    right = {0: (10, 10, 8, 8), 1: (10, 10, 6, 6), 2: (5, 5, 0, 0)}
    rows = [row(ARM, seed, n, each) for seed, found in right.items() for n, each in zip(BINNED.lengths, found, strict=True)]
    theirs = Reference("the paper", Source("A", "B", "C"), {(ARM, "all", 8): 0.75})
    page = page_of(tried(success=0.995, reference=theirs), rows)
    assert "Seeds succeed that are right in at least 0.995 of the samples at n = 4" in page
    assert "| succeed | n=4, all | n=4, successful | n=8, all | n=8, successful |" in page
    assert "| 2 of 3 | 0.833 | 1.000 | 0.467 | 0.700 \\[0.75\\] |" in page
    assert "succeed" not in page_of(tried(reference=theirs), rows)


def test_where_claims_go_by_the_median_it_stands_beside_the_means() -> None:
    rows = [row(ARM, seed, n, right) for seed, right in enumerate((10, 10, 0)) for n in BINNED.lengths]
    far = Claim("Far.", "the median", (Check(ARM, 8, "≥", 0.95),), by="median")
    page = page_of(tried(success=0.995, claims=(far,)), rows)
    assert "| n=8, all | n=8, successful | n=8, median |" in page
    assert "| 2 of 3 | 0.667 | 1.000 | 1.000 | 0.667 | 1.000 | 1.000 |" in page


def test_where_no_seed_succeeds_there_is_no_mean_over_those_that_do() -> None:
    page = page_of(tried(success=0.995), [row(ARM, 0, n, 5) for n in BINNED.lengths])
    assert "| 0 of 1 | 0.500 | – | 0.500 | – |" in page


def test_a_claim_may_be_judged_by_the_median() -> None:
    rows = [row(ARM, seed, n, right) for seed, right in enumerate((10, 10, 0)) for n in BINNED.lengths]
    check = (Check(ARM, 8, "≥", 0.95),)
    by_median = results_of(tried(claims=(Claim("Far.", "the median", check, by="median"),)), rows).findings()
    by_mean = results_of(tried(claims=(Claim("Far.", "the mean", check),)), rows).findings()
    assert [found[0].verdict for found in (by_median, by_mean)] == ["holds", "does not hold"]
    assert Score(8).median is None


def test_a_part_says_its_seeds_where_it_has_fewer_than_the_page_and_than_are_asked_for() -> None:
    sections = (Section("plain", "Plain", (ARM,)), Section("other", "Other", (OTHER,)))
    rows = [row(arm, seed, n, 5) for arm, seeds in ((ARM, 3), (OTHER, 2)) for seed in range(seeds) for n in BINNED.lengths]
    plain, _, other = page_of(tried(arms=(), sections=sections, seeds=4), rows).partition("## Other")
    assert "Seeds: 0, 1, 2, of the 4 that the study asks for;" in plain
    assert "Seeds here" not in plain
    assert "Seeds here: 0, 1, of the 4 that the study asks for." in other
    assert "Seeds here" not in page_of(tried(arms=(), sections=sections, seeds=2), rows)


SMALL, OWN = Size("cpu", (1, 2), (2, 4)), Size("gpu", (1, 3), (3, 9))


def test_a_part_has_lengths_of_its_own_and_is_there_at_its_sizes_alone() -> None:
    sections = (Section("plain", "Plain", (ARM,)), Section("own", "Own", (OTHER,), sizes=(OWN,)))
    study = Study("tried", "Tried", "How far?", no_run, (BINNED, SMALL), sections=sections)
    assert [section.name for section in study.sections_at(SMALL)] == ["plain"]
    assert study.size_of(OTHER, BINNED) == OWN
    assert study.size_of(OTHER, SMALL) is None
    page = page_of(study, [*(row(ARM, 0, n, 10) for n in BINNED.lengths), *(row(OTHER, 0, n, 7) for n in (3, 9))])
    assert "Trained on n = 1…3, measured to n = 9." in page
    assert "| n=3 (1×) | n=9 (3×) |" in page
    with pytest.raises(LabError, match="has part 'own' at size gpu alone, not at 'cpu'"):
        study.runs("cpu", [0], sections[1:])


def test_an_arm_is_not_measured_in_two_ways_and_parts_have_sizes_of_the_study() -> None:
    twice = (Section("plain", "Plain", (ARM,)), Section("own", "Own", (ARM,), sizes=(OWN,)))
    with pytest.raises(LabError, match="'one' is in two parts that are measured at different lengths"):
        Study("tried", "Tried", "How far?", no_run, (BINNED,), sections=twice)
    with pytest.raises(LabError, match="has no size 'huge'"):
        tried(arms=(), sections=(Section("own", "Own", (ARM,), sizes=(replace(OWN, name="huge"),)),))
