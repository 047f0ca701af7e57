// Every request that the kernel's role knows, with every pointer, length, handle and attribute wrong in turn: an errno
// is the answer, EFAULT for memory that is not there, and afterwards a good request still works.
#include <gtest/gtest.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sys/mman.h>

#include <algorithm>
#include <map>

#include "kernel/file.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "tests/unit/kernel/fake_device.h"
#include "uverbs/bundle.h"

namespace verbena::kernel {
namespace {

using uverbs::AttrKind;
using uverbs::AttrSpec;
using uverbs::Bundle;

// One request as a program lays it out, to be spoiled at will.
struct Raw {
  alignas(8) std::byte bytes[sizeof(ib_uverbs_ioctl_hdr) + 40 * sizeof(ib_uverbs_attr)]{};
  Raw(std::uint16_t object, std::uint16_t method) {
    header().object_id = object;
    header().method_id = method;
    header().driver_id = kDriverId;
    header().length = sizeof(ib_uverbs_ioctl_hdr);
  }
  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(bytes); }
  ib_uverbs_attr& attr(unsigned i) { return header().attrs[i]; }
  ib_uverbs_attr& add(std::uint16_t id, std::uint64_t length, std::uint64_t data) {
    ib_uverbs_attr& a = header().attrs[header().num_attrs++];
    header().length = static_cast<std::uint16_t>(header().length + sizeof a);
    a = {};
    a.attr_id = id;
    a.flags = UVERBS_ATTR_F_MANDATORY;
    a.len = static_cast<std::uint16_t>(length);
    a.data = data;
    return a;
  }
};

class BadRequestTest : public testing::Test {
 protected:
  void SetUp() override {
    auto node = Node::adopt(std::make_unique<FakeDevice>(log_), device::Profile{}, 0);
    ASSERT_TRUE(node) << node.error().reason;
    node_ = *node;
    const int rw = PROT_READ | PROT_WRITE, how = MAP_PRIVATE | MAP_ANONYMOUS;
    // Two usable pages, one read-only, one that cannot be touched.
    auto* p = static_cast<std::byte*>(mmap(nullptr, 4 * 4096, rw, how, -1, 0));
    ASSERT_NE(p, MAP_FAILED);
    good_ = p;
    read_only_ = p + 2 * 4096;
    nowhere_ = p + 3 * 4096;
    mprotect(read_only_, 4096, PROT_READ);
    mprotect(nowhere_, 4096, PROT_NONE);
    open();
  }
  void TearDown() override {
    if (file_) file_->release();
    munmap(good_, 4 * 4096);
  }
  void open() {
    if (file_) file_->release();
    file_ = File::open(node_);
    ASSERT_TRUE(file_);
    mlx5_ib_alloc_ucontext_req_v2 driver{};
    driver.total_num_bfregs = 16;
    driver.max_cqe_version = 1;
    driver.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
    mlx5_ib_alloc_ucontext_resp response{};
    Bundle get(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    get.in_struct(UVERBS_ATTR_UHW_IN, driver);
    get.out_struct(UVERBS_ATTR_UHW_OUT, response);
    ASSERT_EQ(file_->ioctl(get.finish(kDriverId)), 0);
  }
  int run(Raw& raw) { return file_->ioctl(&raw.header()); }

  static std::uint64_t at(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
  static std::size_t length_of(const AttrSpec& spec) { return spec.min_len; }

  // The shortest form of a method with every attribute present.
  Raw whole(const Method& method) {
    Raw raw(method.spec.object, method.spec.method);
    for (const AttrSpec& spec : method.spec.attrs) {
      const bool data = spec.kind == AttrKind::ptr_in || spec.kind == AttrKind::enum_in;
      const std::size_t length = spec.kind == AttrKind::enum_in ? 0 : spec.min_len;
      if (spec.kind == AttrKind::ptr_out)
        raw.add(spec.id, std::max<std::size_t>(length, spec.max_len == 0xffff ? 64 : 0), at(good_));
      else
        raw.add(spec.id, data ? length : 0, data && length > 8 ? at(good_) : 0);
    }
    // A driver's own attributes begin where those of driver data do.
    if (method.spec.udata && std::ranges::none_of(method.spec.attrs, [](const AttrSpec& s) {
          return s.id == UVERBS_ATTR_UHW_IN || s.id == UVERBS_ATTR_UHW_OUT;
        })) {
      raw.add(UVERBS_ATTR_UHW_IN, 64, at(good_));
      raw.add(UVERBS_ATTR_UHW_OUT, 64, at(good_));
    }
    return raw;
  }
  template <class Visit>
  void each_method(Visit&& visit) {
    for (const auto& table : method_tables())
      for (const Method& method : table) {
        SCOPED_TRACE("object " + std::to_string(method.spec.object) + " method " + std::to_string(method.spec.method));
        visit(method);
        if (HasFatalFailure()) return;
      }
  }
  void still_works() {
    Raw raw(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
    raw.add(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, at(good_));
    ASSERT_EQ(run(raw), 0);
  }

  FakeDevice::Log log_;
  std::shared_ptr<Node> node_;
  std::shared_ptr<File> file_;
  std::byte *good_ = nullptr, *read_only_ = nullptr, *nowhere_ = nullptr;
};

TEST_F(BadRequestTest, TheRequestItselfMayLieAnywhere) {
  for (std::uint64_t address : {std::uint64_t{0}, std::uint64_t{8}, at(nowhere_), at(nowhere_) - 8, at(nowhere_) - 24 + 1,
                                ~std::uint64_t{0} - 15, std::uint64_t{1} << 63, std::uint64_t{0xfff} << 52})
    EXPECT_EQ(file_->ioctl(reinterpret_cast<ib_uverbs_ioctl_hdr*>(address)), EFAULT) << std::hex << address;
  // The header is there, the attributes are not.
  Raw raw(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT);
  raw.add(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, at(good_));
  mprotect(read_only_, 4096, PROT_READ | PROT_WRITE);
  auto* edge = reinterpret_cast<ib_uverbs_ioctl_hdr*>(nowhere_ - sizeof(ib_uverbs_ioctl_hdr));
  std::memcpy(edge, raw.bytes, sizeof(ib_uverbs_ioctl_hdr));
  EXPECT_EQ(file_->ioctl(edge), EFAULT);
  // Readable, but the marks of valid output have no place.
  std::memcpy(read_only_, raw.bytes, sizeof raw.bytes);
  mprotect(read_only_, 4096, PROT_READ);
  EXPECT_EQ(file_->ioctl(reinterpret_cast<ib_uverbs_ioctl_hdr*>(read_only_)), EFAULT);
  EXPECT_EQ(run(raw), 0);
}

TEST_F(BadRequestTest, EveryHeaderField) {
  each_method([&](const Method& method) {
    const Raw good = whole(method);
    for (std::size_t i = 0; i < sizeof(ib_uverbs_ioctl_hdr); ++i)
      for (unsigned bit = 0; bit < 8; ++bit) {
        Raw raw = good;
        raw.bytes[i] ^= static_cast<std::byte>(1u << bit);
        const auto& changed = raw.header();
        const bool another = changed.object_id != method.spec.object || changed.method_id != method.spec.method;
        if (another && find_method(changed.object_id, changed.method_id)) continue;  // it may well be a good one
        EXPECT_NE(run(raw), 0) << "byte " << i << " bit " << bit;
      }
    for (unsigned n : {33u, 40u, 0xffffu}) {
      Raw raw = good;
      raw.header().num_attrs = static_cast<std::uint16_t>(n);
      raw.header().length = static_cast<std::uint16_t>(sizeof(ib_uverbs_ioctl_hdr) + n * sizeof(ib_uverbs_attr));
      EXPECT_EQ(run(raw), EINVAL);
    }
  });
  still_works();
}

TEST_F(BadRequestTest, EveryPointer) {
  each_method([&](const Method& method) {
    const Raw good = whole(method);
    const unsigned count = const_cast<Raw&>(good).header().num_attrs;
    for (unsigned i = 0; i < count; ++i) {
      const ib_uverbs_attr& attr = const_cast<Raw&>(good).attr(i);
      const bool out = attr.data == at(good_) && attr.len != 0 &&
                       ((method.spec.udata && attr.attr_id == UVERBS_ATTR_UHW_OUT) ||
                        std::ranges::any_of(method.spec.attrs, [&](const AttrSpec& s) {
                          return s.id == attr.attr_id && s.kind == AttrKind::ptr_out;
                        }));
      if (!out && attr.len <= 8) continue;
      for (std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{8}, at(nowhere_), at(nowhere_) - attr.len + 1,
                                ~std::uint64_t{0} - 3, std::uint64_t{1} << 63}) {
        Raw raw = good;
        raw.attr(i).data = bad;
        EXPECT_EQ(run(raw), EFAULT) << "attribute " << attr.attr_id << " at " << std::hex << bad;
      }
      if (!out) continue;
      Raw raw = good;
      raw.attr(i).data = at(read_only_);
      EXPECT_EQ(run(raw), EFAULT) << "attribute " << attr.attr_id << ": read-only";
    }
  });
  still_works();
}

TEST_F(BadRequestTest, EveryLengthAndEveryAttributeField) {
  each_method([&](const Method& method) {
    const Raw good = whole(method);
    const unsigned count = const_cast<Raw&>(good).header().num_attrs;
    for (unsigned i = 0; i < count; ++i) {
      // The data behind a longer length is not there: never a crash, and never success for too much.
      for (unsigned length = 0; length <= 0xffff; length = length < 130 ? length + 1 : length * 2 + 1) {
        Raw raw = good;
        raw.attr(i).len = static_cast<std::uint16_t>(length);
        if (raw.attr(i).data == at(good_)) raw.attr(i).data = at(nowhere_) - 4096 - 64;
        run(raw);
      }
      Raw reserved = good;
      reserved.attr(i).attr_data.reserved = 0x11;
      EXPECT_NE(run(reserved), 0) << "attribute " << i;
      Raw twice = good;
      if (count < 32) {
        const ib_uverbs_attr copy = twice.attr(i);
        twice.add(copy.attr_id, copy.len, copy.data);
        EXPECT_EQ(run(twice), EINVAL) << "attribute " << i;
      }
      for (std::uint64_t handle : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xffffffff}, ~std::uint64_t{0},
                                   std::uint64_t{1} << 32, std::uint64_t{0x80000000}}) {
        Raw raw = good;
        if (raw.attr(i).len == 0) raw.attr(i).data = handle;
        run(raw);
      }
    }
    Raw unknown = good;
    if (count < 32) {
      unknown.add(0xabc, 0, 0);
      EXPECT_EQ(run(unknown), EPROTONOSUPPORT);
    }
    open();  // what some of these made
  });
  still_works();
}

TEST_F(BadRequestTest, EveryAttributeMissing) {
  each_method([&](const Method& method) {
    for (const AttrSpec& missing : method.spec.attrs) {
      Raw raw(method.spec.object, method.spec.method);
      Raw good = whole(method);
      for (unsigned i = 0; i < good.header().num_attrs; ++i)
        if (good.attr(i).attr_id != missing.id) raw.add(good.attr(i).attr_id, good.attr(i).len, good.attr(i).data);
      const int error = run(raw);
      if (missing.mandatory) {
        EXPECT_EQ(error, EINVAL) << missing.id;
      }
    }
    open();
  });
  still_works();
}

// ---- legacy commands ----

class BadCommandTest : public BadRequestTest {
 protected:
  Raw command(std::uint64_t number, std::uint64_t in, std::size_t in_length, std::uint64_t out,
              std::size_t out_length) {
    Raw raw(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    raw.add(UVERBS_ATTR_CORE_IN, in_length, in);
    if (out_length) raw.add(UVERBS_ATTR_CORE_OUT, out_length, out);
    raw.add(UVERBS_ATTR_WRITE_CMD, 8, number);
    raw.add(UVERBS_ATTR_UHW_IN, 64, at(good_) + 1024);
    raw.add(UVERBS_ATTR_UHW_OUT, 64, at(good_) + 2048);
    return raw;
  }
  template <class Visit>
  void each_command(Visit&& visit) {
    for (const auto& table : command_tables())
      for (const WriteCommand& row : table) {
        SCOPED_TRACE("command " + std::to_string(row.command));
        visit(row);
      }
  }
};

TEST_F(BadCommandTest, EveryPointer) {
  each_command([&](const WriteCommand& row) {
    for (std::uint64_t bad : {std::uint64_t{0}, std::uint64_t{8}, at(nowhere_), at(nowhere_) - 8, ~std::uint64_t{0} - 7}) {
      if (row.in_size > 8) {
        Raw raw = command(row.command, bad, row.in_size, at(good_), row.out_size);
        EXPECT_EQ(run(raw), EFAULT) << std::hex << bad;
      }
      if (row.out_size > 8) {
        Raw raw = command(row.command, row.in_size > 8 ? at(good_) : 0, row.in_size, bad, row.out_size);
        EXPECT_EQ(run(raw), EFAULT) << std::hex << bad;
      }
    }
    if (row.out_size) {
      Raw raw = command(row.command, row.in_size > 8 ? at(good_) : 0, row.in_size, at(read_only_), row.out_size);
      EXPECT_EQ(run(raw), EFAULT);
    }
  });
  still_works();
}

TEST_F(BadCommandTest, EveryLength) {
  each_command([&](const WriteCommand& row) {
    for (std::size_t n = 0; n < row.in_size; ++n) {
      Raw raw = command(row.command, n > 8 ? at(good_) : 0, n, at(good_), std::max<std::size_t>(row.out_size, 16));
      EXPECT_EQ(run(raw), ENOSPC) << "in " << n;
    }
    for (std::size_t n = 0; n < row.out_size; ++n) {
      Raw raw = command(row.command, row.in_size > 8 ? at(good_) : 0, row.in_size, at(good_), n);
      EXPECT_EQ(run(raw), ENOSPC) << "out " << n;
    }
  });
  still_works();
}

// Whatever a command is told, word by word: an answer.
TEST_F(BadCommandTest, EveryWord) {
  each_command([&](const WriteCommand& row) {
    const std::size_t length = std::max<std::size_t>(row.in_size, 16);
    for (std::size_t word = 0; word < length; word += 4)
      for (std::uint32_t value : {1u, 0xffu, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
        std::memset(good_, 0, 4096);
        std::memcpy(good_ + word, &value, 4);
        Raw raw = command(row.command, at(good_), length, at(good_) + 3072, std::max<std::size_t>(row.out_size, 16));
        run(raw);
      }
    open();
  });
  for (unsigned number = 0; number < 0x100; ++number)
    for (std::uint32_t extended : {0u, std::uint32_t{IB_USER_VERBS_CMD_FLAG_EXTENDED}}) {
      if (find_command(number | extended)) continue;
      Raw raw = command(number | extended, at(good_), 64, at(good_), 64);
      EXPECT_EQ(run(raw), EOPNOTSUPP) << number;
    }
  Raw wide = command(std::uint64_t{1} << 40, at(good_), 64, at(good_), 64);
  EXPECT_EQ(run(wide), EINVAL);
  still_works();
}

}  // namespace
}  // namespace verbena::kernel
