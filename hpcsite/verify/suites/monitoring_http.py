"""Asking Prometheus and Alertmanager on their own hosts: see programs/monitoring_ask.py."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar
from urllib.parse import quote

from hpcsite.site.model import Host, Site
from hpcsite.verify.context import Context
from hpcsite.verify.findings import NotMeasuredError
from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.transport import Answer, UnreachableError

T = TypeVar("T")
_OK = 200
_TIMEOUT_S = 45


class NoAnswerError(Exception):
    """The service does not answer, or not with 200; the message says what it does."""


@dataclass(frozen=True)
class Request:
    """What is asked: a path, and for a POST what is sent."""

    name: str
    path: str
    body: Any = None


@dataclass(frozen=True)
class Replies:
    """What a service answered, by the request's name."""

    service: str
    host: str
    said: dict[str, dict[str, Any]]

    def body(self, name: str) -> str:
        """Return the text of an answer; raises `NoAnswerError`."""
        said = self.said.get(name)
        if said is None:
            raise NoAnswerError(f"{self.service} on {self.host}: no answer to {name}")
        if said.get("status") != _OK:
            why = " ".join(str(said.get("body", "")).split())[:200]
            status = f"HTTP {said['status']} " if said.get("status") else ""
            url = said.get("url", "?")
            raise NoAnswerError(f"{self.service} on {self.host}: {status}from {url}: {why}")
        return str(said["body"])

    def read(self, name: str, reader: Callable[[str], T]) -> T:
        """Read an answer; raises `NoAnswerError`, or `NotMeasuredError` for what is unreadable."""
        text = self.body(name)
        try:
            return reader(text)
        except UnreadableError as error:
            raise NotMeasuredError(f"{self.service} on {self.host}: {name}: {error}") from error


def query(expression: str) -> str:
    """Return the path of an instant query."""
    return f"/api/v1/query?query={quote(expression)}"


@cache
def _program() -> str:
    return (files("hpcsite.verify") / "programs" / "monitoring_ask.py").read_text("utf-8")


def ask(
    context: Context, host: Host, service: str, requests: Sequence[Request], *, again: bool = False
) -> Replies:
    """Ask a service; `again`: only the last answer is kept, for what is asked in a loop.

    Raises `NotMeasuredError` if the host cannot be asked at all.
    """
    words = [json.dumps({"name": one.name, "path": one.path, "body": one.body}) for one in requests]
    argv = ["python3", "-c", _program(), service, *words]
    try:
        answer = context.core.transport.run(host, argv, user=None, timeout_s=_TIMEOUT_S)
    except UnreachableError as error:
        raise NotMeasuredError(f"cannot reach {error}") from error
    name = f"{service}-{host.name}"
    if again:
        context.evidence.replace(answer, f"{name}-last")
    else:
        context.evidence.record(answer, name)
    return read_replies(service, host.name, answer)


def read_replies(service: str, host: str, answer: Answer) -> Replies:
    """Read what the program printed; raises `NotMeasuredError` if it did not run."""
    said = {}
    for line in answer.stdout.splitlines():
        try:
            one = json.loads(line)
        except ValueError:
            continue
        if isinstance(one, dict) and "name" in one:
            said[str(one["name"])] = one
    if not said:
        raise NotMeasuredError(f"{host}: {service} could not be asked: {answer.complaint}")
    return Replies(service, host, said)


def host_of(site: Site, address: str, own: str) -> str:
    """Return the host of the site that an address (`gpu01.x.example:9100`) is; empty for none.

    `own` is the host that says so, whom its loopback address means.
    """
    word = address.partition("://")[2] or address
    word = word.partition("/")[0]
    word = word.rpartition(":")[0] if ":" in word else word
    word = word.strip("[]")
    if word in ("localhost", "127.0.0.1", "::1"):
        return own
    for host in site.hosts.values():
        if word in (host.name, host.address, f"{host.name}.{site.keys.domain}"):
            return host.name
    short = word.partition(".")[0]
    return short if short in site.hosts else ""
