/* C interface of the DF11 decoder: groups of a DF11 artifact to BF16 words, on the CPU or with
 * CUDA.
 *
 * Every function that can fail returns a df11_status; df11_last_error() then has the details.
 * Nothing prints, exits or throws. Handles are opaque; free each with its own function, NULL is
 * allowed.
 *
 * Threads: handles are immutable once made, and any number of threads may use one at once. Making
 * and freeing different handles at once is safe. Free a handle only after every call that uses it
 * has returned and, for a df11_cuda_group, after the work enqueued with it is done.
 * df11_last_error() belongs to the calling thread.
 *
 * Without CUDA, built in or present, the functions with `cuda` in their name return
 * DF11_UNSUPPORTED; everything else works. */
#ifndef DF11_H
#define DF11_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DF11_API __attribute__((visibility("default")))
#else
#define DF11_API
#endif

/* Raised by one when a function is added; functions and structures never change. */
#define DF11_API_VERSION 1
DF11_API int df11_api_version(void);     /* of the library that was loaded */
DF11_API const char* df11_version(void); /* of the tool, "0.1.0" */

/* Pinned; new ones are added at the end. 1 to 16 are those of the C++ libraries. */
typedef enum df11_status {
  DF11_OK = 0,
  DF11_IO_ERROR = 1, /* a system or CUDA call failed */
  DF11_NOT_FOUND = 2,
  DF11_ALREADY_EXISTS = 3,
  DF11_NO_SPACE = 4,
  DF11_INVALID_ARGUMENT = 5,
  DF11_MALFORMED_JSON = 6,
  DF11_MALFORMED_SAFETENSORS = 7,
  DF11_MALFORMED_INDEX = 8,
  DF11_MALFORMED_CONFIG = 9,
  DF11_MALFORMED_GROUP = 10, /* the tensors of a group contradict each other */
  DF11_MALFORMED_MANIFEST = 11,
  DF11_CORRUPT_STREAM = 12, /* a code stream does not decode to its weights */
  DF11_UNSUPPORTED = 13,    /* no CUDA, another geometry, a newer format */
  DF11_LIMIT_EXCEEDED = 14,
  DF11_SOURCE_CHANGED = 15,
  DF11_CANCELLED = 16,
  DF11_OUT_OF_MEMORY = 17,
  DF11_INTERNAL_ERROR = 18
} df11_status;

DF11_API const char* df11_status_name(df11_status status); /* "corrupt_stream" */
/* One line about this thread's last call that failed; "" if none did. Valid until its next call. */
DF11_API const char* df11_last_error(void);

/* ---- Artifacts ---------------------------------------------------------------------------------
 */

typedef struct df11_artifact df11_artifact;
typedef struct df11_group df11_group;

/* Opens a directory; reads and checks headers only. */
DF11_API df11_status df11_open_artifact(const char* directory, df11_artifact** artifact);
DF11_API void df11_close_artifact(df11_artifact* artifact);

/* Groups are in the order of their modules' names. Strings live as long as the artifact. An index
 * that is out of range gives 0 or NULL. */
DF11_API size_t df11_n_groups(const df11_artifact* artifact);
DF11_API const char* df11_group_module(const df11_artifact* artifact, size_t group);
DF11_API uint64_t df11_group_elements(const df11_artifact* artifact, size_t group);
DF11_API size_t df11_group_members(const df11_artifact* artifact, size_t group);
/* Name of a member tensor, as in the source. */
DF11_API const char* df11_member_name(const df11_artifact* artifact, size_t group, size_t member);
/* Elements of each member, in order: `elements` has room for df11_group_members() of them. The
 * group's words are its members' words, one after the other. */
DF11_API df11_status df11_member_elements(const df11_artifact* artifact, size_t group,
                                          uint64_t* elements);

/* Reads a group into host memory. */
DF11_API df11_status df11_load_group(const df11_artifact* artifact, size_t group,
                                     df11_group** loaded);

/* ---- Groups ------------------------------------------------------------------------------------
 */

/* The tensors of a group in host memory, as they are in the file. `size` of this structure allows
 * it to grow; set it to sizeof(df11_group_tensors). */
typedef struct df11_group_tensors {
  size_t size;
  const uint8_t* luts;
  size_t luts_bytes; /* 256 a row */
  const uint8_t* encoded_exponent;
  size_t encoded_exponent_bytes;
  const uint8_t* sign_mantissa;
  size_t sign_mantissa_bytes; /* one a weight */
  const uint8_t* gaps;
  size_t gaps_bytes;
  const uint8_t* output_positions;
  size_t output_positions_bytes;
} df11_group_tensors;

/* Copies and checks the tensors: sizes, tables, positions. The code stream is checked by decoding.
 */
DF11_API df11_status df11_make_group(const df11_group_tensors* tensors, df11_group** group);
DF11_API void df11_free_group(df11_group* group);
DF11_API uint64_t df11_n_elements(const df11_group* group);

/* Decodes all words into host memory on `n_threads` threads (0: all). Checks every gap, every
 * position and the end of the stream: DF11_CORRUPT_STREAM if anything is off. */
DF11_API df11_status df11_decode_cpu(const df11_group* group, uint16_t* words, int n_threads);

/* ---- CUDA --------------------------------------------------------------------------------------
 */

typedef struct df11_cuda_group df11_cuda_group;

/* DF11_OK if groups can be decoded with CUDA here; otherwise df11_last_error() says why not. */
DF11_API df11_status df11_cuda_available(void);
DF11_API int df11_cuda_devices(void);

/* Copies a group to a device, tables in decode-ready form, and returns when it is there. `stream`
 * is a cudaStream_t of that device, or NULL. The df11_group may be freed afterwards. */
DF11_API df11_status df11_prepare_cuda(const df11_group* group, int device, void* stream,
                                       df11_cuda_group** prepared);
DF11_API void df11_free_cuda_group(df11_cuda_group* prepared);
DF11_API uint64_t df11_cuda_n_elements(const df11_cuda_group* prepared);
DF11_API uint64_t df11_cuda_device_bytes(const df11_cuda_group* prepared);

/* Bits that decoding sets in the status word. */
#define DF11_CUDA_NO_CODE 1u   /* a weight's code is not in the tables */
#define DF11_CUDA_BAD_COUNT 2u /* code and positions disagree; that block was not written */
#define DF11_CUDA_BAD_GAP 4u   /* code and gaps disagree */

/* Enqueues the decoding of `n` groups of one device on `stream`; returns at once, and neither
 * allocates nor synchronises, so it may be captured in a CUDA graph. words[i]: device memory for
 * the words of groups[i], aligned to 16 bytes. `device_status`: a uint32_t in device memory, set to
 * 0 by the caller, in which bits are set when a group is damaged. Nothing outside the words is
 * written. */
DF11_API df11_status df11_decode_cuda(const df11_cuda_group* const* groups, uint16_t* const* words,
                                      size_t n, uint32_t* device_status, void* stream);

#ifdef __cplusplus
}
#endif

#endif
