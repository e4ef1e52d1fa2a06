"""The page of a report, live: it reads run folders, and writes nothing."""
