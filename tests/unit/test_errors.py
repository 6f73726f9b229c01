"""The texts and exit codes that a person meets."""

from __future__ import annotations

import pytest

from miriam.errors import (
    ExecutionError,
    MiriamError,
    MissingCapabilityError,
    SourceError,
    UnknownNameError,
    UsageError,
    VerificationError,
)


def test_usage_error_says_field_rule_value_and_advice() -> None:
    assert str(UsageError("--seconds", "greater than 0", -1)) == "--seconds: greater than 0, got -1"
    error = UsageError("--seconds", "greater than 0", "x", "give a number")
    assert str(error) == "--seconds: greater than 0, got 'x'; give a number"
    assert (error.field, error.rule, error.got, error.advice) == (
        "--seconds",
        "greater than 0",
        "x",
        "give a number",
    )


def test_unknown_name_lists_the_known_and_guesses() -> None:
    error = UnknownNameError("--policy", "miram", ["sequential", "miriam"])
    assert str(error) == (
        "--policy: unknown name, got 'miram'; did you mean 'miriam'? known: miriam, sequential"
    )
    assert error.known == ("miriam", "sequential")
    far = UnknownNameError("--policy", "zzz", ["miriam"])
    assert str(far) == "--policy: unknown name, got 'zzz'; known: miriam"


def test_missing_capability_says_what_to_install() -> None:
    error = MissingCapabilityError("device host", "g++ was not found", "apt install g++")
    assert str(error) == "device host: g++ was not found; apt install g++"


def test_source_error_has_position_and_excerpt() -> None:
    error = SourceError("a.cu", 7, 'identifier "x" is undefined', "  y = x;\n      ^")
    assert str(error) == 'a.cu:7: identifier "x" is undefined\n  y = x;\n      ^'
    assert str(SourceError("a.cu", 7, "wrong")) == "a.cu:7: wrong"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MiriamError("x"), 1),
        (SourceError("a.cu", 1, "x"), 1),
        (ExecutionError("x"), 1),
        (VerificationError("x"), 1),
        (UsageError("a", "b", 1), 2),
        (UnknownNameError("a", "b", []), 2),
        (MissingCapabilityError("a", "b", "c"), 3),
    ],
)
def test_exit_codes(error: MiriamError, code: int) -> None:
    assert isinstance(error, MiriamError)
    assert error.exit_code == code
