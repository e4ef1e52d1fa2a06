"""`lengthlab why` against models whose answer is known."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

from lengthlab.cli import cli
from lengthlab.errors import LabError
from lengthlab.evaluation.accuracy import accuracy
from lengthlab.inspection.why import examine
from lengthlab.inspection.why.attention_aim import aims_at, right_places
from lengthlab.inspection.why.breaking_length import foretell, measured_length
from lengthlab.inspection.why.parts import parts_of
from lengthlab.inspection.why.pathways import pathways_at
from lengthlab.inspection.why.remainder import remainders
from lengthlab.inspection.why.samples import questions_at
from lengthlab.inspection.why.state_probe import Probe
from lengthlab.inspection.why.words import paragraph
from lengthlab.report.html_page import report_html
from lengthlab.report.ranks import rank_correlation
from lengthlab.report.sources import read_sources
from lengthlab.report.terminal import as_text
from lengthlab.report.why_page import why_page, why_summary
from lengthlab.report.why_section import FULL
from lengthlab.store import Folder
from lengthlab.store.diagnosis import FILE, Aim, Breaking, Diagnosis, Pathways, StateAt, read_diagnosis, write_diagnosis
from lengthlab.store.rows import Count
from lengthlab.tasks import ModuloRecall, modulo, recall
from lengthlab.tasks.group_recall import GroupRecall
from lengthlab.training import train
from page_runs import write_runs
from small_runs import end_to_end_run, folder_of
from why_by_hand import Foreign, counter, recaller

RECALL = recall(values=5, keys=40)
SUM = modulo(modulus=2, values=6, keys=120)


@pytest.fixture(scope="module")
def drifting() -> Diagnosis:
    network = counter(SUM, drift=0.0125)
    lengths = [5, 10, 20, 30, 38, 42, 50, 80]
    return examine(network, SUM, (1, 10), lengths, accuracy(network, SUM, lengths, samples=200), "abc", "counter")


def test_what_attention_alone_answers_has_attentions_share_1() -> None:
    network = recaller(RECALL)
    for length in (5, 40):
        (row,) = pathways_at(network, parts_of(network), RECALL, length, reset_at=5, samples=60)
        assert row.whole == 1.0
        assert row.cut["another"] == row.cut["zeros"] == 1.0
        assert row.cut["attention"] <= 0.4
        assert row.attention_share == 1.0


def test_so_it_has_in_anybodys_model() -> None:
    network = Foreign(RECALL.vocabulary).eval()
    (row,) = pathways_at(network, parts_of(network), RECALL, 8, samples=60)
    assert (row.whole, row.attention_share) == (1.0, 1.0)
    assert set(row.cut) == {"attention", "another", "zeros"}


def test_a_counter_is_carried_by_its_state_and_a_probe_reads_it_at_every_length() -> None:
    network = counter(SUM)
    found = examine(network, SUM, (1, 10), [5, 10, 40, 100], accuracy(network, SUM, [10, 100], samples=50))
    assert {row.attention_share for row in found.pathways} == {0.0}
    assert all(row.cut["another"] < 0.7 for row in found.pathways)
    assert {state.right for state in found.states} == {1.0}
    assert max(state.length for state in found.states) == 100
    (line,) = found.breakings
    assert (line.rule, line.predicted, line.measured) == ("none", None, None)


def test_a_state_that_is_reset_at_the_ranges_end_is_no_longer_right() -> None:
    network = counter(SUM)
    (row,) = pathways_at(network, parts_of(network), SUM, 30, reset_at=10, samples=100)
    assert row.whole == 1.0
    assert 0.3 < row.cut["reset"] < 0.7


def test_where_a_linear_drift_will_cross_is_foretold_from_the_training_range(drifting: Diagnosis) -> None:
    (line,) = drifting.breakings
    assert line.rule == "drift"
    assert line.growth == pytest.approx(1.0, abs=0.1)
    assert line.predicted == pytest.approx(40, rel=0.15)  # half the way between two states, 0.5, at 0.0125 a step
    assert line.measured == pytest.approx(40, abs=2)
    assert "drifts" in drifting.words


def test_rare_slips_are_foretold_by_their_rate() -> None:
    short = [StateAt(n, "sum", 2000, (1 - 0.002) ** n, q=0.1) for n in (4, 6, 8, 10)]
    outlook = foretell(short, in_state=True)
    assert outlook.rule == "slips"
    assert outlook.length == pytest.approx(52.6, rel=0.02)  # 0.998^52.6 is 0.90


def test_what_is_not_in_the_state_is_taken_to_end_with_the_range() -> None:
    short = [StateAt(n, "sum", 2000, 0.5, q=1.8) for n in (4, 10)]
    assert foretell(short, in_state=False).length == 10
    assert foretell(short, in_state=True).length == 4


@pytest.mark.parametrize(
    ("shares", "length"), [([1, 1, 1], None), ([1, 0.8, 0.5], 14.14), ([0.5, 0.4, 0.3], 10), ([1, 0.8, 1], None)]
)
def test_where_it_did_break_is_read_between_lengths(shares: list[float], length: float | None) -> None:
    counts = [Count(n, "sum", int(1000 * share), 1000) for n, share in zip((10, 20, 40), shares, strict=True)]
    found = measured_length(counts, "sum")
    assert found == (None if length is None else pytest.approx(length, rel=0.01))


def test_a_sharp_head_a_blurred_one_and_one_that_looks_aside_are_told_apart() -> None:
    aims = {}
    for name, network in {
        "sharp": recaller(RECALL),
        "blurred": recaller(RECALL, sharpness=1.0),
        "aside": recaller(RECALL, aside=1),
    }.items():
        (aims[name],) = aims_at(network, parts_of(network), RECALL, "recall", 39, samples=60)
    assert aims["sharp"].weight > 0.99
    assert (aims["sharp"].rank, aims["sharp"].right) == (1.0, 1.0)
    assert aims["sharp"].entropy < 0.01
    assert aims["blurred"].weight < 0.5
    assert aims["blurred"].rank == 1.0  # it is the heaviest all the same
    assert aims["blurred"].entropy > 3
    assert aims["aside"].wrong > 0.8
    assert aims["aside"].weight < 0.01


def test_the_right_place_is_that_of_the_value_beside_the_key() -> None:
    (group,) = questions_at(RECALL, 6, samples=20)
    place_B = right_places(RECALL, group, "recall")
    at_B, wanted_B = group.asked("recall")
    tokens_BT = group.batch.tokens_BT
    assert torch.equal(tokens_BT.gather(1, place_B[:, None])[:, 0], wanted_B)
    key_B = tokens_BT.gather(1, at_B[:, None])[:, 0]
    assert torch.equal(tokens_BT.gather(1, place_B[:, None] - 1)[:, 0], key_B)


def test_of_a_permutation_the_sign_may_be_left_and_of_a_sum_a_residue() -> None:
    task = GroupRecall("S3", keys=8, questions=("product",))
    token = {word: number for number, word in enumerate(task.words)}
    wanted = torch.tensor([token[word] for word in ("123", "231", "312", "132", "213", "321")] * 5)
    said = torch.tensor(
        [token["123"] if word in ("123", "231", "312") else token["132"] for word in ("123", "231", "312", "132", "213", "321")]
        * 5
    )
    found = {each.what: each.right for each in remainders(task, "product", 9, said, wanted)}
    assert found["sign"] == 1.0
    assert found["answer 231"] == 0.0
    numbers = ModuloRecall(modulus=6, values=6, keys=8)
    wanted = torch.arange(6).repeat(5) + 4
    found = {each.what: each.right for each in remainders(numbers, "modulo", 9, (wanted - 4 + 3) % 6 + 4, wanted)}
    assert (found["modulo 3"], found["modulo 2"]) == (1.0, 0.0)


def test_a_probe_knows_how_far_a_state_has_gone() -> None:
    generator = torch.Generator().manual_seed(0)
    wanted_N = torch.arange(200) % 2
    state_ND = torch.stack([wanted_N.double(), torch.zeros(200)], dim=1) + 0.01 * torch.randn(200, 2, generator=generator)
    probe = Probe.fitted(state_ND, wanted_N)
    way = probe.way(torch.tensor([[0.0, 0.0], [0.25, 0.0], [0.5, 0.0]]), torch.tensor([0, 0, 0]))
    assert way.tolist() == pytest.approx([0.0, 0.5, 1.0], abs=0.03)


def pathways(length: int, question: str, whole: float, **cut: float) -> Pathways:
    return Pathways(length, question, 200, 0.1, whole, cut)


def said(*rows: Pathways, aims: tuple[Aim, ...] = (), states: tuple[StateAt, ...] = (), state: tuple[str, ...] = ()) -> str:
    line = Breaking("q", "none", 0.0, 0.1, None, None, 40)
    found = Diagnosis("", "task", "model", (1, 10), 1.0, "", rows, aims, states, (line,) if state else ())
    return paragraph(found, state)


def test_words_follow_from_numbers() -> None:
    inside, beyond = pathways(10, "q", 1.0, attention=0.1, another=1.0), pathways(40, "q", 0.4, attention=0.1, another=0.4)
    assert "shortcut" in said(inside, beyond, state=("q",))
    assert "delay attention" in said(inside, beyond, state=("q",))
    wrong = Aim(40, "q", "attend", 0, 100, 0.1, 3.0, 0.4, right=0.1, wrong=0.8, spread=0.1)
    assert "a wrong place in 0.80" in said(inside, beyond, aims=(wrong,))
    assert "positions" in said(inside, beyond, aims=(wrong,))
    blurred = replace(wrong, entropy=3.0, wrong=0.1, spread=0.8)
    assert "spread out (entropy 3.0)" in said(inside, beyond, aims=(blurred,))
    assert "log-n" in said(inside, beyond, aims=(blurred,))
    kept = pathways(10, "q", 1.0, attention=1.0, another=0.1), pathways(40, "q", 0.4, attention=0.4, another=0.1)
    assert "state is still right" in said(*kept, states=(StateAt(40, "q", 100, 0.98, 0.3),), state=("q",))
    assert "not learned" in said(pathways(10, "q", 0.5, attention=0.1), state=("q",))
    assert "try longer lengths" in said(inside)


def test_a_network_is_only_looked_at() -> None:
    network = recaller(RECALL).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    examine(network, RECALL, (1, 2), [2])
    assert network.training
    assert network.state_dict().keys() == before.keys()
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_a_diagnosis_is_the_same_after_it_was_written(drifting: Diagnosis, tmp_path: Path) -> None:
    folder = Folder(tmp_path / "run")
    assert read_diagnosis(folder) is None
    write_diagnosis(folder, drifting)
    kept = read_diagnosis(folder)
    assert kept is not None
    assert kept.to_json() == drifting.to_json()
    assert as_text(why_page(kept)) == as_text(why_page(Diagnosis.from_json(drifting.to_json())))


@pytest.mark.parametrize("text", ["", "[]", "{", '{"version": 1}', '{"version": 1, "pathways": [{"length": "x"}]}'])
def test_a_foreign_file_is_named_and_left_alone(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(LabError, match=r"why\.json"):
        read_diagnosis(Folder(tmp_path))
    assert (tmp_path / FILE).read_text() == text


def test_of_another_version_it_is_measured_anew(drifting: Diagnosis, tmp_path: Path) -> None:
    Folder(tmp_path).write_json(FILE, drifting.to_json() | {"version": 99})
    assert read_diagnosis(Folder(tmp_path)) is None


def test_nothing_is_wider_than_80_columns(drifting: Diagnosis) -> None:
    page = as_text(why_page(drifting), width=80)
    assert max(map(len, page.splitlines())) <= 80
    assert "foretold" in page
    assert "▁" in page or "█" in page


def test_several_runs_are_ranked(drifting: Diagnosis) -> None:
    (line,) = drifting.breakings
    several = [
        replace(drifting, breakings=(replace(line, predicted=10.0 * n, measured=12.0 * n, measured_to=200),))
        for n in range(1, 7)
    ]
    assert "1.00" in as_text(why_summary(several))
    assert rank_correlation([(1, 4), (2, 3), (3, 2), (4, 1)]) == -1.0


def test_the_command_keeps_it_beside_the_run_and_the_page_shows_it(tmp_path: Path) -> None:
    run = end_to_end_run(20)
    train(run, tmp_path)
    folder = folder_of(tmp_path, run)
    asked = ["why", str(folder.path), "--device", "cpu", "--lengths", "3,5"]
    shown = CliRunner().invoke(cli, asked, env={"COLUMNS": "80"}, catch_exceptions=False)
    assert shown.exit_code == 0
    assert "Who carries the answer" in shown.stdout
    kept = json.loads((folder.path / FILE).read_text())
    assert {row["length"] for row in kept["pathways"]} == {3, 5}
    again = CliRunner().invoke(cli, ["why", run.id[:6], "--store", str(tmp_path), "--json"], catch_exceptions=False)
    assert json.loads(again.stdout) == kept
    page = report_html(read_sources([str(tmp_path)])).decode()
    assert '<section id="why"' in page
    assert kept["words"][:40] in page


def test_a_run_that_is_not_finished_is_said_so(tmp_path: Path) -> None:
    Folder(tmp_path / ("1" * 20)).write_json("run.json", {})
    shown = CliRunner().invoke(cli, ["why", "1111", "--store", str(tmp_path)])
    assert isinstance(shown.exception, LabError)
    assert "not finished" in str(shown.exception)


def test_a_page_of_a_hundred_runs_that_were_looked_into_stays_below_two_megabytes(drifting: Diagnosis, tmp_path: Path) -> None:
    """A page of a hundred has 0.4 MB without (test_html.py), and shows the tables of `FULL` of them."""
    hostile = "</script><script>alert(1)</script>"
    store = write_runs(tmp_path, 3)
    before = len(report_html(read_sources([str(store)])))
    aims = tuple(Aim(n, "recall", "body.attention.0.residual.attend", h, 100, *[0.5] * 6) for n in range(8) for h in range(4))
    large = replace(drifting, aims=aims, pathways=drifting.pathways * 2, pictures=drifting.pictures * 2, words=hostile * 5)
    for number in (1, 2):
        write_diagnosis(Folder(store / f"{number:012x}"), large)
    (store / f"{0:012x}" / FILE).write_text("{")
    page = report_html(read_sources([str(store)])).decode()
    assert (len(page) - before) / 2 * FULL <= 1_500_000
    assert hostile not in page
    assert "why.json is truncated or foreign" in page
