// functions 1, loops 1, depth 1
//! launch f args(x)
#define MANY(...) __VA_ARGS__
void f(int *x) { MANY(for (int i = 0, j = 1; i < j; i++) x[i] = j;) }
