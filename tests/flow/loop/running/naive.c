// Running sum, every element from the beginning.
//! launch running args(x, y, N)
#include <stdint.h>

void running(const float *x, float *y, int32_t N)
{
    for (int32_t i = 0; i < N; i++) {
        float sum = 0;
        for (int32_t j = 0; j <= i; j++)
            sum += x[j];
        y[i] = sum;
    }
}
