import json

import pytest

from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers import alertmanager as am
from hpcsite.verify.parsers import prometheus as prom
from hpcsite.verify.parsers.exposition import read_exposition, total
from tests.unit.verify.parsing import golden, raises_nothing_else

READERS = {
    "targets": prom.read_targets,
    "rules": prom.read_rules,
    "alerts": prom.read_alerts,
    "alertmanagers": prom.read_alertmanagers,
    "vector": prom.read_vector,
}


def test_targets_and_why_one_is_down() -> None:
    up, down, _ = prom.read_targets(golden("prometheus", "2.53-targets.json"))
    assert (up.job, up.instance, up.health, up.error) == ("node", "127.0.0.1:19100", "up", "")
    assert down.health == "down"
    assert "connection refused" in down.error
    assert up.scraped is not None
    assert up.scraped > 1.79e9


def test_rules_and_alerts() -> None:
    rules = prom.read_rules(golden("prometheus", "2.53-rules.json"))
    assert [(one.name, one.alerting, one.health) for one in rules] == [
        ("Watchdog", True, "ok"),
        ("NodeDown", True, "ok"),
        ("instance:load1", False, "ok"),
    ]
    assert rules[0].interval_s == 2
    alerts = prom.read_alerts(golden("prometheus", "2.53-alerts.json"))
    assert [(one.name, one.state) for one in alerts] == [
        ("Watchdog", "firing"),
        ("NodeDown", "firing"),
    ]


def test_alertmanagers_in_use_and_a_vector() -> None:
    (url,) = prom.read_alertmanagers(golden("prometheus", "2.53-alertmanagers.json"))
    assert url == "http://127.0.0.1:19093/api/v2/alerts"
    (one,) = prom.read_vector(golden("prometheus", "2.53-vector.json"))
    assert (one.labels["nodename"], one.value) == ("vm", 1)


def test_lists_that_go_writes_as_null_are_empty() -> None:
    text = json.dumps({"status": "success", "data": {"activeAlertmanagers": None}})
    assert prom.read_alertmanagers(text) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no JSON: nothing"),
        ("<html><body>502 Bad Gateway", "no JSON: <html><body>502 Bad Gateway"),
        (golden("prometheus", "2.53-error.json"), "unclosed left parenthesis"),
        ('{"status": "success", "data": []}', "has no data"),
        ('{"status": "success", "data": {}}', "has no list activeTargets"),
        ('{"status": "success", "data": {"activeTargets": [{"labels": {}}]}}', "lacks health"),
    ],
)
def test_answers_that_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(UnreadableError, match=said):
        prom.read_targets(text)


def test_a_target_that_was_never_scraped() -> None:
    text = golden("prometheus", "2.53-targets.json")
    document = json.loads(text)
    document["data"]["activeTargets"][0]["lastScrape"] = "0001-01-01T00:00:00Z"
    assert prom.read_targets(json.dumps(document))[0].scraped is None


def test_alertmanager_tells_receivers_and_how_they_are_told() -> None:
    status = am.read_status(golden("alertmanager", "0.28-status.json"))
    assert status.version == "0.28.1+ds"
    assert status.receivers == {"operators": ("webhook",)}
    assert status.group_wait_s == 1
    received = am.read_received(golden("alertmanager", "0.28-alerts.json"))
    assert {one.receivers for one in received} == {("operators",)}


@pytest.mark.parametrize(
    ("text", "value"), [("30s", 30), ("1m30s", 90), ("500ms", 0.5), ("1d", 86400)]
)
def test_durations(text: str, value: float) -> None:
    assert am.seconds(text) == value
    with pytest.raises(UnreadableError):
        am.seconds(f"{text} x")


def test_exposition() -> None:
    shown = read_exposition(golden("exposition", "alertmanager-0.28.txt"))
    assert total(shown, "alertmanager_notifications_total", integration="webhook") is not None
    assert total(shown, "no_such_thing") is None
    (one,) = read_exposition('# TYPE x gauge\nx{a="b\\"c",d="e,}f"} 1.5e3 1700000000000\n# EOF\n')
    assert (one.labels, one.value) == ({"a": 'b"c', "d": "e,}f"}, 1500)
    with pytest.raises(UnreadableError, match="no measurement: <html>"):
        read_exposition("<html>\n")


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_any_answer_of_prometheus_is_read_or_unreadable(read: object) -> None:
    raises_nothing_else(read, "prometheus")  # type: ignore[arg-type]


@pytest.mark.parametrize("read", [am.read_status, am.read_received])
def test_any_answer_of_alertmanager_is_read_or_unreadable(read: object) -> None:
    raises_nothing_else(read, "alertmanager")  # type: ignore[arg-type]


def test_any_exposition_is_read_or_unreadable() -> None:
    raises_nothing_else(read_exposition, "exposition")
