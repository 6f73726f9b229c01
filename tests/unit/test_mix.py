"""The mix file: what it says, and what is said about a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from miriam.errors import UsageError
from miriam.runtime import ArrivalsEntry, read

MODELS = ("alexnet", "cifarnet", "resnet50")
TASK_KEYS = "arrivals, critical, deadline_ms, in_flight, model, name, priority, weight"
TASK = '[[task]]\nmodel = "alexnet"\n'
NEXT = '[[task]]\nmodel = "cifarnet"\n'


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mix.toml"
    path.write_text(text)
    return path


def test_every_key_has_its_place(tmp_path: Path) -> None:
    text = """
        late = "drop"
        queue = 3
        [[task]]
        name = "detector"
        model = "alexnet"
        critical = true
        priority = 1
        deadline_ms = 20
        arrivals = { kind = "poisson", hz = 10 }
        [[task]]
        model = "cifarnet"
        weight = 2.5
        in_flight = 4
        arrivals = { kind = "trace", file = "times.txt" }
    """
    mix = read(written(tmp_path, text), MODELS)
    detector, other = mix.tasks
    assert (mix.late, mix.queue, mix.folder) == ("drop", 3, tmp_path)
    assert (detector.title, detector.critical, detector.priority) == ("detector", True, 1)
    assert (detector.deadline_ns, detector.arrivals.hz) == (20_000_000, 10)
    assert (other.title, other.weight, other.in_flight) == ("cifarnet", 2.5, 4)
    assert other.arrivals == ArrivalsEntry("trace", file="times.txt")


def test_tasks_without_a_name_are_numbered(tmp_path: Path) -> None:
    text = TASK + TASK + '[[task]]\nmodel = "cifarnet"\nname = "alexnet-2"\n'
    mix = read(written(tmp_path, text), MODELS).with_normal("alexnet")
    assert [t.title for t in mix.tasks] == ["alexnet", "alexnet-3", "alexnet-2", "alexnet-4"]
    assert mix.tasks[-1].arrivals.kind == "closed"
    assert not mix.tasks[-1].critical


WRONG = {
    "x = = 3": ":1:5: valid TOML, got 'x = = 3'; Invalid value",
    TASK + 'name = "a': ":3:10: valid TOML, got 'name = \"a'; Unterminated string",
    "": ": the key 'task' is required, got []",
    "task = []": ": task: at least one task, got []; a task begins with [[task]]",
    "task = 3": ": task: an array; a task begins with [[task]], got 3",
    "foo = 1\n" + TASK: ": key: unknown name, got 'foo'; known: late, queue, task",
    TASK + "piority = 1": ": task[0] key: unknown name, got 'piority'; "
    f"did you mean 'priority'? known: {TASK_KEYS}",
    TASK + "[[task]]\ncritical = true": ": task[1]: the key 'model' is required, got ['critical']",
    TASK + '[[task]]\nmodel = "alexne"': ": task[1].model: unknown name, got 'alexne'; "
    "did you mean 'alexnet'? known: alexnet, cifarnet, resnet50",
    TASK + 'critical = "yes"': ": task[0].critical: true or false, got 'yes'",
    TASK + "in_flight = 1.5": ": task[0].in_flight: a whole number, got 1.5",
    TASK + "in_flight = 0": ": task[0].in_flight: at least 1, got 0",
    TASK + "name = 3": ": task[0].name: text in quotes, got 3",
    TASK + 'name = "a"\n' + NEXT + 'name = "a"': ": task[1].name: a name that no other task has; "
    "task[0] has it, got 'a'",
    TASK + "deadline_ms = -1": ": task[0].deadline_ms: a finite number above 0, got -1.0",
    TASK + "deadline_ms = nan": ": task[0].deadline_ms: a finite number above 0, got nan",
    TASK + "weight = inf": ": task[0].weight: a finite number above 0, got inf",
    TASK + "critical = true\nweight = 2": ": task[0].weight: only for normal tasks, got 2.0; "
    "normal tasks share what critical ones leave; use priority",
    TASK + "arrivals = 10": ": task[0].arrivals: a table, got 10",
    TASK + "arrivals = { hz = 1 }": ": task[0].arrivals: the key 'kind' is required, got ['hz']",
    TASK + 'arrivals = { kind = "poison", hz = 1 }': ": task[0].arrivals.kind: unknown name, "
    "got 'poison'; did you mean 'poisson'? known: closed, poisson, trace, uniform",
    TASK + 'arrivals = { kind = "poisson", hertz = 1 }': ": task[0].arrivals key: unknown name, "
    "got 'hertz'; known: file, hz, kind",
    TASK + NEXT + 'arrivals = { kind = "uniform", hz = "1" }': ": task[1].arrivals.hz: a number, "
    "got '1'",
    TASK + 'arrivals = { kind = "uniform", hz = 0 }': ": task[0].arrivals.hz: "
    "a finite number above 0, got 0.0",
    TASK + 'arrivals = { kind = "uniform" }': ": task[0].arrivals.hz: "
    "required where kind is 'uniform', got None",
    TASK + 'arrivals = { kind = "closed", hz = 1 }': ": task[0].arrivals.hz: "
    "not used where kind is 'closed', got 1.0",
    TASK + 'arrivals = { kind = "trace" }': ": task[0].arrivals.file: "
    "required where kind is 'trace', got None",
    'late = "dropp"\n' + TASK: ": late: unknown name, got 'dropp'; did you mean 'drop'? "
    "known: count, drop",
    'late = "drop"\n' + TASK: ": late: only where a task has a deadline_ms, got 'drop'",
    "queue = -1\n" + TASK: ": queue: not negative, got -1",
    "queue = 2\n" + TASK: ": queue: only where a task's arrivals are not closed; "
    "a closed loop never queues, got 2",
}


@pytest.mark.parametrize("text", WRONG)
def test_an_error_names_file_place_rule_and_value(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as found:
        read(path, MODELS)
    assert str(found.value) == f"{path}{WRONG[text]}"
    assert found.value.exit_code == 2


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    with pytest.raises(UsageError) as found:
        read(path, MODELS)
    expected = f"mix: a readable text file, got {str(path)!r}; No such file or directory"
    assert str(found.value) == expected
