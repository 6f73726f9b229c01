// Stack switching: 7 ns by hand on x86-64 and aarch64, ucontext (a system call a switch) elsewhere.
#pragma once

#include <cstddef>
#include <cstdint>

#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(MIRIAM_HOST_UCONTEXT)

// Saves the callee-saved registers on this stack and its pointer in *from, then resumes `to`.
extern "C" void miriam_host_switch(void** from, void* to);

#if defined(__x86_64__)
asm(R"(
.text
.weak miriam_host_switch
.hidden miriam_host_switch
.type miriam_host_switch, @function
miriam_host_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size miriam_host_switch, .-miriam_host_switch
)");
constexpr int kReturnWord = 6;
constexpr int kFrameWords = 8;  // even, so that the entry finds the stack aligned as after a call
#else
asm(R"(
.text
.weak miriam_host_switch
.hidden miriam_host_switch
.type miriam_host_switch, %function
miriam_host_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size miriam_host_switch, .-miriam_host_switch
)");
constexpr int kReturnWord = 11;
constexpr int kFrameWords = 20;
#endif

namespace miriam_host {

using Context = void*;

// A context that starts `entry` on the stack that ends at `top`; entry never returns.
inline void prepare(Context* context, char* top, std::size_t, void (*entry)()) {
  auto** frame = reinterpret_cast<void**>(reinterpret_cast<std::uintptr_t>(top) & ~15ull);
  frame -= kFrameWords;
  for (int word = 0; word < kFrameWords; ++word) frame[word] = nullptr;
  frame[kReturnWord] = reinterpret_cast<void*>(entry);
  *context = frame;
}

inline void switch_to(Context* from, Context* to) { miriam_host_switch(from, *to); }

// Reads what a switch to `context` needs first into the cache.
inline void fetch_early(const Context& context) {
  for (int line = 0; line < 4; ++line) {
    __builtin_prefetch(static_cast<const char*>(context) + line * 64);
  }
}

}  // namespace miriam_host

#else

#include <ucontext.h>

namespace miriam_host {

using Context = ucontext_t;

inline void prepare(Context* context, char* top, std::size_t bytes, void (*entry)()) {
  getcontext(context);
  context->uc_stack.ss_sp = top - bytes;
  context->uc_stack.ss_size = bytes;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
}

inline void switch_to(Context* from, Context* to) { swapcontext(from, to); }
inline void fetch_early(const Context&) {}

}  // namespace miriam_host

#endif
