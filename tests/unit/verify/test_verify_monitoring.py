"""What is made of the answers of Prometheus and Alertmanager."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from hpcsite.site.model import Host, Site
from hpcsite.site.model.monitoring import Monitoring, Receiver
from hpcsite.verify.programs import monitoring_ask
from hpcsite.verify.results import Result
from hpcsite.verify.suites import monitoring_alerts
from hpcsite.verify.suites.monitoring import CHECKS
from hpcsite.verify.suites.monitoring_http import host_of
from hpcsite.verify.transport import Answer
from tests.unit.verify.fakeslurm import FakeSlurm, Runner, make_site

TARGETS, SERIES, RULES, FIRING, ALERT = CHECKS
NAMES = ("head", "login", "gpu01", "gpu02", "mon")
NOW = 1_796_000_000


class FakeMonitoring(FakeSlurm):
    """A Prometheus and an Alertmanager that are well, unless a test says otherwise."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, Any] = {}
        self.posted: list[Any] = []
        self.sent = 3
        self.failed = 0
        self.receivers = ["operators"]
        self.state = "active"
        self.tells = True

    def run(self, host: Host, argv: Sequence[str], *, user: str | None, timeout_s: float) -> Answer:
        if "python3" not in argv:
            return super().run(host, argv, user=user, timeout_s=timeout_s)
        lines = []
        for text in argv[4:]:
            request = json.loads(text)
            body = self.answer(request)
            status = 200
            if isinstance(body, tuple):
                status, body = body
            text = body if isinstance(body, str) else json.dumps(body)
            lines.append(
                json.dumps({"name": request["name"], "url": "U", "status": status, "body": text})
            )
        return Answer(tuple(argv), host.name, user, 0, "\n".join(lines), "", 1000.0, 0.01)

    def answer(self, request: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        path = request["path"]
        for piece, said in self.said.items():
            if piece in path:
                return said
        if request["body"] is not None:
            self.posted += request["body"]
            self.sent += self.tells and "endsAt" not in request["body"][0]
            return {}
        if path == "/metrics":
            way = '{integration="webhook"}'
            return (
                f"alertmanager_notifications_total{way} {self.sent}\n"
                f"alertmanager_notifications_failed_total{way} {self.failed}\n"
            )
        if path == "/api/v2/status":
            config = (
                "route: {receiver: operators, group_wait: 5s}\n"
                "receivers: [{name: operators, webhook_configs: [{url: <secret>}]}, "
                "{name: nobody}]\n"
            )
            return {"config": {"original": config}, "versionInfo": {"version": "0.28.1"}}
        if path == "/api/v2/alerts":
            alerts = [*self.posted, {"labels": {"alertname": "Watchdog", "cluster": "lab"}}]
            status = {"state": self.state, "silencedBy": [], "inhibitedBy": []}
            names = [{"name": name} for name in self.receivers]
            return [{"labels": a["labels"], "status": status, "receivers": names} for a in alerts]
        return {"status": "success", "data": self.data(path)}

    def data(self, path: str) -> dict[str, Any]:
        if "targets" in path:
            return {"activeTargets": [target(name) for name in NAMES]}
        if "rules" in path:
            return {"groups": [{"name": "g", "interval": 30, "rules": [rule("Watchdog")]}]}
        if "alertmanagers" in path:
            return {"activeAlertmanagers": [{"url": "http://mon:9093/api/v2/alerts"}]}
        if "alerts" in path:
            one = {"labels": {"alertname": "Watchdog"}, "state": "firing", "activeAt": at(NOW)}
            return {"alerts": [one]}
        return {"resultType": "vector", "result": self.vector(path)}

    def vector(self, path: str) -> list[dict[str, Any]]:
        if "time" in path:
            return [{"metric": {}, "value": [NOW, str(NOW)]}]
        if "uname" in path:
            return [sample(instance=f"{name}:9100", nodename=name) for name in NAMES]
        return []


def at(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.123456789Z")


def target(name: str, **changes: str) -> dict[str, Any]:
    one = {
        "labels": {"job": "node", "instance": f"{name}:9100"},
        "discoveredLabels": {"__address__": f"{name}:9100"},
        "health": "up",
        "lastError": "",
        "lastScrape": at(NOW),
    }
    return {**one, **changes}


def rule(name: str, **changes: object) -> dict[str, Any]:
    one = {"name": name, "type": "alerting", "health": "ok", "lastEvaluation": at(NOW)}
    return {**one, **changes}


def sample(**labels: str) -> dict[str, Any]:
    return {"metric": labels, "value": [NOW, "1"]}


def site(**receivers: str) -> Site:
    found = make_site(mon={"prometheus", "alertmanager"})
    told = tuple(Receiver(name=name, email=email) for name, email in receivers.items())
    keys = found.keys.model_copy(update={"monitoring": Monitoring(receivers=told)})
    return found.model_copy(update={"keys": keys})


@pytest.fixture
def verify(run_check: Runner, clock: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:  # noqa: ANN401 - conftest's
    monkeypatch.setattr(monitoring_alerts, "time", clock)

    def run(check: object, fake: FakeMonitoring, of: Site | None = None) -> Result:
        return run_check(check, fake, of or site())

    return run


def success(**data: object) -> dict[str, Any]:
    return {"status": "success", "data": data}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_site_without_monitoring_is_a_skip(run_check: Runner, check: object) -> None:
    result = run_check(check, FakeSlurm())
    assert result.status == "SKIP"
    group = "alertmanager" if check is ALERT else "prometheus"
    assert result.reason == f"no host of the site is in the group {group}"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_monitoring_that_is_well_passes(verify: Callable[..., Result], check: object) -> None:
    result = verify(check, FakeMonitoring())
    assert result.status == "PASS", result.reason


def test_a_target_that_is_down_names_its_host_and_why(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    down = target("gpu02", health="down", lastError="connection refused")
    fake.said["targets"] = success(
        activeTargets=[target(n) for n in NAMES if n != "gpu02"] + [down]
    )
    result = verify(TARGETS, fake)
    assert result.status == "FAIL"
    assert result.reason == "target node of gpu02 is down: connection refused"
    assert [one.name for one in result.culprits] == ["gpu02"]


def test_a_host_without_a_target_is_named(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    fake.said["targets"] = success(activeTargets=[target(n) for n in NAMES[:3]])
    result = verify(TARGETS, fake)
    assert (result.status, result.reason) == (
        "FAIL",
        "Prometheus on mon has no target on gpu02,mon",
    )


def test_a_target_that_was_not_looked_at_yet_is_unknown(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    new = target("mon", health="unknown", lastScrape="0001-01-01T00:00:00Z")
    fake.said["targets"] = success(activeTargets=[*(target(n) for n in NAMES[:4]), new])
    result = verify(TARGETS, fake)
    assert (result.status, result.reason) == (
        "ERROR",
        "target node of mon was not looked at yet",
    )


@pytest.mark.parametrize(
    ("check", "status"), [(TARGETS, "FAIL"), (SERIES, "ERROR"), (RULES, "ERROR")]
)
def test_a_prometheus_that_does_not_answer_fails_once(
    verify: Callable[..., Result], check: object, status: str
) -> None:
    fake = FakeMonitoring()
    fake.said["/api/v1"] = (0, "Connection refused")
    result = verify(check, fake)
    assert result.status == status
    assert result.reason == "prometheus on mon: from U: Connection refused"


def test_an_answer_that_is_no_json_is_an_error_with_its_line(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    fake.said["targets"] = "<html>Sign in</html>"
    result = verify(TARGETS, fake)
    assert result.status == "ERROR"
    assert "<html>Sign in</html>" in result.reason


def test_a_host_whose_series_are_missing_is_named(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    rows = [sample(instance=f"{name}:9100") for name in NAMES if name != "gpu01"]
    fake.said["uname"] = success(resultType="vector", result=rows)
    result = verify(SERIES, fake)
    assert (result.status, result.reason) == (
        "FAIL",
        "Prometheus on mon has no node_uname_info of gpu01",
    )


def test_gpus_of_real_nodes_must_have_series(verify: Callable[..., Result]) -> None:
    found = site()
    group = found.keys.node_groups["gpu"].model_copy(update={"virtual": False})
    keys = found.keys.model_copy(update={"node_groups": {"gpu": group}})
    real = found.model_copy(update={"keys": keys})
    fake = FakeMonitoring()
    eight = {"metric": {"instance": "10.0.0.1:9400", "Hostname": "gpu01"}, "value": [NOW, "8"]}
    fake.said["DCGM"] = success(resultType="vector", result=[eight])
    result = verify(SERIES, fake, real)
    assert (result.status, result.reason) == (
        "FAIL",
        "gpu02: 0 of 8 GPUs have series of DCGM",
    )


@pytest.mark.parametrize(
    ("rules", "status", "said"),
    [
        ([], "FAIL", "Prometheus on mon has no rules loaded"),
        ([rule("x", type="recording")], "FAIL", "1 rules, none of which alerts"),
        ([rule("x", health="err", lastError="bad")], "FAIL", "rule x of g on mon: bad"),
        ([rule("x", health="unknown")], "ERROR", "was not evaluated yet"),
        ([rule("x", lastEvaluation=at(NOW - 600))], "FAIL", "was not evaluated for 600 s"),
    ],
)
def test_rules_that_are_missing_broken_or_late(
    verify: Callable[..., Result], rules: list[Any], status: str, said: str
) -> None:
    fake = FakeMonitoring()
    fake.said["rules"] = success(groups=[{"name": "g", "interval": 30, "rules": rules}])
    result = verify(RULES, fake)
    assert result.status == status
    assert said in result.reason


def test_an_alertmanager_that_prometheus_does_not_know(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    fake.said["alertmanagers"] = success(activeAlertmanagers=[])
    result = verify(RULES, fake)
    assert (result.status, result.reason) == (
        "FAIL",
        "Prometheus on mon sends no alert to Alertmanager on mon",
    )


def test_what_fires_but_does_not_arrive(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    fake.said["v2/alerts"] = []
    result = verify(FIRING, fake)
    assert result.status == "FAIL"
    assert (
        "none of 1 alerts that fire in Prometheus on mon is in Alertmanager on mon" in result.reason
    )


def test_nothing_that_fires_shows_nothing(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    fake.said["v1/alerts"] = success(alerts=[])
    result = verify(FIRING, fake)
    assert result.status == "ERROR"
    assert "Watchdog" in result.reason


def test_the_trial_alert_is_ended_and_its_time_told(verify: Callable[..., Result]) -> None:
    fake = FakeMonitoring()
    result = verify(ALERT, fake, site(operators="hpc@x.example"))
    assert result.status == "PASS", result.reason
    assert [(m.name, m.at) for m in result.measurements] == [
        ("alert_notified", {"receivers": "operators"})
    ]
    first, last = fake.posted
    assert first["labels"] == last["labels"]
    assert ("endsAt" in first, "endsAt" in last) == (False, True)


@pytest.mark.parametrize(
    ("changes", "status", "said"),
    [
        ({"tells": False}, "FAIL", "operators was not told by webhook within 35 s"),
        ({"receivers": ["nobody"]}, "FAIL", "goes to nobody, who is told by nothing"),
        ({"state": "suppressed"}, "ERROR", "held back by another alert"),
    ],
)
def test_where_the_trial_alert_gets_stuck(
    verify: Callable[..., Result], changes: dict[str, Any], status: str, said: str
) -> None:
    fake = FakeMonitoring()
    for name, value in changes.items():
        setattr(fake, name, value)
    result = verify(ALERT, fake)
    assert result.status == status
    assert said in result.reason
    assert result.measurements == ()


def test_a_declared_receiver_that_alertmanager_lacks(verify: Callable[..., Result]) -> None:
    result = verify(ALERT, FakeMonitoring(), site(chat="chat@x.example"))
    assert result.status == "FAIL"
    assert result.reason == "Alertmanager on mon has no receiver chat"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("gpu01:9100", "gpu01"),
        ("gpu01.lab.example:9100", "gpu01"),
        ("http://mon:9093/api/v2/alerts", "mon"),
        ("localhost:9090", "mon"),
        ("[::1]:9090", "mon"),
        ("10.9.9.9:9100", ""),
        ("", ""),
    ],
)
def test_whose_an_address_is(address: str, host: str) -> None:
    assert host_of(site(), address, "mon") == host


@pytest.mark.parametrize(
    ("options", "base"),
    [
        ([], "http://127.0.0.1:9090"),
        (["--web.listen-address=:9999"], "http://127.0.0.1:9999"),
        (["--web.listen-address", "10.1.1.1:80"], "http://10.1.1.1:80"),
        (["--web.listen-address=0.0.0.0:9090"], "http://127.0.0.1:9090"),
        (["--web.external-url=https://x.example/prom/"], "http://127.0.0.1:9090/prom"),
        (
            ["--web.external-url=https://x.example/p", "--web.route-prefix=/"],
            "http://127.0.0.1:9090",
        ),
    ],
)
def test_where_a_service_listens(options: list[str], base: str) -> None:
    assert monitoring_ask.address(["/usr/bin/prometheus", *options], 9090) == base
