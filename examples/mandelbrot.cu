// A long kernel: one thread per pixel, up to `most` steps each.
__global__ void mandelbrot(int* steps, int width, int most) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (column >= width || row >= width) return;
  const float a = 3.0f * column / width - 2.0f, b = 3.0f * row / width - 1.5f;
  float x = 0.0f, y = 0.0f;
  int step = 0;
  while (step < most && fmaf(x, x, y * y) < 4.0f) {
    const float next = fmaf(x, x, fmaf(-y, y, a));
    y = fmaf(2.0f * x, y, b);
    x = next;
    ++step;
  }
  steps[row * width + column] = step;
}
