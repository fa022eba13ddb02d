"""Listens to a check: collects what it finds, and takes secrets out of what it reports."""

from pathlib import Path
from typing import Any

from hpcsite.deploy.plan.collect import Collector, Findings
from hpcsite.deploy.plan.masking import Masker
from hpcsite.deploy.plan.results import Reader


class Watcher:
    """A `Watch` that collects."""

    def __init__(self) -> None:
        self.masker = Masker()
        self._reader = Reader()
        self._collector = Collector(self.masker)

    @property
    def findings(self) -> Findings:
        """What was found so far."""
        return self._collector.findings

    def learn_secrets(self, folder: Path) -> None:
        """See `Watch`."""
        self.masker.learn(folder)

    def raw(self, event: dict[str, Any]) -> None:
        """See `Watch`."""
        found = self._reader.read(event)
        if found is not None:
            self._collector.add(found)
        self._mask(event)

    def _mask(self, event: dict[str, Any]) -> None:
        # The diffs stand in the plan itself, less those of secret files: not in the log once more.
        of_file = event.get("event") == "runner_on_file_diff"
        event["stdout"] = "" if of_file else self.masker.text(str(event.get("stdout") or ""))
        if "event_data" in event:
            event["event_data"] = self.masker.value(event["event_data"])
