// What the launcher finds in a kernel's shared object: an entry and a signature per kernel.
#pragma once

namespace miriam_host {

// One letter and the size per parameter: p pointer, i integer, f floating point, s other.
template <class P>
int describe(char* out, size_t room) {
  const char kind = std::is_pointer_v<P>          ? 'p'
                    : std::is_integral_v<P>       ? 'i'
                    : std::is_floating_point_v<P> ? 'f'
                                                  : 's';
  return snprintf(out, room, "%c%zu ", kind, sizeof(P));
}

template <class... P>
void signature(void (*)(P...), char* out, size_t room) {
  size_t used = 0;
  *out = 0;
  ((used += static_cast<size_t>(describe<P>(out + used, room - used))), ...);
}

template <class... P, size_t... I>
inline void call(void (*kernel)(P...), void** args, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(args[I])...);
}

template <class... P>
inline void call(void (*kernel)(P...), void** args) {
  call(kernel, args, std::index_sequence_for<P...>());
}

}  // namespace miriam_host

#define MIRIAM_HOST_EXPORT extern "C" __attribute__((visibility("default")))
#define MIRIAM_HOST_ENTRY(n, ...)                                                            \
  MIRIAM_HOST_EXPORT void miriam_entry_##n(void** a) { miriam_host::call(__VA_ARGS__, a); } \
  MIRIAM_HOST_EXPORT void miriam_signature_##n(char* out, size_t room) {                     \
    miriam_host::signature(__VA_ARGS__, out, room);                                          \
  }
