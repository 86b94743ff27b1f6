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
    json_t *o = json_object();
    json_object_set_new(o, "schema", json_string("klineage/recording"));
    json_object_set_new(o, "version", json_integer(1));
    json_object_set_new(o, "model", kli_json_str(kl_str_of(model)));
    json_object_set_new(o, "command", kli_json_str(kl_str_of(command)));
    json_object_set_new(o, "note", kli_json_str(kl_str_of(note)));
    return o;
}

static json_t *recording_call(const kl_recorded *c) {
    json_t *o = json_object();
    json_object_set_new(o, "slot", kli_json_str(c->slot));
    json_object_set_new(o, "key", kli_json_str(c->key));
    json_object_set_new(o, "purpose", kli_json_str(c->purpose));
    json_object_set_new(o, "text", kli_json_str(c->text));
    json_object_set_new(o, "stop", json_string(kl_stop_name(c->stop)));
    json_object_set_new(o, "usage", kl_usage_json(&c->usage));
    json_object_set_new(o, "model", kli_json_str(c->model));
    json_object_set_new(o, "billed_microusd", json_integer(c->billed_microusd));
    return o;
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
