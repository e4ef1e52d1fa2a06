"""How a section of a study is drawn: as it says, or by how many arms it has."""

from __future__ import annotations

from lengthlab.experiments.drawing import Grid, Strip
from lengthlab.experiments.study import Section
from lengthlab.report.page import Curves, Figure, Grids, Heatmap, Scores, Strips
from lengthlab.report.results import Results

FEW = 6
"""So many arms can be told apart as curves; more are drawn as a heat map, and so is what stands beside a reference."""


def figure_of(results: Results, section: Section, scores: Scores) -> Figure:
    """Curves, a heat map, grids or strips of these scores."""
    size, wanted = section.at(results.size) or results.size, section.figure
    title = section.title if len(results.study.sections) > 1 else results.study.title
    named = (section.name, title, f"{title}: accuracy by arm and length")
    given = (scores.entries, scores.lengths, scores.trained, scores.reference, *named)
    at = tuple(times * size.trained[1] for times in wanted.times) if wanted else ()
    chance = {question: dict.fromkeys(size.shown, share) for question, share in size.chance.items()}
    if isinstance(wanted, Grid):
        return Grids(*given, wanted.down, wanted.across, at, wanted.learned)
    if isinstance(wanted, Strip):
        return Strips(*given, at, chance)
    if len(section.arms) > FEW or scores.reference:
        return Heatmap(*given)
    return Curves(*given, chance)
