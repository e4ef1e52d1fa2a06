"""What is kept of runs: folders (folder.py, disk.py), results as rows (rows.py), how sure a count makes us (interval.py), where
runs are (status.py, watch.py), why they go as far as they do (diagnosis.py). No torch.
"""

from lengthlab.store.disk import check_place as check_place
from lengthlab.store.disk import replace_file as replace_file
from lengthlab.store.folder import Busy as Busy
from lengthlab.store.folder import Folder as Folder
from lengthlab.store.folder import Store as Store
from lengthlab.store.folder import named_folders as named_folders
from lengthlab.store.status import Status as Status
from lengthlab.store.watch import Watch as Watch
