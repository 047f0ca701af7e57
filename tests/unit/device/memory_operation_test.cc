// Loads and stores that are operations: what instructions are recognised, and what the handler does for them.
#include <gtest/gtest.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "device/memory/instruction.h"
#include "device/memory/operation_pages.h"
#include "device/transport/clock.h"

namespace verbena::device {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Instruction, PlainMoves) {
  struct Row {
    Bytes code;
    bool store;
    unsigned bytes, number;
  };
  for (const Row& row : {
           Row{{0x88, 0x0f}, true, 1, 1},                                    // mov [rdi], cl
           Row{{0x66, 0x89, 0x0f}, true, 2, 1},                              // mov [rdi], cx
           Row{{0x89, 0x4f, 0x04}, true, 4, 1},                              // mov [rdi+4], ecx
           Row{{0x4c, 0x89, 0x84, 0xb7, 0, 1, 0, 0}, true, 8, 8},            // mov [rdi+rsi*4+256], r8
           Row{{0x48, 0x8b, 0x05, 1, 2, 3, 4}, false, 8, 0},                 // mov rax, [rip+...]
           Row{{0x8a, 0x04, 0x25, 0, 0, 0, 0}, false, 1, 0},                 // mov al, [0]
           Row{{0xc7, 0x07, 5, 0, 0, 0}, true, 4, 0},                        // mov dword [rdi], 5
           Row{{0x48, 0xc7, 0x47, 0x08, 0xff, 0xff, 0xff, 0xff}, true, 8, 0},  // mov qword [rdi+8], -1
           Row{{0x0f, 0xb7, 0x16}, false, 2, 2},                             // movzx edx, word [rsi]
           Row{{0x66, 0x0f, 0xd6, 0x07}, true, 8, 0},                        // movq [rdi], xmm0
           Row{{0xc5, 0xfa, 0x7e, 0x0e}, false, 8, 1},                       // vmovq xmm1, [rsi]
           Row{{0xc4, 0x61, 0x79, 0x7e, 0x07}, true, 4, 8},                  // vmovd [rdi], xmm8
       }) {
    const auto access = decode_access(row.code);
    ASSERT_TRUE(access) << int{row.code[0]};
    EXPECT_EQ(access->store, row.store);
    EXPECT_EQ(access->bytes, row.bytes);
    EXPECT_EQ(access->number, row.number);
    EXPECT_EQ(access->length, row.code.size());
    EXPECT_FALSE(decode_access(std::span(row.code).first(row.code.size() - 1)));
  }
  EXPECT_EQ(decode_access(Bytes{0x48, 0xc7, 0x07, 0xfe, 0xff, 0xff, 0xff})->immediate, ~std::uint64_t{1});
}

TEST(Instruction, OthersAreNotRecognised) {
  for (const Bytes& code : {Bytes{0x01, 0x07},                    // add [rdi], eax
                            Bytes{0xf0, 0x0f, 0xc1, 0x07},        // lock xadd [rdi], eax
                            Bytes{0x87, 0x07},                    // xchg
                            Bytes{0x0f, 0x11, 0x07},              // movups [rdi], xmm0
                            Bytes{0xc5, 0xfe, 0x7f, 0x07},        // vmovdqu [rdi], ymm0
                            Bytes{0xa4}, Bytes{0xf3, 0xa4},       // movsb
                            Bytes{0x89, 0xc8},                    // no memory
                            Bytes{0xc6, 0x4f, 0x01, 0x01, 0x00},  // not a MOV
                            Bytes{}, Bytes(20, 0x66)})
    EXPECT_FALSE(decode_access(code)) << code.size();
}

TEST(Instruction, RegisterAfterALoad) {
  MemoryAccess access{.bytes = 1, .width = 1};
  EXPECT_EQ(loaded(access, 0x1122334455667788, 0xff), 0x11223344556677ffu);
  access.kind = MemoryAccess::Register::high_byte;
  EXPECT_EQ(loaded(access, 0x1122334455667788, 0xff), 0x112233445566ff88u);
  EXPECT_EQ(loaded({.bytes = 2, .width = 4, .sign_extend = true}, ~0ull, 0x8000), 0xffff8000u);
  EXPECT_EQ(loaded({.bytes = 2, .width = 8, .sign_extend = true}, 0, 0x8000), 0xffffffffffff8000u);
}

class OperationPagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    memory_ = static_cast<std::byte*>(
        mmap(nullptr, kOperationBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    increment_ = map(MemoryOperation::increment);
    test_and_set_ = map(MemoryOperation::test_and_set);
    ASSERT_NE(increment_, MAP_FAILED);
    ASSERT_NE(test_and_set_, MAP_FAILED);
  }
  void TearDown() override {
    munmap(memory_, kOperationBytes);
    munmap(increment_, 8192);
    munmap(test_and_set_, 8192);
  }
  char* map(MemoryOperation op) {
    return static_cast<char*>(pages_.map(nullptr, 8192, MAP_SHARED, memory_, op, 4096));
  }
  template <class T>
  T word(std::size_t at) const {
    T value;
    std::memcpy(&value, memory_ + 4096 + at, sizeof value);
    return value;
  }

  std::byte* memory_ = nullptr;
  char *increment_ = nullptr, *test_and_set_ = nullptr;
  OperationPages pages_;
};

template <class T>
volatile T& at(char* page, std::size_t offset) {
  return *reinterpret_cast<volatile T*>(page + offset);
}

// What an instruction leaves in its register and the flags.
struct Left {
  std::uint64_t reg;
  std::uint8_t c, z, s, o, p;
  bool operator==(const Left&) const = default;
};

#define VERBENA_ARITHMETIC(name, type, instruction)                                                          \
  Left name(std::uint64_t reg, const void* at, int carry) {                                                  \
    Left left{};                                                                                             \
    type value = static_cast<type>(reg);                                                                     \
    asm volatile("btl $0, %[in]\n\t" instruction                                                             \
                 "\n\tsetc %[c]\n\tsetz %[z]\n\tsets %[s]\n\tseto %[o]\n\tsetp %[p]"                         \
                 : [reg] "+&q"(value), [c] "=m"(left.c), [z] "=m"(left.z), [s] "=m"(left.s), [o] "=m"(left.o), \
                   [p] "=m"(left.p)                                                                          \
                 : [at] "r"(at), [in] "r"(carry)                                                             \
                 : "cc", "memory");                                                                          \
    left.reg = value;                                                                                        \
    return left;                                                                                             \
  }
VERBENA_ARITHMETIC(add1, std::uint8_t, "addb (%[at]), %[reg]")
VERBENA_ARITHMETIC(adc4, std::uint32_t, "adcl (%[at]), %[reg]")
VERBENA_ARITHMETIC(sbb8, std::uint64_t, "sbbq (%[at]), %[reg]")
VERBENA_ARITHMETIC(sub2, std::uint16_t, "subw (%[at]), %[reg]")
VERBENA_ARITHMETIC(and4, std::uint32_t, "andl (%[at]), %[reg]")
VERBENA_ARITHMETIC(or8, std::uint64_t, "orq (%[at]), %[reg]")
VERBENA_ARITHMETIC(xor4, std::uint32_t, "xorl (%[at]), %[reg]")
VERBENA_ARITHMETIC(cmp4, std::uint32_t, "cmpl (%[at]), %[reg]")
VERBENA_ARITHMETIC(cmp1_memory, std::uint8_t, "cmpb %[reg], (%[at])")
VERBENA_ARITHMETIC(cmp8_memory, std::uint64_t, "cmpq %[reg], (%[at])")
VERBENA_ARITHMETIC(test4, std::uint32_t, "testl %[reg], (%[at])")
VERBENA_ARITHMETIC(test1_immediate, std::uint8_t, "testb $0x81, (%[at])")
VERBENA_ARITHMETIC(test8_immediate, std::uint64_t, "testq $-2, (%[at])")
VERBENA_ARITHMETIC(cmp4_short, std::uint32_t, "cmpl $-5, (%[at])")
VERBENA_ARITHMETIC(cmp2_immediate, std::uint16_t, "cmpw $0x1234, (%[at])")
VERBENA_ARITHMETIC(cmp1_immediate, std::uint8_t, "cmpb $7, (%[at])")

TEST_F(OperationPagesTest, ArithmeticReadsAsOfMemory) {
  const std::uint64_t values[] = {0, 1, 7, 0x7f, 0x80, 0xff, 0x1234, 0x7fffffff, 0x80000000, 0xfffffffb, ~0ull, 1ull << 63};
  for (const auto& run : {add1, adc4, sbb8, sub2, and4, or8, xor4, cmp4, cmp1_memory, cmp8_memory, test4, test1_immediate,
                          test8_immediate, cmp4_short, cmp2_immediate, cmp1_immediate})
    for (const std::uint64_t reg : values)
      for (const std::uint64_t value : values)
        for (const int carry : {0, 1}) {
          std::memcpy(memory_ + 4096 + 32, &value, sizeof value);
          EXPECT_TRUE(run(reg, increment_ + 32, carry) == run(reg, memory_ + 4096 + 32, carry)) << reg << ' ' << value;
        }
}

TEST_F(OperationPagesTest, StoresAddAndLoadsSet) {
  at<std::uint8_t>(increment_, 3) = 5;
  at<std::uint8_t>(increment_, 3) = 7;
  EXPECT_EQ(word<std::uint8_t>(3), 12);
  EXPECT_EQ(at<std::uint8_t>(increment_, 3), 12);
  EXPECT_EQ(at<std::uint8_t>(test_and_set_, 3), 12);
  EXPECT_EQ(at<std::uint8_t>(test_and_set_, 3), 0xff);
  at<std::uint64_t>(increment_, 4096) = 1ull << 40;
  at<std::uint64_t>(increment_, 4096) = ~0ull;
  EXPECT_EQ(word<std::uint64_t>(4096), (1ull << 40) - 1);
  EXPECT_EQ(at<std::uint64_t>(test_and_set_, 4096), (1ull << 40) - 1);
  EXPECT_EQ(word<std::uint64_t>(4096), ~0ull);
  at<std::int16_t>(increment_, 8) = -2;
  EXPECT_EQ(at<std::int16_t>(test_and_set_, 8), -2);
  const std::uint32_t source = 77;
  std::uint32_t target = 0;
  std::memcpy(increment_ + 16, &source, sizeof source);
  std::memcpy(&target, test_and_set_ + 16, sizeof target);
  EXPECT_EQ(target, 77u);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(increment_ + 24), _mm_set_epi64x(1, 33));
  const __m128i got = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(test_and_set_ + 24));
  EXPECT_EQ(_mm_cvtsi128_si64(got), 33);
  EXPECT_EQ(_mm_cvtsi128_si64(_mm_srli_si128(got, 8)), 0);
}

TEST_F(OperationPagesTest, AClockPageReadsTheClock) {
  auto* page = static_cast<char*>(map_clock_page(nullptr, 4096, MAP_SHARED));
  ASSERT_NE(static_cast<void*>(page), MAP_FAILED);
  stop_clock(0x0123456789abcdef);
  EXPECT_EQ(__builtin_bswap64(at<std::uint64_t>(page, 0)), 0x0123456789abcdefu);
  EXPECT_EQ(__builtin_bswap32(at<std::uint32_t>(page, 0)), 0x01234567u);
  EXPECT_EQ(__builtin_bswap32(at<std::uint32_t>(page, 4)), 0x89abcdefu);
  EXPECT_EQ(at<std::uint8_t>(page, 7), 0xefu);
  EXPECT_EQ(at<std::uint64_t>(page, 8), 0u);
  stop_clock(0);
  EXPECT_NE(__builtin_bswap64(at<std::uint64_t>(page, 0)), 0x0123456789abcdefu);
  EXPECT_DEATH(at<std::uint32_t>(page, 0) = 1, "");  // by SIGSEGV, which sanitizers make an exit
  munmap(page, 4096);
}

TEST_F(OperationPagesTest, AtomicAcrossThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(increment_ + 64));
      for (int n = 0; n < 500; ++n) word.store(1, std::memory_order_relaxed);
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(word<std::uint32_t>(64), 2000u);
}

TEST_F(OperationPagesTest, MovedAndUnmappedPages) {
  char* moved = static_cast<char*>(mremap(increment_, 8192, 8192, MREMAP_MAYMOVE | MREMAP_FIXED,
                                          mmap(nullptr, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)));
  ASSERT_NE(moved, MAP_FAILED);
  at<std::uint32_t>(moved, 4096) = 9;
  EXPECT_EQ(word<std::uint32_t>(4096), 9u);
  increment_ = moved;
}

using OperationPagesDeathTest = OperationPagesTest;

// By the signal; a sanitizer's own handler, the last in the chain, ends the process with a status instead.
bool ended_by_the_fault(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (WIFEXITED(status) && WEXITSTATUS(status) != 0) return true;
#endif
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

TEST_F(OperationPagesDeathTest, EverythingElseIsAFault) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(__atomic_fetch_add(reinterpret_cast<int*>(increment_), 1, __ATOMIC_RELAXED), ended_by_the_fault, "");
  EXPECT_EXIT(at<std::uint32_t>(increment_, 1) = 1, ended_by_the_fault, "");  // not aligned
  EXPECT_EXIT(
      {
        pages_.withdraw();
        at<std::uint32_t>(increment_, 0) = 1;
      },
      ended_by_the_fault, "");
  EXPECT_EXIT(
      {
        mmap(increment_, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        at<std::uint32_t>(increment_, 0) = 1;
      },
      ended_by_the_fault, "");
}

}  // namespace
}  // namespace verbena::device
