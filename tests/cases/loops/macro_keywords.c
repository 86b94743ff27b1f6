// functions 1, loops 1, depth 1
//! launch f args(x)
#define FOR for
#define IN {
#define OUT }
void f(int *x) IN FOR(;;) IN x++;
OUT OUT
