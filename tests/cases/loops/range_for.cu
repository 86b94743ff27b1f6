// functions 1, loops 3, depth 1
//! launch f grid(1) block(32) args(x)
__global__ void f(int *x) {
    int a[3] = {1, 2, 3};
    for (int y : a) x[y] = y;
    if constexpr (true) {
        for (;;) x++;
    } else
        while (x) x++;
}
