# Run by kl_embed: cmake -DOUTPUT= -DROOT= -DPAIRS="VARIABLE;FILE;..." -P embed_files.cmake
set(text "#include <stddef.h>\n")
while(PAIRS)
  list(POP_FRONT PAIRS variable file)
  file(READ "${ROOT}/${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND text "/* ${file} */
extern const unsigned char ${variable}[];
extern const size_t ${variable}_bytes;
const unsigned char ${variable}[] = {${bytes}0};
const size_t ${variable}_bytes = sizeof ${variable} - 1;
")
endwhile()
file(WRITE "${OUTPUT}" "${text}")
