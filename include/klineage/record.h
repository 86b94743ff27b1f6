/* record.h - how the rows of a .def file become a struct.
 *
 * A record is declared once, in gate.def or another file of this folder: one row a field,
 * in the order of its JSON.
 *
 *     KL_DEF_COMPARISON(TEXT, baseline, "baseline", "name of the baseline")
 *
 * Here a row becomes a member.  src/base/record.h makes JSON out of the same rows, JSON Schema and
 * the tables of docs/formats/records.md.  Owns nothing.  SPDX-License-Identifier: Apache-2.0 */
#ifndef KLINEAGE_RECORD_H
#define KLINEAGE_RECORD_H

#include <klineage/base.h>

#define KL_MEMBER(kind, ...) KL_MEMBER_##kind(__VA_ARGS__)

/* (member, "key", "meaning") */
#define KL_MEMBER_TEXT(member, ...) kl_str member;
#define KL_MEMBER_JSON(member, ...) kl_str member;     /* a document as text */
#define KL_MEMBER_DATE(member, ...) kl_str member;     /* UTC: 2026-01-31T12:00:00Z */
#define KL_MEMBER_HASH(member, ...) kl_str member;     /* 64 hexadecimal digits */
#define KL_MEMBER_KEY(member, ...) kl_str member;      /* a hash, or empty */
#define KL_MEMBER_DIGEST(member, ...) char member[65]; /* a hash that is kept in the struct */
#define KL_MEMBER_REAL(member, ...) double member;
#define KL_MEMBER_INT(member, ...)                                                                 \
    int member; /* whole numbers: from 0 up where a reader is strict */
#define KL_MEMBER_I64(member, ...) int64_t member;
#define KL_MEMBER_U32(member, ...) uint32_t member;
#define KL_MEMBER_SEED(member, ...)                                                                \
    uint64_t member; /* travels as text: JSON's safe integers end at 2^53 */
#define KL_MEMBER_BOOL(member, ...) bool member;
/* (member, names, "key", "meaning"): a bool whose two values have names */
#define KL_MEMBER_EITHER(member, ...) bool member;
/* (type, member, names, "key", "meaning"): an enum */
#define KL_MEMBER_NAME(type, member, ...) type member;
/* (type, member, record, "key", "meaning") */
#define KL_MEMBER_RECORD(type, member, ...) type member;
/* (type, member, codec, "key", "meaning"): functions of its own write and read it */
#define KL_MEMBER_OWN(type, member, ...) type member;
/* (type, member, most, record, "key", "meaning"): in the arena, or in the struct; texts where the
 * record is NULL */
#define KL_MEMBER_LIST(type, member, ...)                                                          \
    type *member;                                                                                  \
    int n_##member;
#define KL_MEMBER_ARRAY(type, member, most, ...)                                                   \
    type member[most];                                                                             \
    int n_##member;
/* (ratio, low, high): a ratio with its 95 % interval */
#define KL_MEMBER_INTERVAL(ratio, low, high) double ratio, low, high;
/* ("key", "meaning"): the fields up to CLOSE are an object of their own in JSON, and members like
 * the others here */
#define KL_MEMBER_OPEN(...)
#define KL_MEMBER_CLOSE(key)
/* (type, member): in the struct alone.  (kind, member, ...): in JSON alone, because another row has
 * the member */
#define KL_MEMBER_ONLY(type, member) type member;
#define KL_MEMBER_AGAIN(...)

/* The table of a record; opaque here. */
typedef struct kl_record kl_record;

#endif
