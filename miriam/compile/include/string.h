// For NVRTC, which has no standard headers: its built-in memcpy and memset are all of it.
#pragma once
