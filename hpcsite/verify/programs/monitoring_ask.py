"""Asks the Prometheus or Alertmanager of its own host over HTTP; prints one JSON line an answer.

Started by `hpcsite.verify.suites.monitoring_http` on the host itself, with Python 3.8 or newer and
its standard library. Where the service listens is read from its own command line, since a site may
have it on another port, address or path. A body is sent as JSON.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

# Names of the program (a distribution may have its own), its port, and the option for its path.
SERVICES = {
    "prometheus": (("prometheus",), 9090),
    "alertmanager": (("alertmanager", "prometheus-alertmanager"), 9093),
}
TIMEOUT_S = 15
MOST_BYTES = 32 * 2**20


def base_of(service: str, proc: Path = Path("/proc")) -> str:
    """Return the address of a service on this host, as its command line says; else the usual."""
    names, port = SERVICES[service]
    for file in proc.glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if words and words[0].rpartition("/")[2] in names:
            return address(words, port)
    return f"http://127.0.0.1:{port}"


def address(words: list[str], port: int) -> str:
    """Read `--web.listen-address`, `--web.route-prefix` and `--web.external-url` of a command."""
    options: dict[str, str] = {}
    for at, word in enumerate(words):
        name, given, value = word.lstrip("-").partition("=")
        if not given and at + 1 < len(words) and not words[at + 1].startswith("-"):
            value = words[at + 1]
        if word.startswith("-"):
            options.setdefault(name, value)
    host, _, own = options.get("web.listen-address", "").rpartition(":")
    host = "127.0.0.1" if host in ("", "0.0.0.0", "[::]", "::") else host  # noqa: S104 - compared
    outside = options.get("web.external-url", "").partition("://")[2].partition("/")[2]
    prefix = options.get("web.route-prefix", outside).strip("/")
    return f"http://{host}:{own or port}" + (f"/{prefix}" if prefix else "")


def ask(base: str, request: dict[str, Any]) -> dict[str, Any]:
    """Do one request; `status` 0 if there was no answer."""
    body = request.get("body")
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(  # noqa: S310 - the service of this host
        base + request["path"], data, {"Content-Type": "application/json"}
    )
    # No proxy: the service is here.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(asked, timeout=TIMEOUT_S) as answer:
            text = answer.read(MOST_BYTES).decode("utf-8", "replace")
            return {"status": answer.status, "body": text}
    except urllib.error.HTTPError as error:
        return {"status": error.code, "body": error.read(4096).decode("utf-8", "replace")}
    except (OSError, ValueError) as error:
        return {"status": 0, "body": str(getattr(error, "reason", error))}


def main() -> None:
    """Ask a service what the command line says: its name, and requests as JSON."""
    service, *requests = sys.argv[1:]
    base = base_of(service)
    for text in requests:
        request = json.loads(text)
        said = {"name": request["name"], "url": base + request["path"], **ask(base, request)}
        sys.stdout.write(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
