# Run by kl_embed: cmake -DNAME= -DINPUT= -DOUTPUT= -P embed_file.cmake
file(READ "${INPUT}" hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
get_filename_component(base "${INPUT}" NAME)
file(WRITE "${OUTPUT}" "/* Generated from ${base}. */
#include <stddef.h>
extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_bytes;
const unsigned char ${NAME}[] = {${bytes}0};
const size_t ${NAME}_bytes = sizeof ${NAME} - 1;
")
