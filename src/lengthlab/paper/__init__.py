"""What the paper says, as data: its cells, its numbers, its claims, and what can be read in more than one way. No torch."""

from lengthlab.paper.cells import CELLS as CELLS
from lengthlab.paper.cells import LENGTHS as LENGTHS
from lengthlab.paper.cells import PARTS as PARTS
from lengthlab.paper.cells import Cell as Cell
from lengthlab.paper.claims import CLAIMS as CLAIMS
from lengthlab.paper.claims import Claim as Claim
from lengthlab.paper.readings import READINGS as READINGS
from lengthlab.paper.readings import Reading as Reading
from lengthlab.paper.values import SOURCE as SOURCE
from lengthlab.paper.values import value as value
