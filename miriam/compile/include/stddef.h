// For NVRTC, which has no standard headers: its built-in size_t and NULL are all of it.
#pragma once
