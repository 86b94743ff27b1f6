/* verdict_fuzz.c - any bytes as a verdict: a journal or another host may hand us anything.
 *
 * What parses renders without control characters and survives being written and read again with the
 * same receipt. SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"
#include "base/json.h"
#include <klineage/gate.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static kl_str written(kl_arena *a, const kl_verdict *v) {
    json_t *o = kl_verdict_json(v);
    const kl_str text = kli_json_dump(a, o, false);
    json_decref(o);
    return text;
}

static void check_round_trip(kl_arena *a, const kl_verdict *v) {
    kl_verdict *again = KL_NEW(a, kl_verdict), *third = KL_NEW(a, kl_verdict);
    kl_error e = {0};
    kl_verdict own = *v;
    own.journaled = false; /* so that the receipt is ours */
    const kl_str once = written(a, &own);
    KL_ASSERT(kl_verdict_parse(again, a, once, KL_S("again"), &e) == KL_OK);
    again->journaled = false;
    const kl_str twice = written(a, again);
    KL_ASSERT(kl_verdict_parse(third, a, twice, KL_S("third"), &e) == KL_OK);
    KL_ASSERT(kl_str_eq(kl_str_of(again->receipt), kl_str_of(third->receipt)));
}

static void check_rendering(const kl_verdict *v) {
    kl_buf text = {0};
    kl_verdict_render(v, &text, false);
    for (size_t i = 0; i < text.len; i++)
        KL_ASSERT((unsigned char)text.ptr[i] >= 0x20 || text.ptr[i] == '\n' || text.ptr[i] == '\t');
    kl_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kl_arena *a = kl_arena_new();
    kl_verdict *v = KL_NEW(a, kl_verdict);
    kl_error e = {0};
    const kl_err err =
        kl_verdict_parse(v, a, (kl_str){(const char *)data, size}, KL_S("verdict.json"), &e);
    KL_ASSERT(err == KL_OK || (err == KL_EPARSE && e.message[0]));
    if (!err) {
        KL_ASSERT(kl_verdict_exit_code(v) >= 0);
        check_rendering(v);
        check_round_trip(a, v);
    }
    kl_arena_free(a);
    return 0;
}
