// functions 1, loops 2, depth 2
//! launch f args(x)
#define EACH(i, n) for (int i = 0; i < (n); i++)
void f(int *x) { EACH(a, 4) EACH(b, 5) x[a] = b; }
