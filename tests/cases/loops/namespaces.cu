// functions 2, loops 1, depth 1
//! launch f grid(1) block(32) args(x)
namespace a {
template <typename T> __device__ auto g(T x) -> decltype(x + 1) {
    do x--;
    while (x > 0);
    return x;
}
} // namespace a
extern "C" {
__global__ void f(int *x) { x[0] = a::g(x[0]); }
}
