/* device_json.c - a device as the JSON that `klineage-worker probe` prints: the rows of
 * backend.def. SPDX-License-Identifier: Apache-2.0 */
#include "device_json.h"
#include "base/record.h"
#include <stdio.h>

static json_t *peaks_json(const void *device) {
    const double *peaks = ((const kl_device *)device)->peak_flops;
    json_t *o = json_object();
    for (int t = KL_F64; t < KL_DTYPE_END; t++)
        if (peaks[t] > 0) json_object_set_new(o, kl_dtype_name((kl_dtype)t), json_real(peaks[t]));
    return o;
}

static bool read_peaks(void *device, kl_arena *a, const json_t *value) {
    double *peaks = ((kl_device *)device)->peak_flops;
    (void)a;
    for (int t = KL_F64; t < KL_DTYPE_END; t++)
        peaks[t] = kli_json_real_or(value, kl_dtype_name((kl_dtype)t), 0);
    return true;
}

static const kli_codec PEAKS = {peaks_json, read_peaks, "{\"type\": \"object\"}"};

#define KL_RECORD kl_device_limits
static const kl_record LIMITS_RECORD = {KL_RECORD_HEAD("limits", ""), KL_ROWS{
#define KL_DEF_LIMITS KL_ROW
#include <klineage/kernel.def>
                                                                          KL_ROWS_END}};
#undef KL_RECORD

#define KL_RECORD kl_device
static const kl_record DEVICE_RECORD = {KL_RECORD_HEAD("device", ""), KL_ROWS{
#define KL_DEF_DEVICE KL_ROW
#include <klineage/backend.def>
                                                                          KL_ROWS_END}};
#undef KL_RECORD

int kli_device_print(const kl_device *d) {
    kl_arena *a = kl_arena_new();
    json_t *o = kli_record_json(&DEVICE_RECORD, d);
    kl_str text = kli_json_dump(a, o, false);
    int failed = printf("%.*s\n", KL_STR_ARG(text)) < 0 || fflush(stdout) != 0;
    json_decref(o);
    kl_arena_free(a);
    return failed;
}

kl_err kli_device_parse(kl_device *out, kl_arena *a, kl_str json, kl_error *e) {
    const kl_str from = KL_S("klineage-worker probe");
    const kl_backend_id backend = out->backend;
    json_t *o = NULL;
    kl_err err = kli_json_parse(&o, json, from, e);
    if (err) return err;
    err = kli_record_read(out, &DEVICE_RECORD, a, o, from, e);
    out->backend = backend;
    json_decref(o);
    if (!err && !out->name.len) err = kl_fail(e, KL_EPARSE, from.ptr, "the device has no name");
    return err;
}
