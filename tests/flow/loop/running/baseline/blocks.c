// Running sum, every element from the beginning of its block of 64.
//! launch running args(x, y, N)
#include <stdint.h>

void running(const float *x, float *y, int32_t N)
{
    for (int32_t i = 0; i < N; i++) {
        const int32_t from = i / 64 * 64;
        float sum = from ? y[from - 1] : 0;
        for (int32_t j = from; j <= i; j++)
            sum += x[j];
        y[i] = sum;
    }
}
