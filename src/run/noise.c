/* noise.c - the A/A record of a host: kept in the journal, so that its floor is known before the
 * first pair.
 *
 * A row of kind "noise" a measurement, named by the host.  Not here: what is measured and what many
 * say together (gate/noise.c), who measures (command/effort.c).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "base/record.h"
#include <klineage/run.h>
#include <time.h>
#include <unistd.h>

enum { FRESH_SECONDS = 24 * 3600 };

kl_err kl_noise_keep(kl_store *s, kl_arena *a, const kl_noise *n, kl_error *e) {
    if (!kl_noise_settled(n)) return KL_OK;
    json_t *o = kli_record_json(&KL_NOISE, n);
    const kl_str text = kli_json_dump(a, o, false);
    const kl_hash id = kli_hash_of(text);
    json_decref(o);
    return kl_store_record_put(
        s,
        &(kl_store_record){
            .kind = KL_S("noise"), .id = kl_str_of(id.hex), .name = n->host, .json = text},
        e);
}

static kl_err read_noise(kl_noise *out, kl_arena *a, kl_str text, kl_error *e) {
    json_t *o;
    kl_err err = kli_json_parse(&o, text, KL_S("journal"), e);
    if (err) return err;
    err = kli_record_read(out, &KL_NOISE, a, o, KL_S("journal"), e);
    json_decref(o);
    return err;
}

static kl_str fresh_from(kl_arena *a) {
    char text[32] = "";
    struct tm utc;
    const time_t from = time(NULL) - FRESH_SECONDS;
    if (gmtime_r(&from, &utc)) (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    return kl_arena_copy(a, kl_str_of(text));
}

kl_err kl_noise_recall(kl_noise_record *out, kl_store *s, kl_arena *a, kl_error *e) {
    char host[65] = "";
    kl_store_record *found;
    size_t n = 0;
    *out = (kl_noise_record){0};
    (void)gethostname(host, sizeof host - 1);
    kl_err err = kl_store_record_latest(&found, &n, s, a, "noise", host, KL_NOISE_MEASUREMENTS, e);
    if (err) return err;
    kl_noise *rows = KL_ARRAY(a, kl_noise, n + 1);
    for (size_t i = 0; i < n && !err; i++) err = read_noise(&rows[i], a, found[i].json, e);
    if (!err) kl_noise_sum_up(out, rows, (int)n, fresh_from(a));
    return err;
}
