// functions 2, loops 2, depth 2
//! launch f global(1) args(x)
static float g(__global float *x) {
    float s = 0;
    for (int i = 0; i < 4; i++) s += x[i];
    return s;
}
__kernel __attribute__((reqd_work_group_size(64, 1, 1))) void f(__global float *x) {
    __local float t[8];
    while (t[0] < 1) t[0] = g(x);
}
