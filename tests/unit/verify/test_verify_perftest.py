"""Output of perftest, recorded over soft-RoCE (25.01) and as other versions and options make it."""

import pytest

from hpcsite.verify.parsers import UnreadableError
from hpcsite.verify.parsers.perftest import Used, read_bandwidth, read_latency
from tests.unit.verify.fakeslurm import fixture

BANDWIDTH, LATENCY = fixture("rdma/write-bw.txt"), fixture("rdma/write-lat.txt")
RULE = "-" * 87
HEAD = """\
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Number of qps   : 1\t\tTransport type : IB
"""
# As perftest 4.5 prints it on InfiniBand, without JSON.
OLD = f"""\
{RULE}
                    RDMA_Write BW Test
{HEAD} Link type       : IB
{RULE}
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             96.62              96.58\t\t   0.184204
{RULE}
"""


def table_of(text: str) -> str:
    return text.partition("--- json")[0]


def test_json_and_table_say_the_same() -> None:
    for text in (BANDWIDTH, table_of(BANDWIDTH)):
        read = read_bandwidth(text)
        assert (read.average_gbit_s, read.peak_gbit_s) == (0.075003, 0.099102)
        assert (read.message_bytes, read.used) == (65536, Used("rxe0", "IB"))
    for text in (LATENCY, table_of(LATENCY)):
        latency = read_latency(text)
        assert (latency.minimum_us, latency.typical_us) == (693.28, 17932.31)
        assert (latency.p99_us, latency.message_bytes) == (131731.82, 2)


@pytest.mark.parametrize("junk", ["", "{", '{"test_info": {"test": "x"\n', '{"results": []}\n'])
def test_json_that_is_broken_gives_way_to_the_table(junk: str) -> None:
    """linux-rdma/perftest issue 216 and pull request 322."""
    assert read_bandwidth(f"{table_of(BANDWIDTH)}--- json\n{junk}").average_gbit_s == 0.075003
    assert read_latency(f"{table_of(LATENCY)}--- json\n{junk}").typical_us == 17932.31


def test_an_older_version_has_a_table_only() -> None:
    assert read_bandwidth(OLD).average_gbit_s == 96.58


def test_mb_are_binary_megabytes() -> None:
    text = OLD.replace("Gb/sec", "MB/sec").replace("96.58", "11517.53")
    assert read_bandwidth(text).average_gbit_s == pytest.approx(96.616, abs=0.001)


def test_json_of_a_test_in_mb_is_not_taken_for_gb() -> None:
    text = BANDWIDTH.replace("Gb/sec", "MB/sec")
    assert read_bandwidth(text).average_gbit_s == pytest.approx(0.075003 * 8.388608 / 1000)


def test_a_test_bounded_by_time_has_no_peak() -> None:
    read = read_bandwidth(OLD.replace("96.62", "0.00 "))
    assert (read.peak_gbit_s, read.average_gbit_s) == (0, 96.58)


def test_warnings_in_front_and_within_the_table_are_passed_over() -> None:
    warning = (
        "Conflicting CPU frequency values detected: 1200.0 != 3400.0. CPU Frequency is not max."
    )
    headings, figures = OLD.splitlines()[-3:-1]
    text = OLD.replace(figures, f" WARNING: BW peak won't be measured\n{warning}\n{figures}")
    assert read_bandwidth(f"{warning}\n{text}").average_gbit_s == 96.58
    assert headings in text


def test_columns_that_options_add_do_not_shift_the_others() -> None:
    text = OLD.replace("MsgRate[Mpps]", "MsgRate[Mpps]    CPU_Util[%%]").replace(
        "0.184204", "0.184204\t    12.50"
    )
    assert read_bandwidth(text).average_gbit_s == 96.58
    text = OLD.replace(" #bytes     #iterations", " #bytes    #sl      #iterations")
    text = text.replace(" 65536      5000 ", " 65536    3      5000 ")
    assert read_bandwidth(text).average_gbit_s == 96.58


def test_latencies_that_touch_each_other_are_told_apart() -> None:
    lines = table_of(LATENCY).splitlines()
    row = " 2       200          693.28         134285.6717932.3125758.16"
    row += "     \t9930.26131731.82134285.67"
    lines = [row if line.startswith(" 2  ") else line for line in lines]
    latency = read_latency("\n".join(lines))
    assert (latency.typical_us, latency.p99_us) == (17932.31, 131731.82)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no results"),
        ("Couldn't connect to 10.0.0.1:18515\n", "Couldn't connect to 10.0.0.1:18515"),
        ("\n".join(OLD.splitlines()[:-2]), "no results"),
        (OLD.replace("96.58", "nan  "), "nan"),
        (OLD.replace("96.58", "0.00 "), "average bandwidth is 0"),
        (OLD.replace("96.58", "-1.00"), "-1"),
        (OLD.replace("Device", "Devise"), "does not say which device"),
        (OLD.replace("96.58", ""), "no results"),
    ],
)
def test_what_cannot_be_read_is_an_error(text: str, said: str) -> None:
    with pytest.raises(UnreadableError, match=said):
        read_bandwidth(text)


@pytest.mark.parametrize(
    ("old", "new"), [("693.28 ", "0.00   "), ("17932.31", "0.10    "), ("131731.82", "1.50     ")]
)
def test_latencies_that_cannot_be_are_an_error(old: str, new: str) -> None:
    with pytest.raises(UnreadableError, match="cannot be"):
        read_latency(table_of(LATENCY).replace(old, new))
