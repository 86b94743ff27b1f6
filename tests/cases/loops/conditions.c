// functions 1, loops 1, depth 1
//! launch f args(x)
#if A
void f(int *x) {
    for (;;) x++;
}
#endif
#if 0
void g(int *x) { for (;;) x++; }
#endif
