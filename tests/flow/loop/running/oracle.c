// Running sum in double precision.
//! launch running args(x, y, N)
#include <stdint.h>

void running(const float *x, double *y, int32_t N)
{
    double sum = 0;
    for (int32_t i = 0; i < N; i++)
        y[i] = sum += (double)x[i];
}
