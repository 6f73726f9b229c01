"""A CUDA GPU, or a world of some of its SMs, as a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from miriam.compile import compile_cubin
from miriam.coordinator import Mix, Plan, Policy, Task
from miriam.coordinator.corun import Candidate, CoRun, Measuring
from miriam.devices.cuda.captured import Captured
from miriam.devices.cuda.code import CONTROL_KERNELS, CONTROLS, Function, Module
from miriam.devices.cuda.corun import CoRunner
from miriam.devices.cuda.kernels import Kernels
from miriam.devices.cuda.profile import Profiler, StepProfile
from miriam.devices.cuda.recording import Recording
from miriam.devices.cuda.session import CudaSession
from miriam.devices.cuda.tryout import to_try, tried
from miriam.devices.cuda.world import Gpu, World
from miriam.devices.observe import Observer
from miriam.devices.tryout import Tried
from miriam.kernels import GpuSpec, Program


class CudaDevice:
    """A GPU of this machine; ``counting``: the runs of elastic steps' blocks are counted."""

    def __init__(self, gpu: Gpu, world: World, *, counting: bool) -> None:
        self._gpu, self.world = gpu, world
        world.enter()
        self.controls = Module(compile_cubin(CONTROLS, CONTROL_KERNELS, gpu.arch))
        self._kernels = Kernels(gpu.arch, counting=counting)
        self._counting = counting
        self._profiler = Profiler(world, self._kernels)
        self._corunner = CoRunner(world, self._kernels, self.controls.function("miriam_where"))
        self._profiles: dict[int, tuple[Program, tuple[StepProfile, ...]]] = {}
        self._captured: dict[int, Captured] = {}
        self._shown = Tried()

    @property
    def name(self) -> str:
        """``cuda:`` and the GPU's number, and the world's SMs if it is not the whole GPU."""
        confined = f":{self.world.sms}" if self.world.sms < self._gpu.sms else ""
        return f"cuda:{self._gpu.ordinal}{confined}"

    @property
    def simulated(self) -> bool:
        """Never."""
        return False

    @property
    def gpu(self) -> GpuSpec:
        """The GPU that policies plan for."""
        return self._gpu.spec(self.world)

    def profile(self, program: Program) -> tuple[StepProfile, ...]:
        """The measured times of each step of ``program`` alone, found once."""
        known = self._profiles.get(id(program))
        if known is None:
            self.world.enter()
            known = self._profiles[id(program)] = program, self._measured(program)
        return known[1]

    def _measured(self, program: Program) -> tuple[StepProfile, ...]:
        captured = self.captured_as(program)
        if captured is not None:
            return tuple(StepProfile(taken_ns, {}, {}) for taken_ns in captured.step_ns())
        self._kernels.load([program])
        return self._profiler.profile(program)

    def captured(self, name: str, recordings: Sequence[Recording]) -> Program:
        """A program of captured graphs, one recording per request that may be in flight.

        Its steps are the kernels of the graph, rigid ones; gates can hold each of them. It runs on
        this device only, which keeps all that was handed in. UsageError for recordings that
        differ, or that keep to other SMs; MissingCapabilityError for a graph with nodes that are
        no kernels, copies or fills.
        """
        self.world.enter()
        made = Captured(name, self._gpu.arch, recordings, self.world)
        self._captured[id(made.program)] = made
        return made.program

    def captured_as(self, program: Program) -> Captured | None:
        """What ``program`` was captured as, None if its kernels have source."""
        return self._captured.get(id(program))

    def functions(self, program: Program) -> tuple[Function, ...]:
        """The kernel of each step on this GPU, as its author wrote it."""
        captured = self.captured_as(program)
        if captured is not None:
            return captured.functions
        return tuple(self._kernels.original(step) for step in program.steps)

    def open(
        self,
        tasks: Sequence[Task],
        policy: Policy,
        observers: Sequence[Observer] = (),
        *,
        timed: bool = False,
        ladder: Callable[[Mix], Sequence[Plan]] = lambda mix: (),
    ) -> CudaSession:
        """Open a session for ``tasks`` under ``policy``; all that it needs is made here.

        ``ladder`` makes the plans that the session may ``use`` besides the policy's own: they
        differ from it in their grants only. MissingCapabilityError for a plan that this device
        has no means for.
        """
        profiles = [self.profile(task.program) for task in tasks]
        step_ns = tuple(tuple(step.original_ns for step in steps) for steps in profiles)
        mix = Mix(self.gpu, tuple(tasks), step_ns)
        if isinstance(policy, Measuring):
            mix = replace(mix, coruns=self._coruns(mix, policy))
            plans = to_try(policy.candidates(mix), self.world)
            mix = replace(mix, candidates=self._tried(mix, plans, profiles))
        return CudaSession(self, mix, policy, profiles, observers, tuple(ladder(mix)), timed)

    def _coruns(self, mix: Mix, policy: Measuring) -> dict[tuple[int, int], tuple[CoRun, ...]]:
        """What ``policy`` wants to know, measured; of a captured program nothing can be."""
        found: dict[tuple[int, int], tuple[CoRun, ...]] = {}
        for critical in mix.critical:
            for normal in mix.normal:
                programs = mix.tasks[critical].program, mix.tasks[normal].program
                if any(self.captured_as(program) for program in programs):
                    found[critical, normal] = ()
                    continue
                profiles = self.profile(programs[0]), self.profile(programs[1])
                trials = policy.trials(mix, critical, normal)
                found[critical, normal] = self._corunner.measure(programs, profiles, trials)
        return found

    def _tried(
        self, mix: Mix, plans: Sequence[Plan], profiles: Sequence[Sequence[StepProfile]]
    ) -> tuple[Candidate, ...]:
        """What ``plans`` show; tried once for the same tasks."""
        return self._shown.of(mix.tasks, plans, lambda: tried(self, mix, plans, profiles))

    @property
    def kernels(self) -> Kernels:
        """The loaded kernels."""
        return self._kernels

    @property
    def counting(self) -> bool:
        """Whether elastic steps count the runs of their blocks."""
        return self._counting
