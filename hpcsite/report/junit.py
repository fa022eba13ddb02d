"""A run as JUnit XML, for CI systems."""

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from hpcsite.verify.results import Measurement, Result, Run, Status

_KINDS = {Status.FAIL: Failure, Status.ERROR: Error, Status.SKIP: Skipped}


def junit(run: Run) -> str:
    """Render a run; a check is a test case, its measurements are properties."""
    document = JUnitXml("hpcsite verify")
    for name in run.suites:
        suite = TestSuite(f"{run.site}.{name}")
        suite.timestamp = run.started.isoformat()
        suite.hostname = run.submit_host
        for result in run.results:
            if result.suite == name:
                suite.add_testcase(_case(run, result))
        document.add_testsuite(suite)
    xml: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return xml.decode() + "\n"


def _case(run: Run, result: Result) -> TestCase:
    case = TestCase(result.check, f"{run.site}.{result.suite}", result.seconds)
    if kind := _KINDS.get(result.status):
        case.result = [kind(_clean(result.reason), type_=result.status)]
    said = [f"nodes: {result.nodes}"] if result.nodes else []
    said += [_line(measured) for measured in result.measurements]
    said += [f"raw: {path}" for path in result.raw]
    case.system_out = _clean("\n".join(said))
    return case


def _line(measured: Measurement) -> str:
    at = " ".join(f"{key}={value}" for key, value in measured.at.items())
    return f"{measured.name} = {measured.value:g} {measured.unit} {at}".rstrip()


def _clean(text: str) -> str:
    """Without characters that XML cannot hold; a tool may print anything."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in text)
