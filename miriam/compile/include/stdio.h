// For NVRTC, which has no standard headers: its built-in printf is all of it.
#pragma once
