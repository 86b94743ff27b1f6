// functions 1, loops 1, depth 1
//! launch f args(x)
void f(int *x) {
    const char *s = "for (;;) {"; /* for (;;) { */
    while (*s) s++;
    x[0] = '{';
}
