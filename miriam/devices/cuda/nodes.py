"""Nodes of a captured graph: read, and added again to a graph that is being recorded.

A child graph would be one node that no gate can stand inside, so every node is made anew: a kernel
with its parameters, its attributes (clusters, cooperative launch) and the priority of the stream,
and the edges with their data (programmatic launches).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from miriam.devices.cuda.capture import move_to, position
from miriam.devices.cuda.driver import ask, driver
from miriam.errors import DeviceError, MissingCapabilityError

KERNEL, COPY, FILL, EMPTY = "KERNEL", "MEMCPY", "MEMSET", "EMPTY"
_PREFIX = "CU_GRAPH_NODE_TYPE_"


@dataclass(frozen=True, slots=True)
class Edge:
    """A dependency on the node ``source``; ports and type as in ``CUgraphEdgeData``."""

    source: int
    from_port: int = 0
    to_port: int = 0
    type: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a user's graph: its handle, its kind and what it comes after."""

    handle: int
    kind: str
    after: tuple[Edge, ...]


def read_nodes(graph: int) -> tuple[Node, ...]:
    """The nodes of ``graph``, each behind those that it depends on, else as they were made.

    MissingCapabilityError for kinds of nodes that can not be made again.
    """
    count = ask(driver.cuGraphGetNodes(graph))[1]
    handles = [int(node) for node in ask(driver.cuGraphGetNodes(graph, count))[0]] if count else []
    after: dict[int, list[Edge]] = {handle: [] for handle in handles}
    for target, edge in _edges(graph):
        after[target].append(edge)
    nodes = [Node(handle, _kind(handle), tuple(after[handle])) for handle in handles]
    done: dict[int, Node] = {}
    while len(done) < len(nodes):
        for node in nodes:
            if node.handle not in done and all(edge.source in done for edge in node.after):
                done[node.handle] = node
    return tuple(done.values())


def _kind(node: int) -> str:
    kind = str(ask(driver.cuGraphNodeGetType(driver.CUgraphNode(node))).name).removeprefix(_PREFIX)
    if kind not in (KERNEL, COPY, FILL, EMPTY):
        raise MissingCapabilityError(
            "captured graph",
            f"a node of kind {kind} can not be made again with gates around it",
            "capture nothing but kernels, copies and fills: no callbacks, no conditions, no child "
            "graphs, no allocation, no events of other streams",
        )
    return kind


class _EdgeData(ctypes.Structure):
    """``CUgraphEdgeData``."""

    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


def _edges(graph: int) -> list[tuple[int, Edge]]:
    """Target and edge; read without the bindings, whose edge data is freed memory (13.0.3)."""
    found = ask(driver.cuGetProcAddress(b"cuGraphGetEdges", 13_000, 0))
    pointer = ctypes.c_void_p
    get = ctypes.CFUNCTYPE(ctypes.c_int, *[pointer] * 5)(found[0])
    count = ctypes.c_size_t(0)
    _check(get(graph, None, None, None, ctypes.byref(count)))
    if not count.value:
        return []
    sources, targets = ((pointer * count.value)() for _ in range(2))
    data = (_EdgeData * count.value)()
    _check(get(graph, sources, targets, data, ctypes.byref(count)))
    return [
        (int(target or 0), Edge(int(source or 0), d.from_port, d.to_port, d.type))
        for source, target, d in zip(sources, targets, data, strict=True)
    ]


def _check(status: int) -> None:
    if status:
        raise DeviceError(f"cuGraphGetEdges: {driver.CUresult(status).name}")


class Clone:
    """Makes nodes of one graph again in the graph that a stream records.

    What else is submitted to the stream in between comes after all nodes so far and before all
    further ones; nodes with nothing between them keep the edges that they had.
    """

    def __init__(self) -> None:
        self._floor: list[Any] = []
        self._made: dict[int, Any] = {}
        self._last: dict[int, Any] = {}

    def submit(self, stream: Any, nodes: Sequence[Node]) -> None:
        """Add ``nodes``, which follow those of the last call."""
        graph, reached = position(stream)
        if {int(n) for n in reached} != {int(n) for n in self._last.values()}:
            self._floor, self._made, self._last = reached, {}, {}
        priority = int(ask(driver.cuStreamGetPriority(stream)))
        for node in nodes:
            self._add(graph, node, priority)
        move_to(stream, list(self._last.values()))

    def _add(self, graph: Any, node: Node, priority: int) -> None:
        made = self._made[node.handle] = _again(graph, node, priority)
        edges = [edge for edge in node.after if edge.source in self._made]
        before = [self._made[edge.source] for edge in edges]
        data = [_data(edge) for edge in edges]
        if not edges:
            before, data = self._floor, [driver.CUgraphEdgeData() for _ in self._floor]
        if before:
            targets = [made] * len(before)
            ask(driver.cuGraphAddDependencies(graph, before, targets, data, len(before)))
        for edge in edges:
            self._last.pop(edge.source, None)
        self._last[node.handle] = made


def _data(edge: Edge) -> Any:
    data = driver.CUgraphEdgeData()
    data.from_port, data.to_port = edge.from_port, edge.to_port
    data.type = driver.CUgraphDependencyType(edge.type)
    return data


def _again(graph: Any, node: Node, priority: int) -> Any:
    handle = driver.CUgraphNode(node.handle)
    if node.kind == EMPTY:
        return ask(driver.cuGraphAddEmptyNode(graph, None, 0))
    if node.kind == KERNEL:
        parameters = ask(driver.cuGraphKernelNodeGetParams(handle))
        made = ask(driver.cuGraphAddKernelNode(graph, None, 0, parameters))
        ask(driver.cuGraphKernelNodeCopyAttributes(made, handle))
        value = driver.CUkernelNodeAttrValue()
        value.priority = priority
        name = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
        ask(driver.cuGraphKernelNodeSetAttribute(made, name, value))
        return made
    context = ask(driver.cuCtxGetCurrent())
    if node.kind == COPY:
        parameters = ask(driver.cuGraphMemcpyNodeGetParams(handle))
        return ask(driver.cuGraphAddMemcpyNode(graph, None, 0, parameters, context))
    parameters = ask(driver.cuGraphMemsetNodeGetParams(handle))
    return ask(driver.cuGraphAddMemsetNode(graph, None, 0, parameters, context))
