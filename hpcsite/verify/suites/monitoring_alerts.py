"""Checks `monitoring/firing` and `monitoring/alert`: from Prometheus to a person.

The way has two halves. That what fires in Prometheus arrives in Alertmanager is seen by an alert
that fires now; sites have one that always does, commonly called Watchdog. That Alertmanager tells
its receivers is seen by a test alert of hpcsite's own, and by Alertmanager's own count of
notifications sent and failed: what a mail server or a chat then does, nobody here can see.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from hpcsite.site.model import Host
from hpcsite.verify.context import Context
from hpcsite.verify.findings import Finding, NotMeasuredError, Tally
from hpcsite.verify.parsers.alertmanager import (
    Alertmanager,
    Received,
    read_received,
    read_status,
)
from hpcsite.verify.parsers.exposition import Shown, read_exposition, total
from hpcsite.verify.parsers.prometheus import Alert, read_alerts
from hpcsite.verify.results import Direction, Measurement
from hpcsite.verify.suites.monitoring_http import NoAnswerError, Replies, Request, ask

NAME = "HpcsiteVerify"
_SENT, _FAILED = "alertmanager_notifications_total", "alertmanager_notifications_failed_total"
_POLL_S = 2.0
# Prometheus sends an alert again each minute (--rules.alert.resend-delay); and some patience.
_RESENT_S = 75
# What a notification may take beyond the route's group_wait.
_SENT_WITHIN_S = 30
_ALERTS = Request("alerts", "/api/v2/alerts")
_METRICS = Request("metrics", "/metrics")


def find_firing(context: Context) -> Finding:
    """See that what fires in Prometheus is in Alertmanager."""
    tally = Tally()
    managers = context.site.in_group("alertmanager")
    for host in context.site.in_group("prometheus"):
        end = time.monotonic() + _RESENT_S
        while True:
            fire = _firing(context, host)
            lacking = {
                manager.name: [
                    one.name for one in fire if not arrived(one, _received(context, manager))
                ]
                for manager in managers
            }
            # One that arrived shows the way; others may be younger than the last time of sending.
            blocked = [name for name, of in lacking.items() if fire and len(of) == len(fire)]
            if not blocked or time.monotonic() > end:
                break
            context.pause(_POLL_S)
        if not fire:
            tally.unknown.append(
                f"no alert fires in Prometheus on {host.name}, so that its way to Alertmanager was "
                "not seen; a rule that always fires (Watchdog: `expr: vector(1)`) shows it"
            )
        tally.wrong += [
            f"none of {len(fire)} alerts that fire in Prometheus on {host.name} is in Alertmanager "
            f"on {name} within {_RESENT_S} s, e.g. {fire[0].name}"
            for name in blocked
        ]
    return tally.finding([host.name for host in managers])


def _firing(context: Context, host: Host) -> list[Alert]:
    try:
        replies = ask(
            context, host, "prometheus", [Request("alerts", "/api/v1/alerts")], again=True
        )
        return [one for one in replies.read("alerts", read_alerts) if one.state == "firing"]
    except NoAnswerError as error:
        raise NotMeasuredError(str(error)) from error


def _received(context: Context, host: Host) -> Sequence[Received]:
    try:
        return ask(context, host, "alertmanager", [_ALERTS], again=True).read(
            "alerts", read_received
        )
    except NoAnswerError as error:
        raise NotMeasuredError(str(error)) from error


def arrived(alert: Alert, received: Sequence[Received]) -> bool:
    """Whether Alertmanager has an alert; Prometheus may have added labels (external_labels)."""
    return any(alert.labels.items() <= one.labels.items() for one in received)


@dataclass(frozen=True)
class Sent:
    """What all Alertmanagers together have sent and failed to send, by way (webhook, email …)."""

    sent: Mapping[str, float]
    failed: Mapping[str, float]


def find_alert(context: Context) -> Finding:
    """Send a test alert; see that it is routed, and that its receivers are told."""
    tally, managers = Tally(), context.site.in_group("alertmanager")
    status: dict[str, Alertmanager] = {}
    for host in managers:
        replies = ask(context, host, "alertmanager", [Request("status", "/api/v2/status")])
        try:
            status[host.name] = replies.read("status", read_status)
        except NoAnswerError as error:
            # The others of a cluster of Alertmanagers go on without it, but it should be there.
            tally.wrong.append(str(error))
    living = [host for host in managers if host.name in status]
    declared = [one.name for one in context.site.keys.monitoring.receivers]
    for name, known in status.items():
        tally.wrong += [
            f"Alertmanager on {name} has no receiver {one}"
            for one in declared
            if one not in known.receivers
        ]
    if not living:
        return tally.finding([host.name for host in managers])
    before = _counted(context, living)
    begin = time.monotonic()
    for host in living:
        post(context, host, trial_alert(context), tally)
    try:
        within = max(known.group_wait_s for known in status.values()) + _SENT_WITHIN_S
        measured = _watch(context, living, status, before, begin, within, tally)
    finally:
        for host in living:
            post(context, host, trial_alert(context, over=True), Tally())
    return tally.finding([host.name for host in living], measurements=measured)


def trial_alert(context: Context, *, over: bool = False) -> list[dict[str, object]]:
    """Return the alert; when it is over, Alertmanager forgets it."""
    now = datetime.now(UTC)
    alert: dict[str, object] = {
        "labels": {
            "alertname": NAME,
            "severity": "info",
            "site": context.site.name,
            "run": context.core.run_id,
        },
        "annotations": {
            "summary": f"A test by `hpcsite verify` of {context.site.name}: nothing is to be done."
        },
    }
    if over:
        alert["endsAt"] = (now - timedelta(seconds=1)).isoformat()
    return [alert]


def post(context: Context, host: Host, alert: list[dict[str, object]], tally: Tally) -> None:
    """Give Alertmanager an alert; what it says against it goes into the tally."""
    replies = ask(context, host, "alertmanager", [Request("post", "/api/v2/alerts", alert)])
    try:
        replies.body("post")
    except NoAnswerError as error:
        tally.wrong.append(f"takes no alert: {error}")


def _counted(context: Context, hosts: Sequence[Host]) -> Sent:
    shown: list[Shown] = []
    for host in hosts:
        shown += _metrics(ask(context, host, "alertmanager", [_METRICS], again=True))
    return sent_of(tuple(shown))


def _metrics(replies: Replies) -> Sequence[Shown]:
    try:
        return replies.read("metrics", read_exposition)
    except NoAnswerError as error:
        raise NotMeasuredError(str(error)) from error


def sent_of(shown: tuple[Shown, ...]) -> Sent:
    """Sum up notifications by way."""
    ways = {one.labels.get("integration", "") for one in shown if one.name == _SENT}
    return Sent(
        {way: total(shown, _SENT, integration=way) or 0 for way in ways},
        {way: total(shown, _FAILED, integration=way) or 0 for way in ways},
    )


def _watch(
    context: Context,
    hosts: Sequence[Host],
    status: Mapping[str, Alertmanager],
    before: Sent,
    begin: float,
    within_s: float,
    tally: Tally,
) -> list[Measurement]:
    """Watch the test alert until its receivers were told, or the time for it is over."""
    run = context.core.run_id
    while True:
        mine = [
            one
            for host in hosts
            for one in _received(context, host)
            if one.labels.get("alertname") == NAME and one.labels.get("run") == run
        ]
        now = _counted(context, hosts)
        ways = ways_of(mine, status)
        if mine and ways and all(_grown(before.sent, now.sent, way) for way in ways):
            break
        if time.monotonic() > begin + within_s or any(one.state == "suppressed" for one in mine):
            break
        context.pause(_POLL_S)
    judge_alert(mine, ways, before, now, within_s, tally)
    if tally.wrong or tally.unknown:
        return []
    return [
        Measurement(
            name="alert_notified",
            value=round(time.monotonic() - begin, 1),
            unit="s",
            direction=Direction.LOWER,
            at={"receivers": ",".join(sorted({r for one in mine for r in one.receivers}))},
        )
    ]


def ways_of(mine: Sequence[Received], status: Mapping[str, Alertmanager]) -> set[str]:
    """Return by what the receivers of an alert are told."""
    receivers = {name for one in mine for name in one.receivers}
    return {
        way
        for known in status.values()
        for name in receivers
        for way in known.receivers.get(name, ())
    }


def _grown(before: Mapping[str, float], now: Mapping[str, float], way: str) -> bool:
    return now.get(way, 0) > before.get(way, 0)


def judge_alert(
    mine: Sequence[Received],
    ways: set[str],
    before: Sent,
    now: Sent,
    within_s: float,
    tally: Tally,
) -> None:
    """Say where the test alert got stuck."""
    if not mine:
        tally.wrong.append(f"Alertmanager does not have the test alert within {within_s:.0f} s")
        return
    held = [one for one in mine if one.state == "suppressed"]
    if held:
        by = "a silence" if held[0].silenced_by else "another alert"
        tally.unknown.append(f"the test alert is held back by {by}, so that nobody is told")
        return
    receivers = ", ".join(sorted({name for one in mine for name in one.receivers})) or "nobody"
    if not ways:
        tally.wrong.append(f"the test alert goes to {receivers}, who is told by nothing")
        return
    for way in sorted(ways):
        if _grown(before.failed, now.failed, way):
            tally.wrong.append(f"Alertmanager failed to tell {receivers} by {way}: see its log")
        elif not _grown(before.sent, now.sent, way):
            tally.wrong.append(f"{receivers} was not told by {way} within {within_s:.0f} s")
