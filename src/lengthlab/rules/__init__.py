"""Rules: small Python functions over lists, carried out line by line and told as text or as words; no torch."""

from lengthlab.rules.dataset import rows as rows
from lengthlab.rules.dataset import write_rows as write_rows
from lengthlab.rules.exercise import EXERCISES as EXERCISES
from lengthlab.rules.exercise import Exercise as Exercise
from lengthlab.rules.exercise import exercise as exercise
from lengthlab.rules.program import Program as Program
from lengthlab.rules.program import draw_program as draw_program
from lengthlab.rules.reading import Reading as Reading
from lengthlab.rules.reading import Score as Score
from lengthlab.rules.reading import read_text as read_text
from lengthlab.rules.reading import read_words as read_words
from lengthlab.rules.reading import score_text as score_text
from lengthlab.rules.reading import score_words as score_words
from lengthlab.rules.rule import Rule as Rule
from lengthlab.rules.step import Step as Step
from lengthlab.rules.step import Trace as Trace
from lengthlab.rules.text import answer_text as answer_text
from lengthlab.rules.text import prompt_text as prompt_text
from lengthlab.rules.wording import FORMS as FORMS
from lengthlab.rules.wording import Wording as Wording
from lengthlab.rules.wording import vocabulary as vocabulary
