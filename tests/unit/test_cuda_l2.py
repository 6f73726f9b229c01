"""Which critical weights have a part of L2, seen without a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cuda.bindings")

from miriam.devices.cuda import l2
from miriam.devices.cuda.driver import driver
from miriam.devices.cuda.l2 import SHARE, SetAside, look_through

MB = 1_000_000
OK, REFUSED = driver.CUresult.CUDA_SUCCESS, driver.CUresult.CUDA_ERROR_UNSUPPORTED_LIMIT
L2_BYTES = 40 * MB


class Gpu:
    """A driver that sets aside what it is asked for, unless it ``refuses``."""

    def __init__(self, *, persisting: int = 30 * MB, refuses: bool = False) -> None:
        self.limit, self.resets = 0, 0
        self._known = {"L2_CACHE_SIZE": L2_BYTES, "MAX_PERSISTING_L2_CACHE_SIZE": persisting}
        self._status = REFUSED if refuses else OK

    def __getattr__(self, name: str) -> Any:
        return getattr(driver, name)

    def cuDeviceGetAttribute(self, attribute: Any, device: Any) -> Any:
        name = attribute.name.removeprefix("CU_DEVICE_ATTRIBUTE_")
        return OK, self._known.get(name, 128 * MB)

    def cuCtxGetLimit(self, limit: Any) -> Any:
        return self._status, self.limit

    def cuCtxSetLimit(self, limit: Any, size_bytes: int) -> Any:
        if self._status == OK:
            self.limit = size_bytes
        return (self._status,)

    def cuCtxResetPersistingL2Cache(self) -> Any:
        self.resets += 1
        return (OK,)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A set-aside on such a GPU, and the GPU."""

    def make(**properties: Any) -> Any:
        gpu = Gpu(**properties)
        monkeypatch.setattr(l2, "driver", gpu)
        return SimpleNamespace(set_aside=SetAside(None), gpu=gpu)

    return make


def test_weights_have_it_in_turn_while_all_of_them_fit(made: Any) -> None:
    here = made()
    assert SHARE * L2_BYTES == 10 * MB
    kept = [here.set_aside.window(4096, size) is not None for size in (6 * MB, 5 * MB, 4 * MB, 1)]
    assert kept == [True, False, True, False]
    assert here.gpu.limit == 10 * MB


def test_a_window_is_where_the_weights_are(made: Any) -> None:
    window = made().set_aside.window(4096, 3 * MB).accessPolicyWindow
    assert (int(window.base_ptr), window.num_bytes, window.hitRatio) == (4096, 3 * MB, 1.0)


@pytest.mark.parametrize("properties", [{"persisting": 0}, {"refuses": True}])
def test_where_nothing_can_be_set_aside_nothing_is(made: Any, properties: Any) -> None:
    here = made(**properties)
    assert here.set_aside.window(4096, MB) is None
    here.set_aside.give_back()
    assert (here.gpu.limit, here.gpu.resets) == (0, 0)


def test_no_weights_need_no_room(made: Any) -> None:
    assert made().set_aside.window(0, 0) is None


def test_what_was_kept_is_given_back_once(made: Any) -> None:
    here = made()
    here.set_aside.window(4096, MB)
    here.set_aside.give_back()
    here.set_aside.give_back()
    assert here.gpu.resets == 1


def test_streams_are_left_alone_where_there_is_no_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(l2, "driver", SimpleNamespace())
    look_through(None, "stream")
    with pytest.raises(AttributeError):
        look_through("window", "stream")
