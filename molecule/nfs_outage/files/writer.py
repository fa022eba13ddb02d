"""Writes a file of known content, block by block, each one down to the server.

    writer.py FOLDER

It goes on until a block has had to wait for the server, and some more. FOLDER/RANK.data
is the file; FOLDER/RANK.json says of how many blocks, and how long the slowest one took.
"""

import json
import os
import sys
import time
from pathlib import Path

BLOCK = 65536
OUTAGE_S = 5
BLOCKS_AFTER = 50
# Without an outage it ends all the same.
MOST_SECONDS = 420
_PAUSE_S = 0.1


def block(rank: int, number: int) -> bytes:
    """Content of one block: no two are alike."""
    return f"{rank:07d} {number:07d}\n".encode() * (BLOCK // 16)


def main() -> None:
    """Write."""
    folder = Path(sys.argv[1])
    rank = int(os.environ["SLURM_PROCID"])
    began = time.monotonic()
    slowest, number, left = 0.0, 0, BLOCKS_AFTER
    with (folder / f"{rank}.data").open("wb", buffering=0) as file:
        while left and time.monotonic() - began < MOST_SECONDS:
            start = time.monotonic()
            file.write(block(rank, number))
            os.fsync(file.fileno())
            number += 1
            slowest = max(slowest, time.monotonic() - start)
            if slowest > OUTAGE_S:
                left -= 1
            time.sleep(_PAUSE_S)
    said = {"blocks": number, "slowest_s": slowest}
    (folder / f"{rank}.json").write_text(json.dumps(said), "utf-8")


if __name__ == "__main__":
    main()
