/* decode_c ARTIFACT [MODULE]: lists the groups of a DF11 artifact, or decodes one on the CPU and
 * prints the first words of each member. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "df11.h"

static int fail(const char* what, df11_status status) {
  fprintf(stderr, "%s: %s: %s\n", what, df11_status_name(status), df11_last_error());
  return 2;
}

static int decode(const df11_artifact* artifact, size_t index) {
  const size_t n_members = df11_group_members(artifact, index);
  const uint64_t n_words = df11_group_elements(artifact, index);
  uint16_t* words = malloc(n_words * sizeof *words);
  uint64_t* elements = malloc(n_members * sizeof *elements);
  df11_group* group = NULL;
  df11_status status = DF11_OUT_OF_MEMORY;
  if (words != NULL && elements != NULL) {
    status = df11_member_elements(artifact, index, elements);
    if (status == DF11_OK) status = df11_load_group(artifact, index, &group);
    if (status == DF11_OK) status = df11_decode_cpu(group, words, 0);
  }
  if (status == DF11_OK) {
    const uint16_t* member = words;
    for (size_t m = 0; m < n_members; ++m) {
      printf("%s: %" PRIu64 " words:", df11_member_name(artifact, index, m), elements[m]);
      for (uint64_t i = 0; i < elements[m] && i < 8; ++i) printf(" %04x", member[i]);
      printf("\n");
      member += elements[m];
    }
  }
  const int code = status == DF11_OK ? 0 : fail(df11_group_module(artifact, index), status);
  df11_free_group(group);
  free(elements);
  free(words);
  return code;
}

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fprintf(stderr, "usage: decode_c ARTIFACT [MODULE]\n");
    return 2;
  }
  df11_artifact* artifact = NULL;
  const df11_status status = df11_open_artifact(argv[1], &artifact);
  if (status != DF11_OK) return fail(argv[1], status);
  int code = 0, found = 0;
  for (size_t i = 0; i < df11_n_groups(artifact); ++i) {
    const char* const module = df11_group_module(artifact, i);
    if (argc == 2) {
      printf("%s: %" PRIu64 " weights in %zu tensors\n", module, df11_group_elements(artifact, i),
             df11_group_members(artifact, i));
    } else if (strcmp(module, argv[2]) == 0) {
      found = 1;
      code = decode(artifact, i);
    }
  }
  if (argc == 3 && !found) {
    fprintf(stderr, "%s: no such group\n", argv[2]);
    code = 2;
  }
  df11_close_artifact(artifact);
  return code;
}
