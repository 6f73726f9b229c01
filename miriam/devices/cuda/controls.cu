// The coordinator's own kernels: what waits, and what asks where it is.

typedef unsigned long long Handle;  // cudaGraphConditionalHandle, without the runtime's headers

extern "C" __device__ void cudaGraphSetConditional(Handle handle, unsigned value);

// What a gate looks at. `quota` and its further words as in MiriamLaunch, for each of `forms`
// neighbouring words; it opens when one of the forms may run at least one block.
struct Gate {
  const volatile unsigned* quota;
  unsigned forms, more_quotas, quota_stride;
  // A step that has all its blocks claimed needs no gate: `counter` is null before a step.
  unsigned count;
  const volatile unsigned* counter;
  const volatile unsigned* abort;   // in the host's memory; not 0: let everything through
  unsigned* late;                   // counts the gates that opened because their time was up
  unsigned* shrunk;                 // as in MiriamLaunch, for the launch behind the gate; or null
  unsigned long long limit_ns;
  unsigned long long* waits;        // when gates found themselves shut: see WAITS
  unsigned lane;                    // who says so
  unsigned first;                   // not 0: before, or behind, the first step of a request
};

// `waits` counts in its first word, and keeps the last ones as pairs of time and lane behind it.
const unsigned WAITS = 8192;

static __device__ unsigned long long now_ns() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

static __device__ bool is_open(const Gate& gate) {
  if (gate.counter != nullptr && *gate.counter >= gate.count) return true;
  for (unsigned form = 0; form < gate.forms; ++form) {
    unsigned least = 0xffffffffu;
    for (unsigned i = 0; i <= gate.more_quotas; ++i) {
      least = min(least, gate.quota[form + i * gate.quota_stride]);
    }
    if (least > 0) return true;
  }
  return false;
}

// Whether something of the request ran before, so that it has left by now.
static __device__ bool has_left(const Gate& gate) {
  return gate.first == 0 || (gate.counter != nullptr && *gate.counter > 0);
}

// Looks at the host's memory take as long as several at the GPU's, hence not at every turn.
static __device__ bool is_aborted(const volatile unsigned* abort, unsigned turn) {
  return turn % 16 == 0 && *abort != 0;
}

static __device__ void wait(const Gate& gate) {
  if (is_open(gate)) return;
  const unsigned long long since = now_ns(), until = since + gate.limit_ns;
  if (has_left(gate)) {
    const unsigned long long number = atomicAdd(gate.waits, 1ull) % WAITS;
    gate.waits[1 + 2 * number] = since;
    gate.waits[2 + 2 * number] = gate.lane;
  }
  for (unsigned turn = 0; !is_open(gate) && !is_aborted(gate.abort, turn); ++turn) {
    __nanosleep(200);
    if (now_ns() > until) {
      atomicAdd(gate.late, 1u);
      return;
    }
  }
}

extern "C" __global__ void miriam_gate(const Gate gate) {
  wait(gate);
  if (gate.shrunk != nullptr) *gate.shrunk = 0;
}

// A border between groups of steps: a request waits here until every other one is at a border too,
// or does not run. `at[lane]` is the round that a lane has arrived for, `running[lane]` not 0 while
// its request runs.
struct Border {
  unsigned* round;
  volatile unsigned* at;
  const volatile unsigned* running;
  const volatile unsigned* abort;
  unsigned* late;
  unsigned long long limit_ns;
  unsigned lanes, lane;
};

extern "C" __global__ void miriam_border(const Border border) {
  const unsigned round = atomicAdd(border.round, 0u);
  border.at[border.lane] = round + 1;
  __threadfence();
  const unsigned long long until = now_ns() + border.limit_ns;
  for (unsigned turn = 0; atomicAdd(border.round, 0u) == round; ++turn) {
    if (is_aborted(border.abort, turn)) return;
    bool all = true;
    for (unsigned i = 0; i < border.lanes; ++i) {
      all = all && (border.running[i] == 0 || border.at[i] == round + 1);
    }
    if (all) {
      atomicCAS(border.round, round, round + 1);
    } else if (now_ns() > until) {
      atomicAdd(border.late, 1u);
      return;
    } else {
      __nanosleep(200);
    }
  }
}

// The time on the clock of `waits`.
extern "C" __global__ void miriam_now(unsigned long long* time) { *time = now_ns(); }

// Whether the body of a WHILE node runs (once more): until all blocks of the step are claimed.
extern "C" __global__ void miriam_again(
    const volatile unsigned* counter, unsigned count, Handle handle) {
  cudaGraphSetConditional(handle, *counter < count);
}

// Marks the SM that each block runs on.
extern "C" __global__ void miriam_where(unsigned* seen, unsigned long long hold_ns) {
  unsigned sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  seen[sm] = 1;
  const unsigned long long until = now_ns() + hold_ns;
  while (now_ns() < until) __nanosleep(100);
}
