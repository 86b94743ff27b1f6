/* json_fuzz.c - any bytes either parse, and then survive being written and parsed again, or give an
 * error that points inside the text; and any bytes can be carried as a JSON string.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(kl_arena *a, const json_t *o) {
    for (int pretty = 0; pretty < 2; pretty++) {
        json_t *back;
        kl_error e = {0};
        KL_ASSERT(kli_json_parse(&back, kli_json_dump(a, o, pretty), KL_S("again"), &e) == KL_OK);
        json_decref(back);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_arena *a = kl_arena_new();
    kl_str text = {(const char *)data, size};
    kl_error e = {0};
    kl_buf said = {0};
    json_t *o;
    if (kli_json_parse(&o, text, KL_S("x.json"), &e) == KL_OK) {
        round_trip(a, o);
        json_decref(o);
    } else {
        KL_ASSERT(e.code == KL_EPARSE && e.detail[0]);
        kl_error_render(&e, &said);
    }
    json_t *carried = json_pack("[o]", kli_json_str(text));
    round_trip(a, carried);
    json_decref(carried);
    kl_buf_fini(&said);
    kl_arena_free(a);
    return 0;
}
