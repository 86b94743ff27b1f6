/* recording.c - write the file that `replay:` answers from.  Format: docs/formats/recording.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fs.h"
#include "model_impl.h"

static void recording_add_line(kl_buf *out, json_t *o) {
    kl_arena *a = kl_arena_new();
    kl_buf_add(out, kli_json_dump(a, o, false));
    kl_buf_add(out, KL_S("\n"));
    kl_arena_free(a);
    json_decref(o);
}

static json_t *head(const char *model, const char *command, const char *note) {
    return json_pack("{ss si so so so}", "schema", "klineage/recording", "version", 1, "model",
                     kli_json_str(kl_str_of(model)), "command", kli_json_str(kl_str_of(command)),
                     "note", kli_json_str(kl_str_of(note)));
}

static json_t *recording_call(const kl_recorded *c) {
    return json_pack("{so so so so ss so so sI}", "slot", kli_json_str(c->slot), "key",
                     kli_json_str(c->key), "purpose", kli_json_str(c->purpose), "text",
                     kli_json_str(c->text), "stop", kl_stop_name(c->stop), "usage",
                     kl_usage_json(&c->usage), "model", kli_json_str(c->model), "billed_microusd",
                     (json_int_t)c->billed_microusd);
}

kl_err kl_recording_write(const char *path, const char *model, const char *command,
                          const char *note, const kl_recorded *calls, int n, kl_error *e) {
    kl_buf text = {0};
    kl_err err = KL_OK;
    json_t *slots = json_object();
    recording_add_line(&text, head(model, command, note));
    for (int i = 0; !err && i < n; i++) {
        json_t *o = recording_call(&calls[i]);
        const char *slot = json_string_value(json_object_get(o, "slot"));
        if (!*slot || json_object_get(slots, slot))
            err = kl_fail(e, KL_EINVAL, path,
                          "the slot '%.200s' is empty or there twice; a recording cannot tell its "
                          "calls apart",
                          slot);
        json_object_set_new(slots, slot, json_true());
        recording_add_line(&text, o);
    }
    if (!err) err = kli_fs_write(path, kl_buf_str(&text), e);
    json_decref(slots);
    kl_buf_fini(&text);
    return err;
}
