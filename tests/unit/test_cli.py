"""The command line as a whole: version, help, and how errors end."""

import subprocess
import sys

import pytest

import miriam
from miriam.cli import main

COMMAND = (sys.executable, "-c", "from miriam.cli import main; main()")


def run(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *args], capture_output=True, text=True, check=False)


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"miriam {miriam.__version__}\n")


def test_help_names_the_commands() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "bench" in done.stdout


def test_an_unknown_command_or_option_is_a_usage_error() -> None:
    for args in (["frobnicate"], ["bench", "mdtb", "--frobnicate"]):
        done = run(*args)
        assert done.returncode == 2
        assert "frobnicate" in done.stderr
        assert "Traceback" not in done.stderr


def test_an_error_is_one_line_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["miriam", "bench", "mdtb", "--seconds", "0"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: seconds: a finite number of at least 1e-9, got 0.0\n")
