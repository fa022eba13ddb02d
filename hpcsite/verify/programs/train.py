"""Trains a small transformer on the rank that Slurm started it as, and says what came of it.

It stands alone but for `train_place`, which is sent with it, since nodes have nothing of hpcsite:
Python 3.8, PyTorch 1.13 for DDP and 2.6 for FSDP. Its one argument is a JSON object:

`mode` ddp or fsdp; `port` that rank 0 listens on; `addresses` of nodes by name, where they are
others; `width`, `layers`, `sequence`, `batch` the model and what each rank is given a step; `rate`
of learning; `steps`, `warmup` how many; `threads` of a rank.

What it says are lines `@ {"say": ...}`, shorter than the 1024 bytes that slurmstepd hands on whole.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import nn

from hpcsite.verify.programs.train_place import around, interface_towards, master, numa_of_pci

if TYPE_CHECKING:
    from collections.abc import Iterator

    Batch = tuple[torch.Tensor, torch.Tensor]

WORDS = 64
# Ranks that do not meet are ended by this, and name themselves by what they did not say.
MEET_S = 60
RANK, WORLD, LOCAL = (int(os.environ[f"SLURM_{key}"]) for key in ("PROCID", "NTASKS", "LOCALID"))


def say(what: str, **facts: object) -> None:
    """Print a line that no other rank's output comes between."""
    line = json.dumps({"say": what, "rank": RANK, **facts}, separators=(",", ":"))
    os.write(1, f"@ {line}\n".encode())


def gpu_facts(device: torch.device) -> dict[str, Any]:
    """Say which GPU this rank computes on; nothing where it is a CPU."""
    if device.type != "cuda":
        return {}
    known = torch.cuda.get_device_properties(device)
    parts = [getattr(known, f"pci_{part}_id", -1) for part in ("domain", "bus", "device")]
    if -1 in parts:
        return {"gpu": f"uuid {getattr(known, 'uuid', LOCAL)}", "gpu_numa": -1}
    pci = "{:04x}:{:02x}:{:02x}.0".format(*parts)
    return {"gpu": pci, "gpu_numa": numa_of_pci(pci)}


def say_place(device: torch.device, interface: str) -> None:
    """Say where this rank is, before it meets the others."""
    gpu = gpu_facts(device)
    say(
        "place",
        local=LOCAL,
        world=WORLD,
        interface=interface,
        torch=torch.__version__,
        device=device.type,
        **around(gpu.get("gpu", "")),
        **gpu,
    )


class Model(nn.Module):
    """A small transformer that says what word follows each one."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, max(width // 64, 1), 4 * width, 0.0, batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.out = nn.Linear(width, WORDS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Shapes: (batch, sequence) of words to (batch, sequence, WORDS)."""
        hidden = self.words(words)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.out(hidden)


def built(options: dict[str, Any], device: torch.device) -> Model:
    """Return the model, the same on every rank."""
    torch.manual_seed(1)
    model = Model(options["width"], options["layers"])
    model.to(device)
    return model


def batches(options: dict[str, Any], device: torch.device) -> Iterator[Batch]:
    """Yield words and those that follow them by a fixed rule; every rank has its own."""
    chance = torch.Generator().manual_seed(1000 + RANK)
    while True:
        words = torch.randint(WORDS, (options["batch"], options["sequence"]), generator=chance)
        yield words.to(device), ((5 * words + 3) % WORDS).to(device)


def loss_of(model: nn.Module, batch: Batch) -> torch.Tensor:
    """Cross entropy in nats a word; log(64) = 4.16 for one who knows nothing."""
    words, follows = batch
    return nn.functional.cross_entropy(model(words).flatten(0, 1), follows.flatten())


def gradients(model: nn.Module) -> torch.Tensor:
    """All gradients as one vector, gathered where they are sharded."""
    with contextlib.ExitStack() as stack:
        if hasattr(model, "summon_full_params"):
            stack.enter_context(model.summon_full_params(model, with_grads=True))
        parts = [parameter.grad for parameter in model.parameters()]
        whole = [part.full_tensor() if hasattr(part, "full_tensor") else part for part in parts]
        return torch.cat([part.detach().flatten() for part in whole])


def digest(vector: torch.Tensor) -> str:
    """Return a sum over all bits of a vector of 32-bit floats, which the place of each changes."""
    bits = vector.contiguous().view(torch.int32).to(torch.int64)
    places = torch.arange(1, bits.numel() + 1, device=bits.device) % 65521 + 1
    return format(int((bits * places).sum()) % 2**64, "016x")


def sharded(model: Model, device: torch.device) -> nn.Module:
    """Return the model, each layer and the rest sharded over all ranks."""
    if device.type == "cuda":
        from torch.distributed.fsdp import fully_shard

        for part in [*model.layers, model]:
            fully_shard(part)
        return model
    # On CPUs, fully_shard of 2.6 asks for streams that there are none of.
    from torch.distributed.fsdp import FullyShardedDataParallel

    more: dict[str, Any] = {"use_orig_params": True, "device_id": device}
    for place, layer in enumerate(model.layers):
        model.layers[place] = FullyShardedDataParallel(layer, **more)
    return FullyShardedDataParallel(model, **more)


def wrapped(options: dict[str, Any], device: torch.device) -> nn.Module:
    """Return the model, distributed as asked for."""
    model = built(options, device)
    if options["mode"] == "fsdp":
        return sharded(model, device)
    ids = [device.index] if device.type == "cuda" else None
    return nn.parallel.DistributedDataParallel(model, device_ids=ids)


def held(model: nn.Module) -> int:
    """How many numbers of the model this rank holds itself."""
    parts = [p.to_local() if hasattr(p, "to_local") else p for p in model.parameters()]
    return sum(part.numel() for part in parts)


def say_gradients(options: dict[str, Any], model: nn.Module, device: torch.device) -> None:
    """Hold the reduced gradients of a batch against the mean that this program makes itself."""
    batch = next(batches(options, device))
    alone = built(options, device)
    loss_of(alone, batch).backward()
    own = gradients(alone)
    mean = own.clone()
    dist.all_reduce(mean)
    mean /= WORLD
    loss_of(model, batch).backward()
    reduced = gradients(model)
    model.zero_grad()
    error = float((reduced - mean).abs().max() / mean.abs().max())
    say(
        "gradients",
        own=digest(own),
        reduced=digest(reduced),
        error=error,
        held=held(model),
        total=sum(parameter.numel() for parameter in alone.parameters()),
        bytes=4 * own.numel(),
    )


def now(device: torch.device) -> float:
    """Time at which all that was begun is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def train(options: dict[str, Any], model: nn.Module, device: torch.device, steps: int) -> list[Any]:
    """Do steps; the loss of each, still on the device."""
    optimizer = torch.optim.Adam(model.parameters(), lr=options["rate"])
    data, losses = batches(options, device), []
    for _ in range(steps):
        loss = loss_of(model, next(data))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


def say_speed(options: dict[str, Any], model: nn.Module, device: torch.device) -> None:
    """Train, timed after the first steps, together and then this rank alone."""
    first = train(options, model, device, options["warmup"])
    dist.barrier()
    begin = now(device)
    losses = train(options, model, device, options["steps"])
    own_s = now(device) - begin
    dist.barrier()
    step_s = (now(device) - begin) / options["steps"]
    alone = built(options, device)
    train(options, alone, device, 2)
    dist.barrier()
    begin = now(device)
    train(options, alone, device, max(options["steps"] // 2, 1))
    alone_s = (now(device) - begin) / max(options["steps"] // 2, 1)
    curve = [round(float(loss), 4) for loss in [*first, *losses]]
    thin = max(len(curve) // 20, 1)
    say(
        "speed",
        steps=options["steps"],
        step_s=step_s,
        own_s=own_s / options["steps"],
        alone_s=alone_s,
        samples_s=options["batch"] * WORLD / step_s,
        losses=[*curve[:-1:thin], curve[-1]],
    )


def say_reduces(most: int, device: torch.device) -> None:
    """Time all-reduces up to a size in bytes."""
    size = 4096
    while size <= max(most, 4 * 2**20):
        data = torch.ones(size // 4, device=device)
        for _ in range(2):
            dist.all_reduce(data)
        dist.barrier()
        begin = now(device)
        for _ in range(5):
            dist.all_reduce(data)
        seconds = (now(device) - begin) / 5
        if RANK == 0:
            say("allreduce", bytes=size, seconds=seconds)
        size *= 4


def main() -> None:
    """Do what the argument says."""
    options = json.loads(sys.argv[1])
    os.environ.setdefault("NCCL_DEBUG", "INFO")
    # Debian builds PyTorch without libuv, which it would use by default.
    os.environ.setdefault("USE_LIBUV", "0")
    cuda = torch.cuda.is_available() and torch.cuda.device_count() > LOCAL
    device = torch.device("cuda", LOCAL) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    torch.set_num_threads(options["threads"])
    # Gloo would take the interface of the host's own name, which is loopback on many a Debian.
    first = master(options["addresses"])
    interface = interface_towards(first, options["port"])
    if interface:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    say_place(device, interface)
    dist.init_process_group(
        "nccl" if cuda else "gloo",
        init_method=f"tcp://{first}:{options['port']}",
        rank=RANK,
        world_size=WORLD,
        timeout=datetime.timedelta(seconds=MEET_S),
    )
    model = wrapped(options, device)
    say_gradients(options, model, device)
    say_speed(options, model, device)
    if options["mode"] == "ddp":
        say_reduces(4 * sum(p.numel() for p in model.parameters()), device)
    dist.barrier()
    say("end")
    # Tearing a process group down races between ranks in some releases; all is said.
    os._exit(0)


if __name__ == "__main__":
    main()
