/* standalone.c - replays a corpus without libFuzzer: every file, and every file of every folder,
 * that is named. Each input lies in a block of exactly its size, so that a sanitizer sees the first
 * byte read behind it. SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INPUT_BYTES ((size_t)16 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int complain(const kl_error *e) {
    kl_buf text = {0};
    kl_error_render(e, &text);
    fputs(text.ptr, stderr);
    kl_buf_fini(&text);
    return 1;
}

static int replay(kl_arena *a, const char *path) {
    kl_error e = {0};
    kl_str text;
    if (kli_fs_read(&text, a, path, MAX_INPUT_BYTES, &e)) return complain(&e);
    uint8_t *exact = malloc(text.len ? text.len : 1);
    if (!exact) kl_oom(text.len);
    if (text.len) memcpy(exact, text.ptr, text.len);
    fprintf(stderr, "%s\n", path); /* before the run: the last line names the culprit of a crash */
    LLVMFuzzerTestOneInput(exact, text.len);
    free(exact);
    return 0;
}

int main(int argc, char **argv) {
    kl_arena *a = kl_arena_new();
    int failed = 0;
    size_t replayed = 0;
    for (int i = 1; i < argc; i++) {
        kl_error e = {0};
        kl_str *names;
        size_t n;
        if (!kli_fs_is_dir(argv[i])) {
            failed |= replay(a, argv[i]);
            replayed++;
            continue;
        }
        if (kli_fs_list(&names, &n, a, argv[i], &e)) failed |= complain(&e);
        for (size_t k = 0; k < n; k++)
            failed |= replay(a, kli_fs_join(a, argv[i], names[k].ptr).ptr);
        replayed += n;
    }
    kl_arena_free(a);
    if (!replayed)
        fprintf(stderr, "no corpus; put at least one valid example into tests/fuzz/corpora\n");
    return failed || !replayed;
}
