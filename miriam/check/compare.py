"""A file's kernels, as a launch file uses them, in every elastic form against the original."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from miriam.check.folds import folded_forms
from miriam.check.job import Case
from miriam.check.judge import KernelVerdict, Outcome
from miriam.check.launchfile import Alias, Argument, Array, KernelLaunch, Value, read_launches
from miriam.check.process import judged
from miriam.devices.host import Host, HostKernel
from miriam.elastic import Elasticized, ElasticKernel, elasticize
from miriam.errors import SourceError, UnknownNameError, UsageError

SECONDS = 60.0
_ORIGINAL = "original"


def verify(
    source: str | Path,
    launches: str | Path,
    *,
    include_dirs: Sequence[str | Path] = (),
    defines: Mapping[str, str] | None = None,
    seed: int = 1,
    seconds: float = SECONDS,
    progress: Callable[[KernelVerdict], None] = lambda verdict: None,
) -> tuple[KernelVerdict, ...]:
    """Run the kernels of ``source`` that the file ``launches`` names, and compare bit for bit.

    They run on the CPU, in a process of their own, each for at most ``seconds``. ``seed`` fixes
    the arguments, the orders and the moments of yielding; ``progress`` is told each verdict.
    Errors of ``elasticize``; UsageError for a launch file that is wrong or does not fit;
    MissingCapabilityError without g++.
    """
    asked = read_launches(Path(launches))
    made = elasticize(source, include_dirs=include_dirs, defines=defines)
    return verify_elasticized(made, asked, seed=seed, seconds=seconds, progress=progress)


def verify_elasticized(
    made: Elasticized,
    launches: Sequence[KernelLaunch],
    *,
    seed: int = 1,
    seconds: float = SECONDS,
    progress: Callable[[KernelVerdict], None] = lambda verdict: None,
) -> tuple[KernelVerdict, ...]:
    """As ``verify``, of kernels that are elastic already."""
    host = Host()
    known: dict[str, KernelVerdict] = {}
    elastic: list[tuple[KernelLaunch, ElasticKernel]] = []
    for launch in launches:
        kernel = _kernel(made, launch)
        if kernel.grid.ok and kernel.yields.ok:
            elastic.append((launch, kernel))
        else:
            known[launch.name] = _refused(launch, kernel)
    cases = []
    for found in _compiled(host, made, elastic):
        if isinstance(found, Case):
            cases.append(found)
        else:
            known[found.name] = found
    for verdict in known.values():
        progress(verdict)
    for verdict in judged(cases, seed, seconds):
        known[verdict.name] = verdict
        progress(verdict)
    return tuple(known[launch.name] for launch in launches)


def _kernel(made: Elasticized, launch: KernelLaunch) -> ElasticKernel:
    try:
        return made.kernel(launch.name)
    except UnknownNameError as error:
        raise UnknownNameError(launch.place, launch.name, error.known) from None


def _refused(launch: KernelLaunch, kernel: ElasticKernel) -> KernelVerdict:
    verdict = kernel.yields if kernel.grid.ok else kernel.grid
    place = f"{verdict.path}:{verdict.line}"
    # What the parser does not understand is an error; a rule that refuses is an answer.
    outcome: Outcome = "error" if verdict.reason == "parse-error" else "refused"
    return KernelVerdict(launch.name, outcome, f"{place}: {verdict.reason}: {verdict.detail}")


def _compiled(
    host: Host, made: Elasticized, elastic: Sequence[tuple[KernelLaunch, ElasticKernel]]
) -> list[Case | KernelVerdict]:
    """The cases compiled as one text; one by one where g++ does not take that."""
    if not elastic:
        return []
    cases = [_case(made.path, _text(made), launch, kernel) for launch, kernel in elastic]
    names = tuple(name for case in cases for name in case.names)
    try:
        kernels = host.compile(Path(made.path), names, _text(made))
    except (SourceError, UsageError):
        single = [_case(made.path, _text(kernel), launch, kernel) for launch, kernel in elastic]
        return [_compiled_alone(host, case) for case in single]
    for case in cases:
        _check_arguments(case.launch, kernels[case.entries[_ORIGINAL]])
    return [replace(case, names=names) for case in cases]


def _text(made: Elasticized | ElasticKernel) -> str:
    """Originals and elastic forms in one text, so that both work on the same variables."""
    macros = "#define MIRIAM_HAVE_ORIGINALS\n#define MIRIAM_COUNT_RUNS"
    return f"{made.original}\n{macros}\n{made.source}"


def _case(path: str, text: str, launch: KernelLaunch, kernel: ElasticKernel) -> Case:
    _, bracket, arguments = launch.name.partition("<")
    # The original first: g++ then complains about that name, which is the user's.
    entries = {_ORIGINAL: f"{kernel.name}{bracket}{arguments}"}
    entries.update({form: kernel.entry(form, launch.name) for form in kernel.entries})
    made, folds = folded_forms(kernel, launch)
    entries.update(made)
    return Case(launch, path, text, tuple(dict.fromkeys(entries.values())), entries, folds)


def _compiled_alone(host: Host, case: Case) -> Case | KernelVerdict:
    try:
        kernels = host.compile(Path(case.path), case.names, case.text)
    except SourceError as error:
        return KernelVerdict(case.launch.name, "error", str(error))
    except UsageError as error:
        if error.got != case.entries[_ORIGINAL]:
            return KernelVerdict(case.launch.name, "error", str(error))
        raise UsageError(case.launch.place, error.rule, error.got, error.advice) from None
    _check_arguments(case.launch, kernels[case.entries[_ORIGINAL]])
    return case


def _check_arguments(launch: KernelLaunch, kernel: HostKernel) -> None:
    place, wanted = f"{launch.place}.args", kernel.signature
    if len(launch.args) != len(wanted):
        rule = f"as many as the kernel has parameters, {len(wanted)}"
        raise UsageError(place, rule, len(launch.args))
    for index, (argument, parameter) in enumerate(zip(launch.args, wanted, strict=True)):
        if not _fits(argument, parameter[0], int(parameter[1:])):
            rule = f"{_PARAMETERS[parameter[0]]} of {parameter[1:]} bytes"
            raise UsageError(f"{place}[{index}]", rule, _described(argument))


_PARAMETERS = {"p": "a pointer", "i": "an integer", "f": "a number", "s": "a struct"}


def _fits(argument: Argument, kind: str, size: int) -> bool:
    if isinstance(argument, Array | Alias):
        return kind == "p"
    # An enumeration or a half is a struct to the compiler's type traits.
    fitting = {"int": "is", "float": "fs", "struct": "s"}[argument.kind]
    return kind in fitting and len(argument.data) == size


def _described(argument: Argument) -> str:
    if isinstance(argument, Value):
        return f"{argument.kind} of {len(argument.data)} bytes"
    return "an array"
