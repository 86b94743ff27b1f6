"""libclang.py - the few functions of libclang that a slice needs, called through ctypes.

Its C interface has been the same since LLVM 3; no Python package is needed, and any libclang serves that has
its own headers (stddef.h, immintrin.h) beside it.  SPDX-License-Identifier: Apache-2.0
"""
import ctypes as c
import glob
import os
import re

# Kinds of cursors, as in clang-c/Index.h.
STRUCT, UNION, ENUM, FUNCTION, VARIABLE, PARAMETER, TYPEDEF = 2, 3, 5, 8, 9, 10, 20
METHOD, CONSTRUCTOR, CONVERSION, TEMPLATE, LINKAGE, OTHER = 21, 24, 26, 30, 23, 1
CALL = 103
MACRO, EXPANSION, INCLUSION = 501, 502, 503
STATIC = 3                                                    # storage class
DETAILED, KEEP_GOING = 0x01, 0x200                            # of a translation unit
POINTER, RECORD_TYPE, FUNCTION_TYPES, VECTOR, ARRAYS = 101, 105, (110, 111), 113, (112, 114)
TYPES = {2: "void", 3: "bool", 4: "char", 5: "uchar", 8: "ushort", 9: "uint", 10: "ulong", 11: "ulong", 13: "char",
         14: "schar", 16: "short", 17: "int", 18: "long", 19: "long", 21: "float", 22: "double", 32: "half", 106: "int"}


class Cursor(c.Structure):
    _fields_ = [("kind", c.c_int), ("xdata", c.c_int), ("data", c.c_void_p * 3)]


class Location(c.Structure):
    _fields_ = [("pointers", c.c_void_p * 2), ("number", c.c_uint)]


class Range(c.Structure):
    _fields_ = [("pointers", c.c_void_p * 2), ("begin", c.c_uint), ("end", c.c_uint)]


class Type(c.Structure):
    _fields_ = [("kind", c.c_int), ("data", c.c_void_p * 2)]


class String(c.Structure):
    _fields_ = [("data", c.c_void_p), ("flags", c.c_uint)]


class Unsaved(c.Structure):
    _fields_ = [("name", c.c_char_p), ("text", c.c_char_p), ("bytes", c.c_ulong)]


class Ranges(c.Structure):
    _fields_ = [("count", c.c_uint), ("ranges", c.POINTER(Range))]


VISITOR = c.CFUNCTYPE(c.c_int, Cursor, Cursor, c.c_void_p)
INCLUDED = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Location), c.c_uint, c.c_void_p)
FUNCTIONS = {
    "createIndex": (c.c_void_p, c.c_int, c.c_int),
    "parseTranslationUnit2": (c.c_int, c.c_void_p, c.c_char_p, c.POINTER(c.c_char_p), c.c_int, c.POINTER(Unsaved), c.c_uint,
                              c.c_uint, c.POINTER(c.c_void_p)),
    "getTranslationUnitCursor": (Cursor, c.c_void_p), "visitChildren": (c.c_uint, Cursor, VISITOR, c.c_void_p),
    "getCursorSpelling": (String, Cursor), "getCursorExtent": (Range, Cursor), "getCursorLocation": (Location, Cursor),
    "getRangeStart": (Location, Range), "getRangeEnd": (Location, Range),
    "getExpansionLocation": (None, Location, c.POINTER(c.c_void_p), c.POINTER(c.c_uint), c.POINTER(c.c_uint), c.POINTER(c.c_uint)),
    "getFileName": (String, c.c_void_p), "getCString": (c.c_char_p, String), "disposeString": (None, String),
    "getCursorReferenced": (Cursor, Cursor), "getCursorDefinition": (Cursor, Cursor), "getCanonicalCursor": (Cursor, Cursor),
    "Cursor_isNull": (c.c_int, Cursor), "isCursorDefinition": (c.c_uint, Cursor), "getCursorType": (Type, Cursor),
    "getCursorResultType": (Type, Cursor), "getCanonicalType": (Type, Type), "getPointeeType": (Type, Type),
    "getTypeSpelling": (String, Type), "Type_getSizeOf": (c.c_longlong, Type), "isConstQualifiedType": (c.c_uint, Type),
    "Cursor_getNumArguments": (c.c_int, Cursor), "Cursor_getArgument": (Cursor, Cursor, c.c_uint),
    "isFunctionTypeVariadic": (c.c_uint, Type), "Location_isInSystemHeader": (c.c_int, Location),
    "Cursor_getStorageClass": (c.c_int, Cursor), "getIncludedFile": (c.c_void_p, Cursor),
    "getInclusions": (None, c.c_void_p, INCLUDED, c.c_void_p), "getAllSkippedRanges": (c.POINTER(Ranges), c.c_void_p),
    "getNumDiagnostics": (c.c_uint, c.c_void_p), "getDiagnostic": (c.c_void_p, c.c_void_p, c.c_uint),
    "getDiagnosticSeverity": (c.c_int, c.c_void_p), "getDiagnosticSpelling": (String, c.c_void_p),
    "getDiagnosticLocation": (Location, c.c_void_p),
}


class Missing(Exception):
    """There is no libclang on this machine."""


def candidates():
    """The newest first: a distribution keeps each release in a folder of its own, with its headers."""
    chosen = os.environ.get("KLINEAGE_LIBCLANG")
    found = [p for p in glob.glob("/usr/lib/llvm-*/lib/libclang.so*") + glob.glob("/usr/lib/llvm-*/lib/libclang-[0-9]*.so*")
             if glob.glob(os.path.dirname(p) + "/clang/*/include/stddef.h")]
    return [chosen] if chosen else sorted(found, key=lambda p: int(re.search(r"llvm-(\d+)", p)[1]), reverse=True)


def load():
    for path in candidates():
        try:
            library = c.CDLL(path)
            for name, (result, *arguments) in FUNCTIONS.items():
                function = getattr(library, f"clang_{name}")
                function.restype, function.argtypes = result, arguments
            return library
        except (OSError, AttributeError):
            continue
    raise Missing


class Unit:
    """One text with all that it includes, parsed."""

    def __init__(self, name, text, flags):
        self.l = load()
        index = self.l.clang_createIndex(0, 0)
        argv = (c.c_char_p * len(flags))(*(f.encode() for f in flags))
        data = text.encode()
        unsaved = Unsaved(name.encode(), data, len(data))
        self.tu = c.c_void_p()
        failed = self.l.clang_parseTranslationUnit2(index, name.encode(), argv, len(flags), c.byref(unsaved), 1,
                                                    DETAILED | KEEP_GOING, c.byref(self.tu))
        self.failed = bool(failed)
        self.names = {}

    def text(self, s):
        said = self.l.clang_getCString(s)
        said = said.decode(errors="replace") if said else ""
        self.l.clang_disposeString(s)
        return said

    def name(self, cursor):
        return self.text(self.l.clang_getCursorSpelling(cursor))

    def file(self, handle):
        if not handle:
            return ""
        if handle not in self.names:
            self.names[handle] = os.path.realpath(self.text(self.l.clang_getFileName(handle)))
        return self.names[handle]

    def spot(self, location):
        """(file, offset, line, column), where macros are expanded."""
        f, line, column, offset = c.c_void_p(), c.c_uint(), c.c_uint(), c.c_uint()
        self.l.clang_getExpansionLocation(location, c.byref(f), c.byref(line), c.byref(column), c.byref(offset))
        return self.file(f.value), offset.value, line.value, column.value

    def place(self, cursor):
        return self.spot(self.l.clang_getCursorLocation(cursor))

    def extent(self, cursor):
        """(file, begin, end); an empty file where it is nowhere."""
        r = self.l.clang_getCursorExtent(cursor)
        file, begin, _, _ = self.spot(self.l.clang_getRangeStart(r))
        other, end, _, _ = self.spot(self.l.clang_getRangeEnd(r))
        return (file, begin, end) if file == other else ("", 0, 0)

    def system(self, cursor):
        return bool(self.l.clang_Location_isInSystemHeader(self.l.clang_getCursorLocation(cursor)))

    def children(self, cursor):
        found = []
        keep = VISITOR(lambda child, parent, data: found.append(Cursor.from_buffer_copy(child)) or 1)
        self.l.clang_visitChildren(cursor, keep, None)
        return found

    def walk(self, cursor):
        found = []
        keep = VISITOR(lambda child, parent, data: found.append(Cursor.from_buffer_copy(child)) or 2)
        self.l.clang_visitChildren(cursor, keep, None)
        return found

    def top(self):
        return self.children(self.l.clang_getTranslationUnitCursor(self.tu))

    def there(self, cursor):
        return None if self.l.clang_Cursor_isNull(cursor) else cursor

    def referenced(self, cursor):
        return self.there(self.l.clang_getCursorReferenced(cursor))

    def definition(self, cursor):
        return self.there(self.l.clang_getCursorDefinition(cursor))

    def entered(self):
        """(file, [(file, offset) of every inclusion that leads to it, the innermost first]) as often as it was read."""
        found = []

        def note(handle, stack, n, data):
            found.append((self.file(handle), [self.spot(stack[i])[:2] for i in range(n)]))
        self.l.clang_getInclusions(self.tu, INCLUDED(note), None)
        return found

    def skipped(self):
        """{file: [(line of the directive that begins it, line of the one that ends it)]}"""
        found, said = {}, self.l.clang_getAllSkippedRanges(self.tu)
        for i in range(said.contents.count if said else 0):
            r = said.contents.ranges[i]
            file, _, first, _ = self.spot(self.l.clang_getRangeStart(r))
            _, _, last, _ = self.spot(self.l.clang_getRangeEnd(r))
            found.setdefault(file, []).append((first, last))
        return found

    def errors(self):
        for i in range(self.l.clang_getNumDiagnostics(self.tu)):
            d = self.l.clang_getDiagnostic(self.tu, i)
            if self.l.clang_getDiagnosticSeverity(d) >= 3:
                file, _, line, column = self.spot(self.l.clang_getDiagnosticLocation(d))
                yield file, line, column, self.text(self.l.clang_getDiagnosticSpelling(d))
