// Running sum, one pass.
//! launch running args(x, y, N)
#include <stdint.h>

void running(const float *x, float *y, int32_t N)
{
    float sum = 0;
    for (int32_t i = 0; i < N; i++) {
        sum += x[i];
        y[i] = sum;
    }
}
