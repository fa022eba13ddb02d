from hpcsite.deploy.changes import group_changes
from hpcsite.deploy.events import HostEvent, PlayStarted, parse_event
from hpcsite.deploy.messages import changed_items
from hpcsite.deploy.tally import Tally

ALICE = {"item": {"name": "alice"}, "changed": False}
CAROL = {"item": {"name": "carol", "uid": 2003}, "changed": True, "_ansible_item_label": "carol"}


def changed(host: str, task: str, *items: str) -> HostEvent:
    return HostEvent(host, "changed", task, None, items=items)


def test_equal_changes_of_several_hosts_are_one() -> None:
    tally = Tally()
    tally.add(PlayStarted("base", "all"))
    for host in ("gpu02", "gpu01"):
        tally.add(changed(host, "Keep users", "carol"))
    tally.add(HostEvent("head", "ok", "Keep users", None))
    tally.add(changed("head", "Write it"))
    first, second = group_changes(tally)
    assert (first.layer, first.task, first.nodes, first.items) == (
        *("base", "Keep users", "gpu[01-02]"),
        ("carol",),
    )
    assert first.hosts == ("gpu01", "gpu02")
    assert (second.task, second.nodes, second.items) == ("Write it", "head", ())


def test_a_handler_that_ran_twice_names_its_host_once() -> None:
    tally = Tally()
    tally.add(PlayStarted("scheduler", "slurmd"))
    tally.add(changed("gpu01", "Restart slurmd"))
    tally.add(changed("gpu01", "Restart slurmd"))
    (change,) = group_changes(tally)
    assert change.hosts == ("gpu01",)


def test_an_event_tells_the_items_of_a_loop_that_changed() -> None:
    data = {"host": "a", "task": "t", "res": {"changed": True, "results": [ALICE, CAROL]}}
    (event,) = parse_event({"event": "runner_on_ok", "event_data": data})
    assert isinstance(event, HostEvent)
    assert event.items == ("carol",)


def test_items_of_a_secret_task_are_not_told() -> None:
    assert changed_items({"results": [{**CAROL, "censored": "x"}]}) == ()
    assert changed_items({"censored": "x", "results": [CAROL]}) == ()
    assert changed_items({"results": [{"item": {"key": 1}, "changed": True}]}) == ()
