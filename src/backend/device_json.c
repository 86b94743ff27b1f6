/* device_json.c - a device as the JSON that `klineage-worker probe` prints.  SPDX-License-Identifier: Apache-2.0 */
#include "device_json.h"
#include "base/json.h"
#include <stdio.h>

int kli_device_print(const kl_device *d) {
    kl_arena *a = kl_arena_new();
    json_t   *peak = json_object();
    for (int t = KL_F64; t < KL_DTYPE_END; t++)
        if (d->peak_flops[t] > 0) json_object_set_new(peak, kl_dtype_name((kl_dtype)t), json_real(d->peak_flops[t]));
    json_t *limits = json_pack("{sI sI sI sI sI}", "sms", (json_int_t)d->limits.sms, "cores", (json_int_t)d->limits.cores, "smem_max",
                               (json_int_t)d->limits.smem_max, "max_threads", (json_int_t)d->limits.max_threads, "memory",
                               (json_int_t)d->limits.memory);
    json_t *o = json_object();
    json_object_set_new(o, "name", kl_json_str(d->name));
    json_object_set_new(o, "platform", kl_json_str(d->platform));
    json_object_set_new(o, "arch", kl_json_str(d->arch));
    json_object_set_new(o, "toolchain", kl_json_str(d->toolchain));
    json_object_set_new(o, "driver", kl_json_str(d->driver));
    json_object_set_new(o, "limits", limits);
    json_object_set_new(o, "peak_flops", peak);
    json_object_set_new(o, "peak_bytes", json_real(d->peak_bytes));
    json_object_set_new(o, "l2_bytes", json_integer(d->l2_bytes));
    json_object_set_new(o, "pageable_access", json_boolean(d->pageable_access));
    kl_str text = kl_json_dump(a, o, false);
    int    failed = printf("%.*s\n", KL_STR_ARG(text)) < 0 || fflush(stdout) != 0;
    json_decref(o);
    kl_arena_free(a);
    return failed;
}

kl_err kli_device_parse(kl_device *out, kl_arena *a, kl_str json, kl_error *e) {
    json_t *o = NULL;
    kl_err  code = kl_json_parse(&o, json, KL_S("klineage-worker probe"), e);
    if (code) return code;
    const json_t *limits = json_object_get(o, "limits"), *peak = json_object_get(o, "peak_flops");
    kl_backend_id backend = out->backend;
    *out = (kl_device){.backend = backend};
    out->name = kl_arena_copy(a, kl_json_text_or(o, "name", KL_S("")));
    out->platform = kl_arena_copy(a, kl_json_text_or(o, "platform", KL_S("")));
    out->arch = kl_arena_copy(a, kl_json_text_or(o, "arch", KL_S("")));
    out->toolchain = kl_arena_copy(a, kl_json_text_or(o, "toolchain", KL_S("")));
    out->driver = kl_arena_copy(a, kl_json_text_or(o, "driver", KL_S("")));
    out->limits = (kl_device_limits){.sms = kl_json_int_or(limits, "sms", 0), .cores = kl_json_int_or(limits, "cores", 0),
                                     .smem_max = kl_json_int_or(limits, "smem_max", 0),
                                     .max_threads = kl_json_int_or(limits, "max_threads", 0),
                                     .memory = kl_json_int_or(limits, "memory", 0)};
    for (int t = KL_F64; t < KL_DTYPE_END; t++) out->peak_flops[t] = kl_json_real_or(peak, kl_dtype_name((kl_dtype)t), 0);
    out->peak_bytes = kl_json_real_or(o, "peak_bytes", 0);
    out->l2_bytes = kl_json_int_or(o, "l2_bytes", 0);
    out->pageable_access = kl_json_bool_or(o, "pageable_access", false);
    json_decref(o);
    if (!out->name.len) return kl_fail(e, KL_EPARSE, "klineage-worker probe", "the device has no name");
    return KL_OK;
}
