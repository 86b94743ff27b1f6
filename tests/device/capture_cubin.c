/* capture_cubin.c - writes the code that capture_program launches: fake_cubin.h as a file, or in a
 * fatbin beside code for another device.
 *
 * usage: capture_cubin FILE [fatbin]      SPDX-License-Identifier: Apache-2.0 */
#include "fake_cubin.h"

static void put_entry(FILE *f, uint32_t arch, const fake_cubin *code) {
    unsigned char head[64] = {0};
    const uint16_t kind = 2;
    const uint32_t head_bytes = sizeof head;
    const uint64_t bytes = sizeof *code;
    memcpy(head, &kind, sizeof kind), memcpy(head + 4, &head_bytes, sizeof head_bytes);
    memcpy(head + 8, &bytes, sizeof bytes), memcpy(head + 28, &arch, sizeof arch);
    if (fwrite(head, sizeof head, 1, f) != 1 || fwrite(code, sizeof *code, 1, f) != 1) abort();
}

int main(int argc, char **argv) {
    static const char *const kernels[] = {"scale",         "through_map",
                                          "scale_struct",  "_Z12scale_structILi128EEv6struct",
                                          "scale_longest", NULL};
    static fake_cubin code;
    fake_cubin_make(&code, kernels, NULL);
    FILE *f = argc > 1 ? fopen(argv[1], "wb") : NULL;
    if (!f) return 2;
    if (argc > 2) {
        const uint32_t head[] = {0xBA55ED50, 1 | 16 << 16, 2 * (64 + sizeof code), 0};
        if (fwrite(head, sizeof head, 1, f) != 1) abort();
        put_entry(f, 80, &code);
        put_entry(f, 90, &code);
    } else if (fwrite(&code, sizeof code, 1, f) != 1) {
        abort();
    }
    return fclose(f) != 0;
}
