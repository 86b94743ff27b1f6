/* capture_fuzz.c - any bytes as what a watched program left: code for a device, and a document with
 * a launch that is bound to a task.  SPDX-License-Identifier: Apache-2.0 */
#include "capture/capture.h"
#include "capture/fatbin.h"
#include "kernel/fixture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_code(kl_arena *a, kl_str bytes) {
    kl_error e = {0};
    kl_str cubin;
    const kl_err err = kli_fatbin_cubin(&cubin, a, bytes, 90, "scale", &e);
    KL_ASSERT(err ? e.message[0] != 0 : cubin.len > 0);
}

static void try_document(kl_arena *a, kl_str text, const kl_fixture *f) {
    kl_error e = {0};
    json_t *document;
    kl_str source, cubin;
    if (kli_capture_parse(&document, text, KL_S("fuzz"), &e)) {
        KL_ASSERT(e.message[0]);
        return;
    }
    for (int64_t i = 0; i < 4 && kli_capture_launch(document, i); i++) {
        const kli_capture_binding b = {.folder = "/nowhere",
                                       .document = document,
                                       .launch = i,
                                       .args = "A=0,B=1@8,M=2,scratch=0@8,value=3",
                                       .task = &f->task,
                                       .workload = &f->workload,
                                       .file = "fuzz.cu"};
        KL_ASSERT(kli_capture_bind(&source, &cubin, a, &b, &e) && e.message[0]);
    }
    json_decref(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static kl_fixture fixture;
    kl_arena *a = kl_arena_new();
    fixture_init(&fixture, 128, 256);
    try_code(a, (kl_str){(const char *)data, size});
    try_document(a, (kl_str){(const char *)data, size}, &fixture);
    kl_arena_free(a);
    return 0;
}
