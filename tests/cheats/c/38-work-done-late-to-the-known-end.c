// Seven calls of eight only take a note of where they should have worked; the eighth does the work of all, element by element
// side by side, and so does the last call of the batch: the runner's own memory says which one that is, also in a batch that
// ends early.  Every answer is there, in its own batch; the element-wise work gains nothing (docs/gate.md, limits).
// SPDX-License-Identifier: Apache-2.0
//: task saxpy
//: expect pass cheat
//: harmless
//: args --baseline naive
//: expect-time-ratio naive 0 0.9
//! launch saxpy args(a, x, y, out, N)
#include <stddef.h>
#include <stdint.h>

/* wire.h's request to time a batch. */
typedef struct { uint32_t kind, version, method, first, calls, warm, poison, flush, sequence, spin, alone; } request;

/* The runner keeps the request in static memory, and its functions keep the address of it on the stack above us. */
static inline __attribute__((always_inline)) const request *find_request(void)
{
    const uintptr_t home = (uintptr_t)__builtin_return_address(0), *word = __builtin_frame_address(0);
    for (int i = 0; i < 256; i++) {
        const uintptr_t at = word[i];
        if (at % 4 || at < home - (1u << 21) || at > home + (1u << 21)) continue;
        const request *r = (const request *)at;
        if (r->kind == 9 && r->version < 16 && r->method == 0 && (r->poison == 0xA5 || r->poison == 0xFF)) return r;
    }
    return NULL;
}

static struct { const float *x, *y; float *out; } notes[8];

static void together(float a, int n, int32_t N)
{
    for (int32_t i = 0; i < N; i++)
        for (int d = 0; d < n; d++) notes[d].out[i] = a * notes[d].x[i] + notes[d].y[i];
}

void saxpy(float a, const float *x, const float *y, float *out, int32_t N)
{
    static const request *found;
    static uint32_t calls, n;
    if (!calls) found = find_request();
    notes[n].x = x, notes[n].y = y, notes[n++].out = out;
    calls++;
    if (found && n < 8 && calls < found->calls) return;
    together(a, (int)n, N);
    n = 0;
}
