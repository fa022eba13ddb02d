"""What Alertmanager's HTTP API (v2) answers (since 0.16), and its configuration in it."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from hpcsite.verify.parsers import UnreadableError, reader
from hpcsite.verify.parsers.plain import cut, line_at

_CONFIGS = "_configs"
_DURATION = re.compile(r"(\d+)(ms|[wdhmsy])")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "y": 31536000}
# Alertmanager's own, where its configuration says nothing.
GROUP_WAIT_S = 30.0


@dataclass(frozen=True)
class Received:
    """An alert as Alertmanager has it, and the receivers that it goes to."""

    labels: Mapping[str, str]
    state: str
    receivers: tuple[str, ...]
    silenced_by: tuple[str, ...]
    inhibited_by: tuple[str, ...]


@dataclass(frozen=True)
class Alertmanager:
    """Its version, what each receiver is told by (webhook, email …), and the longest wait."""

    version: str
    receivers: Mapping[str, tuple[str, ...]]
    group_wait_s: float


@reader
def read_received(text: str) -> tuple[Received, ...]:
    """Read `/api/v2/alerts`."""
    listed = _json(text)
    if not isinstance(listed, list):
        raise UnreadableError(f"Alertmanager's answer is no list of alerts: {cut(str(listed))}")
    found = []
    for one in listed:
        status = one["status"]
        found.append(
            Received(
                labels={str(key): str(value) for key, value in one["labels"].items()},
                state=str(status["state"]),
                receivers=tuple(str(each["name"]) for each in one.get("receivers") or ()),
                silenced_by=tuple(map(str, status.get("silencedBy") or ())),
                inhibited_by=tuple(map(str, status.get("inhibitedBy") or ())),
            )
        )
    return tuple(found)


@reader
def read_status(text: str) -> Alertmanager:
    """Read `/api/v2/status`."""
    found = _json(text)
    try:
        config = yaml.safe_load(found["config"]["original"])
    except yaml.YAMLError as error:
        raise UnreadableError(
            f"Alertmanager's configuration is no YAML: {cut(str(error))}"
        ) from error
    receivers = {
        str(one["name"]): tuple(
            key.removesuffix(_CONFIGS)
            for key, value in one.items()
            if str(key).endswith(_CONFIGS) and value
        )
        for one in config["receivers"]
    }
    waits = [seconds(str(wait)) for wait in _waits(config["route"], 0)]
    version = str(found.get("versionInfo", {}).get("version", "?"))
    return Alertmanager(version, receivers, max(waits, default=GROUP_WAIT_S))


def _waits(route: Mapping[str, Any], depth: int) -> list[object]:
    """Return `group_wait` of a route and all below it."""
    if depth > 50:
        raise UnreadableError("Alertmanager's routes are deeper than 50")
    own = [route["group_wait"]] if "group_wait" in route else []
    below = [wait for one in route.get("routes") or () for wait in _waits(one, depth + 1)]
    return own + below


def seconds(text: str) -> float:
    """Read a duration as Prometheus writes it: `1m30s`; raises `UnreadableError`."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        raise UnreadableError(f"no duration: {cut(text)}")
    return sum(int(number) * _SECONDS[unit] for number, unit in parts)


def _json(text: str) -> Any:  # noqa: ANN401 - what JSON holds
    try:
        return json.loads(text.lstrip("\ufeff"))
    except ValueError as error:
        where = error.pos if isinstance(error, json.JSONDecodeError) else 0
        said = line_at(text, where) or "nothing"
        raise UnreadableError(f"Alertmanager's answer is no JSON: {said}") from error
