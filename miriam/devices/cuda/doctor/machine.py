"""What can be said about a machine without its GPU: packages, compilers, settings, MPS."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from miriam.compile import cache_folder, supported_archs
from miriam.devices.cuda.doctor.report import Finding
from miriam.errors import MiriamError

_EXTRAS = {
    "cuda": ("cuda.bindings", "cuda.pathfinder", "elftools"),
    "elastic": ("tree_sitter", "tree_sitter_cuda", "pcpp"),
    "models": ("safetensors", "PIL"),
    "plot": ("matplotlib",),
}
_NEEDED_FOR = {
    "cuda": "compiling kernels and using a GPU need it",
    "elastic": "making kernels elastic needs it: without, levels 2 and 3 have no kernels",
    "models": "reading weights and pictures from files needs it",
    "plot": "charts need it",
}
_INJECTING = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NV_SANITIZER_INJECTION_PORT_BASE")
_TOOLS = ("sanitizer-collection", "cuda-injection", "toolsinjection", "interceptorinjection")


def machine_findings(environment: Mapping[str, str] = os.environ) -> tuple[Finding, ...]:
    """Everything that needs no GPU; nothing of it raises."""
    return (
        *_extras(),
        _nvrtc(),
        _gxx(),
        _cache(),
        _mps(environment),
        *_settings(environment),
        _injected(environment),
    )


def _extras() -> Iterator[Finding]:
    for extra, modules in _EXTRAS.items():
        absent = [name for name in modules if not _importable(name)]
        yield Finding(
            f"extra {extra}",
            "missing" if absent else "ok",
            f"without {', '.join(absent)}" if absent else "installed",
            _NEEDED_FOR[extra],
            f"pip install miriam-gpu[{extra}]" if absent else "",
        )


def _importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _nvrtc() -> Finding:
    what, why = "NVRTC", "it compiles kernels for the GPU"
    try:
        archs = supported_archs()
    except MiriamError as error:
        return Finding(what, "missing", str(error), why, "pip install miriam-gpu[cuda]")
    return Finding(what, "ok", f"{archs[0]} to {archs[-1]}", why)


def _gxx() -> Finding:
    what, why = "g++", "the host device and miriam verify run kernels on the CPU with it"
    found = shutil.which("g++")
    if found is None:
        return Finding(what, "missing", "not on PATH", why, "install g++")
    asked = subprocess.run([found, "-dumpfullversion"], capture_output=True, text=True, check=False)
    return Finding(what, "ok", asked.stdout.strip() or "no version", why)


def _cache() -> Finding:
    folder, why = cache_folder("cubin").parent, "compiled kernels are kept there"
    base = next(f for f in (folder, *folder.parents) if f.exists())
    if os.access(base, os.W_OK):
        return Finding("cache", "ok", str(folder), why)
    return Finding("cache", "missing", f"{folder} is not writable", why, "set MIRIAM_CACHE_DIR")


def _mps(environment: Mapping[str, str]) -> Finding:
    why = "under MPS other processes run beside this one, without it they take turns with it"
    pipes = Path(environment.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    if (pipes / "control").exists():
        return Finding("MPS", "note", f"a daemon's pipes are in {pipes}", why)
    tool = shutil.which("nvidia-cuda-mps-control")
    return Finding("MPS", "ok", "present, not running" if tool else "not installed", why)


def _settings(environment: Mapping[str, str]) -> Iterator[Finding]:
    blocking = environment.get("CUDA_LAUNCH_BLOCKING", "0")
    yield Finding(
        "CUDA_LAUNCH_BLOCKING",
        "ok" if blocking in ("", "0") else "trap",
        blocking or "0",
        "each launch waits for its end: a shut gate blocks the host, which is to open it",
        "" if blocking in ("", "0") else "unset it",
    )
    connections = environment.get("CUDA_DEVICE_MAX_CONNECTIONS", "")
    few = connections.isdecimal() and int(connections) < 32
    yield Finding(
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "trap" if few else "ok",
        connections or "not set (Miriam sets 32)",
        "streams beyond it share a hardware queue, and one may wait behind another",
        "unset it" if few else "",
    )


def _injected(environment: Mapping[str, str]) -> Finding:
    found = [name for name in _INJECTING if environment.get(name)]
    try:
        mapped = Path("/proc/self/maps").read_text().lower()
    except OSError:
        mapped = ""
    mapped += environment.get("LD_PRELOAD", "").lower()
    found += [f"lib{tool}" for tool in _TOOLS if tool in mapped]
    return Finding(
        "profiler or sanitizer",
        "trap" if found else "ok",
        ", ".join(found) or "none injected",
        "it makes launches slower and may run one kernel at a time: no time measured here counts",
        "measure without it" if found else "",
    )
