/* wire_python.c - runs when klineage is built: copies a Python script, and puts the structs and
 * enums that cross between gate and runner in place of its line `#wire`.  usage: wire_python IN OUT
 *
 * Offsets and sizes are this compiler's.  What it writes checks the sizes again with ctypes when it
 * is imported. SPDX-License-Identifier: Apache-2.0 */
#include "backend/layout.h"
#include "backend/wire.h"
#include "draw_ptx.h"
#include <stdio.h>
#include <string.h>

static FILE *out;
static size_t wire_python_at; /* end of the field before */

static void wire_python_begin(const char *name) {
    fprintf(out, "class %s(C.Structure):\n    _fields_ = [\n", name);
    wire_python_at = 0;
}

static void fill_to(size_t offset) {
    if (offset > wire_python_at)
        fprintf(out, "        (\"_%zu\", C.c_char * %zu),\n", wire_python_at,
                offset - wire_python_at);
    wire_python_at = offset;
}

/* A number has its ctypes name, a struct its own. */
static void wire_python_put_field(const char *type, const char *member, size_t offset, size_t bytes,
                                  size_t item_bytes) {
    static const char *const NUMBERS[][2] = {
        {"uint16_t", "C.c_uint16"}, {"uint32_t", "C.c_uint32"}, {"_Atomic uint32_t", "C.c_uint32"},
        {"int32_t", "C.c_int32"},   {"uint64_t", "C.c_uint64"}, {"int64_t", "C.c_int64"},
        {"double", "C.c_double"},   {"char", "C.c_char"}};
    for (size_t i = 0; i < KL_COUNT(NUMBERS); i++)
        if (strcmp(type, NUMBERS[i][0]) == 0) type = NUMBERS[i][1];
    fill_to(offset);
    fprintf(out, "        (\"%s\", %s", member, type);
    if (bytes != item_bytes) fprintf(out, " * %zu", bytes / item_bytes);
    fprintf(out, "),\n");
    wire_python_at += bytes;
}

static void wire_python_end(const char *name, size_t bytes) {
    fill_to(bytes);
    fprintf(out, "    ]\n\n\nassert C.sizeof(%s) == %zu\n\n\n", name, bytes);
}

#define STRUCT(name)                                                                               \
    wire_python_begin(#name);                                                                      \
    {                                                                                              \
        typedef name self;
#define FIELD(type, member, dims)                                                                  \
    wire_python_put_field(#type, #member, offsetof(self, member), sizeof(((self *)0)->member),     \
                          sizeof(type));
#define END(name)                                                                                  \
    wire_python_end(#name, sizeof(name));                                                          \
    }

static void put_resources(void) {
    STRUCT(kl_resources)
#define KL_DEF_RESOURCES(kind, member, ...) FIELD(uint32_t, member, )
#include <klineage/backend.def>
    END(kl_resources)
}

static void put_plan(void) {
#define KL_DEF_STRUCT STRUCT
#define KL_DEF_FIELD FIELD
#define KL_DEF_END END
#include "kernel/plan.def"
}

static void put_layout(void) {
#define KL_DEF_STRUCT STRUCT
#define KL_DEF_FIELD FIELD
#define KL_DEF_END END
#include "backend/layout.def"
}

/* Of a draw what the script changes or reads; the rest it copies as it is. */
static void put_draws(void) {
    STRUCT(kli_draw)
    FIELD(uint64_t, values, )
    FIELD(uint64_t, order, )
    FIELD(int64_t, elems, )
    FIELD(int32_t, kind, )
    END(kli_draw)
    STRUCT(kli_draw_job)
    FIELD(kli_draw, draw, )
    FIELD(uint64_t, data, )
    END(kli_draw_job)
    STRUCT(kli_draw_request)
    FIELD(uint32_t, first, )
    FIELD(uint32_t, n, )
    FIELD(uint32_t, proof, )
    FIELD(kli_draw, draws, )
    FIELD(uint64_t, seeds, )
    END(kli_draw_request)
    fprintf(out, "DRAW_PTX = b\"\"\"%s\"\"\"\n\n\n", (const char *)KLI_DRAW_PTX);
}

static void put_messages(void) {
#define KL_DEF_STRUCT STRUCT
#define KL_DEF_FIELD FIELD
#define KL_DEF_END END
#define KL_DEF_ALIGNED(bytes, type, member, dims) FIELD(type, member, dims)
#include "backend/wire.def"
}

static void put_numbers(void) {
    static const struct {
        const char *name;
        int value;
    } NUMBERS[] = {
        {"WIRE_VERSION", KL_WIRE_VERSION},
        {"WIRE_FD", KL_WIRE_FD},
        {"MAX_SAMPLES", KL_WIRE_MAX_SAMPLES},
        {"FLUSHES", KL_WIRE_FLUSHES},
        {"MAX_TENSORS", KL_MAX_TENSORS},
        {"MAX_LAUNCHES", KL_MAX_LAUNCHES},
        {"ARTEFACT_SCRIPT", KL_ARTEFACT_SCRIPT},
        {"READY", KL_MSG_READY},
        {"LOAD", KL_MSG_LOAD},
        {"LOADED", KL_MSG_LOADED},
        {"BIND", KL_MSG_BIND},
        {"BOUND", KL_MSG_BOUND},
        {"UPLOAD", KL_MSG_UPLOAD},
        {"DRAW", KL_MSG_DRAW},
        {"RUN", KL_MSG_RUN},
        {"TIME", KL_MSG_TIME},
        {"DONE", KL_MSG_DONE},
        {"DEVICE", KL_FAULT_DEVICE},
        {"REFUSED", KL_FAULT_REFUSED},
        {"PROTOCOL", KL_FAULT_PROTOCOL},
        {"BATCH", KL_TIME_BATCH},
        {"EVENTS", KL_TIME_EVENTS},
        {"GRAPH", KL_TIME_GRAPH},
        {"INPUT", KL_ROLE_INPUT},
        {"OUTPUT", KL_ROLE_OUTPUT},
        {"MUTABLE", KL_ROLE_MUTABLE},
        {"SCALAR", KL_ROLE_SCALAR},
        {"DRAW_NONE", KLI_DRAW_NONE},
        {"NO_PROOF", KLI_NO_PROOF},
        {"PROOF_ELEMS", KLI_PROOF_ELEMS},
    };
    for (size_t i = 0; i < KL_COUNT(NUMBERS); i++)
        fprintf(out, "%s = %d\n", NUMBERS[i].name, NUMBERS[i].value);
    fprintf(out, "DTYPES = [None");
    for (int t = KL_F64; t < KL_DTYPE_END; t++)
        fprintf(out, ", \"%s\"", kl_dtype_name((kl_dtype)t));
    fprintf(out, "]\n\n\n");
}

static void put_wire(void) {
    put_numbers();
    put_plan();
    put_layout();
    put_resources();
    put_draws();
    put_messages();
}

int main(int argc, char **argv) {
    char line[1024];
    FILE *in = argc == 3 ? fopen(argv[1], "r") : NULL;
    out = in ? fopen(argv[2], "w") : NULL;
    if (!out) return fprintf(stderr, "usage: wire_python IN OUT\n"), 1;
    int places = 0;
    while (fgets(line, sizeof line, in)) {
        if (strcmp(line, "#wire\n") != 0)
            fputs(line, out);
        else if (places++ == 0)
            put_wire();
    }
    fclose(in);
    return fclose(out) || places != 1;
}
