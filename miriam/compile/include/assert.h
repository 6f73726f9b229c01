// For NVRTC, which has no standard headers: its built-in assert is all of it.
#pragma once
