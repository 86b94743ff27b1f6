// functions 2, loops 2, depth 2
//! launch f grid(1) block(32) args(x)
template <int N = 4, typename T = float> struct s {
    T a[N];
    __device__ void g(T *x) {
        for (int i = 0; i < N; i++) x[i] = a[i];
    }
};
__global__ void f(float *x) {
    s<> y;
    for (;;) y.g(x);
}
