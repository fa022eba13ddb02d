"""What Prometheus's HTTP API (v1) answers: targets, rules, alerts, alertmanagers, instant vectors.

The same since Prometheus 2.0; fields that later versions add are not needed. Times are RFC 3339
with nanoseconds, values are strings (prometheus.io, "HTTP API").
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from hpcsite.verify.parsers import UnreadableError, reader
from hpcsite.verify.parsers.plain import cut, line_at

Labels = Mapping[str, str]
_TIME = re.compile(r"^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)$")
# What a rule or target has that was never looked at: Go's zero time.
_NEVER = "0001-01-01T00:00:00"


@dataclass(frozen=True)
class ScrapeTarget:
    """One active target. `scraped` is seconds since the epoch, None for never."""

    job: str
    instance: str
    address: str
    health: str
    error: str
    scraped: float | None
    interval: str


@dataclass(frozen=True)
class Rule:
    """One rule of a group; `alerting` or recording."""

    group: str
    name: str
    alerting: bool
    health: str
    error: str
    evaluated: float | None
    interval_s: float


@dataclass(frozen=True)
class Alert:
    """One alert. `since` is seconds since the epoch."""

    name: str
    labels: Labels
    state: str
    since: float | None


@dataclass(frozen=True)
class Sample:
    """One element of an instant vector."""

    labels: Labels
    value: float
    at: float


@reader
def read_targets(text: str) -> tuple[ScrapeTarget, ...]:
    """Read `/api/v1/targets`, which come in any order; by job and instance."""
    found = (_target(one) for one in _listed(_data(text), "activeTargets"))
    return tuple(sorted(found, key=lambda one: (one.job, one.instance, one.address)))


def _target(one: Mapping[str, Any]) -> ScrapeTarget:
    labels = one.get("labels") or {}
    found = one.get("discoveredLabels") or {}
    return ScrapeTarget(
        job=str(labels.get("job", "")),
        instance=str(labels.get("instance", "")),
        address=str(found.get("__address__", "")),
        health=_word(one, "health"),
        error=cut(str(one.get("lastError", ""))),
        scraped=_time(one.get("lastScrape")),
        interval=str(one.get("scrapeInterval", "")),
    )


@reader
def read_rules(text: str) -> tuple[Rule, ...]:
    """Read `/api/v1/rules`."""
    groups = _listed(_data(text), "groups")
    return tuple(_rule(group, rule) for group in groups for rule in _listed(group, "rules"))


def _rule(group: Mapping[str, Any], rule: Mapping[str, Any]) -> Rule:
    return Rule(
        group=str(group.get("name", "")),
        name=_word(rule, "name"),
        alerting=rule.get("type") == "alerting",
        health=_word(rule, "health"),
        error=cut(str(rule.get("lastError", ""))),
        evaluated=_time(rule.get("lastEvaluation")),
        interval_s=float(group.get("interval", 0)),
    )


@reader
def read_alerts(text: str) -> tuple[Alert, ...]:
    """Read `/api/v1/alerts`."""
    return tuple(
        Alert(
            name=str(_labels(one)["alertname"]),
            labels=_labels(one),
            state=_word(one, "state"),
            since=_time(one.get("activeAt")),
        )
        for one in _listed(_data(text), "alerts")
    )


@reader
def read_alertmanagers(text: str) -> tuple[str, ...]:
    """Read `/api/v1/alertmanagers`: the URLs of those that are in use."""
    return tuple(_word(one, "url") for one in _listed(_data(text), "activeAlertmanagers"))


@reader
def read_vector(text: str) -> tuple[Sample, ...]:
    """Read `/api/v1/query` of an expression that gives an instant vector."""
    data = _data(text)
    if data.get("resultType") != "vector":
        raise UnreadableError(f"Prometheus answers with {data.get('resultType')}, not a vector")
    found = []
    for one in _listed(data, "result"):
        at, value = one["value"]
        found.append(Sample(_strings(one.get("metric") or {}), float(value), float(at)))
    return tuple(found)


def _data(text: str) -> Mapping[str, Any]:
    """Return `data` of an answer; raises `UnreadableError` for one that tells of an error."""
    try:
        found = json.loads(text.lstrip("\ufeff"))
    except ValueError as error:
        where = error.pos if isinstance(error, json.JSONDecodeError) else 0
        said = line_at(text, where) or "nothing"
        raise UnreadableError(f"Prometheus's answer is no JSON: {said}") from error
    if not isinstance(found, dict) or found.get("status") != "success":
        why = found.get("error") if isinstance(found, dict) else found
        raise UnreadableError(f"Prometheus answers with an error: {cut(str(why))}")
    data = found.get("data")
    if not isinstance(data, dict):
        raise UnreadableError(f"Prometheus's answer has no data: {cut(text.strip())}")
    return data


def _listed(data: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects; Go writes an empty one as null, too."""
    found = data.get(key)
    if found is None and key in data:
        return ()
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UnreadableError(f"Prometheus's answer has no list {key}: {cut(str(found))}")
    return found


def _word(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    if not isinstance(value, str):
        raise UnreadableError(f"Prometheus's answer lacks {key}: {cut(str(dict(one)))}")
    return value


def _labels(one: Mapping[str, Any]) -> Labels:
    return _strings(one.get("labels") or {})


def _strings(labels: Mapping[str, Any]) -> Labels:
    return {str(key): str(value) for key, value in labels.items()}


def _time(text: object) -> float | None:
    """Read a time; None where there was none."""
    if not isinstance(text, str) or text.startswith(_NEVER):
        return None
    found = _TIME.match(text)
    if found is None:
        raise UnreadableError(f"Prometheus's answer has no time: {cut(text)}")
    whole = datetime.fromisoformat(found[1] + found[3].replace("Z", "+00:00"))
    return whole.astimezone(UTC).timestamp() + float(found[2] or 0)
