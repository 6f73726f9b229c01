// For NVRTC, which has no standard headers: malloc, free and abs are built in.
#pragma once

typedef unsigned int uint;
