// Slices one long kernel, then stops it half way and lets it go on: nothing is lost or run twice.
//
//     miriam elasticize examples/mandelbrot.cu -o mandelbrot_elastic.cuh
//     nvcc -I. examples/slice_and_stop.cu -o slice_and_stop && ./slice_and_stop
#include <cstdio>
#include <vector>

#include "mandelbrot.cu"
#define MIRIAM_HAVE_ORIGINALS  // it stands above; without it the elastic file needs nothing else
#include "mandelbrot_elastic.cuh"

int main() {
  const int width = 4096, most = 20000;
  const dim3 grid(width / 16, width / 16), block(16, 16);
  const unsigned blocks = grid.x * grid.y, resident = 264;  // about two per SM of a large GPU
  const size_t bytes = sizeof(int) * width * width;
  int* steps[3];
  for (int*& s : steps) cudaMalloc(&s, bytes);
  unsigned* words;  // the counter and the quota of the yield form
  cudaMalloc(&words, 2 * sizeof(unsigned));
  cudaStream_t work, control;
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&control, cudaStreamNonBlocking);
  mandelbrot<<<grid, block, 0, work>>>(steps[0], width, most);

  // In four slices: between two of them, anything else may run.
  for (unsigned start = 0; start < blocks; start += blocks / 4) {
    const MiriamLaunch slice{grid.x, grid.y, grid.z, start, blocks / 4, nullptr, nullptr};
    mandelbrot__slice<<<slice.count, block, 0, work>>>(slice, steps[1], width, most);
  }
  cudaStreamSynchronize(work);

  // Stopped at about half of its blocks by a word in device memory, then launched again.
  const MiriamLaunch rest{grid.x, grid.y, grid.z, 0, blocks, words, words + 1};
  cudaMemsetAsync(words, 0, sizeof(unsigned), control);
  cudaMemsetAsync(words + 1, 0xff, sizeof(unsigned), control);
  cudaStreamSynchronize(control);
  mandelbrot__yield<<<resident, block, 0, work>>>(rest, steps[2], width, most);
  unsigned claimed = 0;
  while (claimed < blocks / 2) cudaMemcpyAsync(&claimed, words, 4, cudaMemcpyDefault, control);
  cudaMemsetAsync(words + 1, 0, sizeof(unsigned), control);
  cudaStreamSynchronize(work);
  cudaMemcpy(&claimed, words, sizeof claimed, cudaMemcpyDefault);
  std::printf("stopped after %u of %u blocks\n", claimed, blocks);
  cudaMemset(words + 1, 0xff, sizeof(unsigned));
  mandelbrot__yield<<<resident, block, 0, work>>>(rest, steps[2], width, most);
  cudaStreamSynchronize(work);

  std::vector<int> results[3];
  for (int i = 0; i < 3; ++i) {
    results[i].resize(bytes / sizeof(int));
    cudaMemcpy(results[i].data(), steps[i], bytes, cudaMemcpyDefault);
  }
  const bool equal = results[0] == results[1] && results[0] == results[2];
  std::printf("%s, %s\n", equal ? "equal" : "DIFFERENT", cudaGetErrorString(cudaGetLastError()));
  return !equal;
}
