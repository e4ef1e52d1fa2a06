"""`lengthlab delay --survey`: delayed attention tried on every type of model that transformers has."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lengthlab.cli.pages import say, show_page
from lengthlab.errors import LabError, require
from lengthlab.store.disk import replace_file

if TYPE_CHECKING:
    from lengthlab.integrations.small_models import SmallModel
    from lengthlab.integrations.survey import Row


def run_survey(kind: str | None, only: str, page: Path | None) -> None:
    """Each type that is asked for; a line as it is found, then the page."""
    models = _models(kind, [name.strip() for name in only.split(",") if name.strip()])
    require(page is None or page.parent.is_dir(), f"there is no folder {page.parent if page else ''} to write the page to")
    require(page is None or not page.is_dir(), f"--page is a file, and {page} is a folder")
    from lengthlab.integrations.survey_workers import survey
    from lengthlab.report.markdown import markdown
    from lengthlab.report.survey_page import survey_page

    def tell(row: Row) -> None:
        say(f"{row.kind:<6}  {row.name:<26}  {row.verdict:<15}  {row.why}".rstrip(), err=True)

    rows = survey(models, tell)
    software = f"transformers {version('transformers')} and torch {version('torch').partition('+')[0]}"
    made = survey_page(rows, software)
    show_page(made)
    if page is not None:
        replace_file(page, markdown(made).encode())
        click.echo(f"Written to {page}.")


def _models(kind: str | None, only: list[str]) -> list[SmallModel]:
    """Of the kind, if one is named, and of these names, if there are any; a name may be of several kinds."""
    try:
        from lengthlab.integrations.small_models import KINDS, SmallModel, small_model, types_of
    except ImportError as error:
        raise LabError(f"the survey needs transformers: pip install 'lengthlab[huggingface]' ({error})") from error
    kinds = [each for each in KINDS if kind in (None, each)]
    models = [SmallModel(name, each) for each in kinds for name in types_of(each) if not only or name in only]
    for name in only:
        if name not in {model.name for model in models}:
            small_model(name, kinds[0])
    return models
