"""Graphs by stream capture: what is submitted to a stream in between becomes a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from miriam.devices.cuda.driver import ask, driver, event


@dataclass(eq=False)
class Graph:
    """A recorded graph; ``executable`` is there once the recording has ended."""

    stream: Any
    executable: Any = None
    _graph: Any = None

    @property
    def handle(self) -> int:
        """The CUgraph."""
        return int(self._graph)

    def launch(self, stream: Any) -> None:
        """Run it on ``stream``."""
        ask(driver.cuGraphLaunch(self.executable, stream))

    def upload(self, stream: Any) -> None:
        """Bring it to the GPU, so that no launch has to."""
        ask(driver.cuGraphUpload(self.executable, stream))

    def destroy(self) -> None:
        """Give it back; it may not be running."""
        if self.executable is not None:
            ask(driver.cuGraphExecDestroy(self.executable))
        if self._graph is not None:
            ask(driver.cuGraphDestroy(self._graph))
        self.executable = self._graph = None


@contextmanager
def recording_into(graph: Any, stream: Any) -> Iterator[None]:
    """Record what is submitted to ``stream`` into ``graph``, the body of a WHILE node."""
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    ask(driver.cuStreamBeginCaptureToGraph(stream, graph, None, None, 0, mode))
    try:
        yield
    finally:
        ask(driver.cuStreamEndCapture(stream))


@contextmanager
def recording(stream: Any) -> Iterator[Graph]:
    """Record what is submitted to ``stream``, and to streams that fork from it, as a graph."""
    graph = Graph(stream)
    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    ask(driver.cuStreamBeginCapture(stream, mode))
    try:
        yield graph
    except BaseException:
        ended = driver.cuStreamEndCapture(stream)
        if not int(ended[0]) and int(ended[1]):
            ask(driver.cuGraphDestroy(ended[1]))
        raise
    graph._graph = ask(driver.cuStreamEndCapture(stream))
    graph.executable = ask(driver.cuGraphInstantiate(graph._graph, 0))


class Fork:
    """A branch of a recording beside its main stream: waits for it, and is waited for.

    ``owner`` destroys its events, after the recording.
    """

    def __init__(self, main: Any, side: Any, owner: ExitStack) -> None:
        self._main, self.side, self._owner = main, side, owner

    def catch_up(self) -> None:
        """What follows on the side comes after what is on the main stream so far."""
        self._wait(self.side, self._main)

    def join(self) -> None:
        """What follows on the main stream comes after what is on the side so far."""
        self._wait(self._main, self.side)

    def _wait(self, waiting: Any, passed: Any) -> None:
        mark = event(self._owner, driver.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        ask(driver.cuEventRecord(mark, passed))
        ask(driver.cuStreamWaitEvent(waiting, mark, 0))


def conditional(stream: Any) -> Any:
    """A condition in the graph that ``stream`` records, unset whenever the graph starts."""
    graph, _ = position(stream)
    context = ask(driver.cuCtxGetCurrent())
    return ask(driver.cuGraphConditionalHandleCreate(graph, context, 0, _ASSIGN_DEFAULT))


def add_while(stream: Any, condition: Any) -> Any:
    """Add a WHILE node to what ``stream`` records: the graph of its body.

    The body runs as long as ``condition`` is set when it would begin (CUDA driver API,
    "Conditional Graph Nodes").
    """
    graph, dependencies = position(stream)
    parameters = driver.CUgraphNodeParams()
    parameters.type = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    parameters.conditional.handle = condition
    parameters.conditional.type = driver.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_WHILE
    parameters.conditional.size = 1
    parameters.conditional.ctx = ask(driver.cuCtxGetCurrent())
    node = ask(driver.cuGraphAddNode(graph, dependencies, None, len(dependencies), parameters))
    body = parameters.conditional.phGraph_out[0]
    move_to(stream, [node])
    return body


def add_wait(stream: Any, addresses: Sequence[int]) -> None:
    """Wait, in what ``stream`` records, until each word at ``addresses`` was seen not to be 0.

    The front end of the GPU does that, so it takes no place on an SM (CUDA driver API, "Stream
    Memory Operations"). The bodies of conditional nodes can not have such nodes.
    """
    kind = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32
    operations = [driver.CUstreamBatchMemOpParams() for _ in addresses]
    for operation, address in zip(operations, addresses, strict=True):
        operation.operation = operation.waitValue.operation = kind
        operation.waitValue.address, operation.waitValue.value = address, 0xFFFF_FFFF
        operation.waitValue.flags = int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_AND)
    _add_operations(stream, operations)


def add_write(stream: Any, address: int, value: int) -> None:
    """Write ``value`` to the word at ``address``, as `add_wait` waits."""
    operation = driver.CUstreamBatchMemOpParams()
    kind = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
    operation.operation = operation.writeValue.operation = kind
    operation.writeValue.address, operation.writeValue.value = address, value
    operation.writeValue.flags = 0
    _add_operations(stream, [operation])


def _add_operations(stream: Any, operations: Sequence[Any]) -> None:
    graph, dependencies = position(stream)
    parameters = driver.CUDA_BATCH_MEM_OP_NODE_PARAMS()
    parameters.ctx = ask(driver.cuCtxGetCurrent())
    parameters.count, parameters.flags = len(operations), 0
    parameters.paramArray = list(operations)
    node = ask(driver.cuGraphAddBatchMemOpNode(graph, dependencies, len(dependencies), parameters))
    move_to(stream, [node])


_ASSIGN_DEFAULT = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT


def position(stream: Any) -> tuple[Any, list[Any]]:
    """The graph that ``stream`` records, and the nodes that its next one comes after."""
    _, _, graph, dependencies, *_, count = ask(driver.cuStreamGetCaptureInfo(stream))
    return graph, list(dependencies or [])[:count]


def move_to(stream: Any, nodes: Sequence[Any]) -> None:
    """What is submitted to ``stream``, which records, comes after ``nodes`` from now on."""
    replace = driver.CUstreamUpdateCaptureDependencies_flags.CU_STREAM_SET_CAPTURE_DEPENDENCIES
    ask(driver.cuStreamUpdateCaptureDependencies(stream, list(nodes), None, len(nodes), replace))
