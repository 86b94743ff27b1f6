// functions 1, loops 1, depth 1
//! launch f grid(1) block(32) args(x)
__global__ void f(float *x) {
    auto g = [&](int n) {
        for (int i = 0; i < n; i++) x[i] = 0;
    };
    g(3);
}
