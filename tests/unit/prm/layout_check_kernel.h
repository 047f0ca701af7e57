// The seam between the two halves of the layout check. The C half compiles the kernel's header, whose structs have
// one byte for each bit, so that offsetof and sizeof count bits.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct KernelPlace {
  size_t bit;    // offset from the start
  size_t width;  // of the field, or of one element
  size_t count;  // elements; 0 for a tail as long as the command, 1 for a plain field
};

#ifdef __cplusplus
extern "C" {
#else
// What the header takes from other kernel headers.
typedef uint8_t u8;
#define BIT(n) (1u << (n))
#define BIT_ULL(n) (1ull << (n))

#define MEMBER(tag, field) (((tag*)0)->field)
#define PLAIN(tag, field) \
  { offsetof(tag, field), sizeof(MEMBER(tag, field)), 1 }
#define TAIL(tag, field) \
  { offsetof(tag, field), sizeof(MEMBER(tag, field)[0]), 0 }
#define ARRAY(tag, field) \
  { offsetof(tag, field), sizeof(MEMBER(tag, field)[0]), sizeof(MEMBER(tag, field)) / sizeof(MEMBER(tag, field)[0]) }
#endif

// In the order of the C++ half's rows.
extern const struct KernelPlace kKernelPlaces[];
extern const size_t kKernelSizes[];
extern const unsigned kKernelOpcodes[];

#ifdef __cplusplus
}
#endif
