// Requests to the kernel's role: native methods and legacy commands, several to an input, on a File over a real device.
//
// Grammar of a request: every attribute that its table has, well formed, with handles and descriptors from earlier
// answers, driver data that makes sense; then edits. Pointers lead to good memory, to its edges, to read-only memory or
// to nowhere. What comes back must be an errno the kernel would give.
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "kernel/file.h"
#include "kernel/ib.h"
#include "kernel/method.h"
#include "tests/fuzz/confine.h"
#include "tests/fuzz/input.h"

namespace verbena::kernel {
namespace {

using fuzz::Input;
using uverbs::AttrKind;
using uverbs::AttrSpec;

constexpr std::size_t kBytes = 1 << 16;
constexpr unsigned kRequests = 24;

struct World {
  std::string dir;
  std::shared_ptr<Node> node;
  std::byte *good, *read_only, *nowhere, *scratch;

  World() {
    char name[] = "/dev/shm/verbena-fuzz-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    dir = name;
    setenv("VERBENA_RUN_DIR", name, 1);
    setenv("VERBENA_PROMOTE", "0", 1);
    auto made = Node::create(device::default_profile(), "fuzz", 0);
    if (!made) std::abort();
    node = *made;
    // Good memory, then a read-only page, then one that cannot be touched; what a request is laid out in; the same for
    // what the device writes when queues are destroyed.
    const int rw = PROT_READ | PROT_WRITE;
    good = static_cast<std::byte*>(mmap(nullptr, kBytes + 2 * 4096, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    read_only = good + kBytes;
    nowhere = read_only + 4096;
    mprotect(read_only, 4096, PROT_READ);
    mprotect(nowhere, 4096, PROT_NONE);
    scratch = static_cast<std::byte*>(mmap(nullptr, 8192, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    fuzz::confine_allow(good, kBytes);
    fuzz::confine_allow(scratch, 8192);
  }
  ~World() {
    node.reset();
    std::filesystem::remove_all(dir);
  }
};
World* world = nullptr;

class Session {
 public:
  explicit Session(Input in) : in_(in), w_(*world) {
    std::memset(w_.good, 0, kBytes);
    file_ = File::open(w_.node);
    if (!file_) std::abort();
    user_fd_ = file_->take_user_fd();
    if (in_.take() % 16 != 0) start();
  }
  ~Session() {
    file_->release();
    for (int fd : fds_) {
      file_->forget_fd(fd);
      close(fd);
    }
    close(user_fd_);
  }
  void run() {
    for (unsigned i = 0; i < kRequests && in_.more(); ++i) {
      if (in_.below(3) == 0)
        native();
      else
        legacy();
      if (in_.one_in(8)) {
        file_->watch(in_.one_in(2) ? UVERBS_OBJECT_QP : UVERBS_OBJECT_CQ, in_.take() % 16);
        file_->serve_watched();
      }
    }
  }

 private:
  static std::uint64_t at(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

  ib_uverbs_ioctl_hdr& header() { return *reinterpret_cast<ib_uverbs_ioctl_hdr*>(w_.scratch); }
  void begin(std::uint16_t object, std::uint16_t method) {
    std::memset(w_.scratch, 0, 1024);
    header().object_id = object;
    header().method_id = method;
    header().driver_id = kDriverId;
    header().length = sizeof(ib_uverbs_ioctl_hdr);
    used_ = 0;
  }
  void add(std::uint16_t id, std::size_t length, std::uint64_t data, std::uint8_t element = 0) {
    if (header().num_attrs >= 40) return;
    ib_uverbs_attr& a = header().attrs[header().num_attrs++];
    header().length = static_cast<std::uint16_t>(header().length + sizeof a);
    a.attr_id = id;
    a.flags = UVERBS_ATTR_F_MANDATORY;
    a.len = static_cast<std::uint16_t>(length);
    a.attr_data.enum_data.elem_id = element;
    a.data = data;
  }
  // Room for data in good memory, near its start.
  std::byte* room(std::size_t n) {
    std::byte* p = w_.good + used_;
    used_ = std::min<std::size_t>(used_ + ((n + 63) & ~std::size_t{63}), 0x7000);
    return p;
  }
  std::uint64_t bad_pointer() {
    const std::uint64_t places[] = {0, 8, at(w_.nowhere), at(w_.nowhere) - 1 - in_.take(), at(w_.read_only), at(w_.read_only) - 9,
                                    ~std::uint64_t{0} - 7, std::uint64_t{1} << 63, std::uint64_t{0xfff} << 52};
    return places[in_.below(std::size(places))];
  }
  std::uint64_t handle() {
    if (handles_.empty() || in_.one_in(16)) return in_.number();
    return handles_[in_.below(static_cast<std::uint32_t>(handles_.size()))];
  }
  // A word of a request: a handle, a number, an address.
  std::uint64_t word() {
    switch (in_.below(5)) {
      case 0:
        return handle();
      case 1:
        return at(w_.good) + 0x8000 + in_.take<std::uint16_t>() % 0x7000;
      case 2:
        return in_.one_in(4) ? bad_pointer() : in_.take();
      default:
        return in_.number();
    }
  }
  // Structures of this driver that creation needs; all of them begin with buf_addr, db_addr.
  void driver_data(std::byte* p) {
    const std::uint64_t buffer = at(w_.good) + 0x8000, doorbell = at(w_.good) + 0xf000 + in_.take() % 32 * 8;
    switch (in_.below(5)) {
      case 0: {
        mlx5_ib_create_cq c{};
        c.buf_addr = buffer;
        c.db_addr = doorbell;
        c.cqe_size = 64;
        c.flags = MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX;
        c.uar_page_index = 1;
        std::memcpy(p, &c, sizeof c);
        return;
      }
      case 1: {
        mlx5_ib_create_qp c{};
        c.buf_addr = buffer;
        c.db_addr = doorbell;
        c.sq_wqe_count = 8;
        c.rq_wqe_count = 8;
        c.rq_wqe_shift = 6;
        c.bfreg_index = 1;
        c.flags = MLX5_QP_FLAG_BFREG_INDEX;
        c.uidx = in_.take();
        std::memcpy(p, &c, sizeof c);
        return;
      }
      case 2: {
        mlx5_ib_create_srq c{};
        c.buf_addr = buffer;
        c.db_addr = doorbell;
        std::memcpy(p, &c, sizeof c);
        return;
      }
      default:
        return;
    }
  }
  void udata() {
    std::byte* in = room(256);
    driver_data(in);
    if (in_.one_in(8))
      for (unsigned n = in_.below(4); n != 0; --n) {
        const std::uint64_t v = word();
        std::memcpy(in + in_.below(16) * 4, &v, 4);
      }
    add(UVERBS_ATTR_UHW_IN, in_.one_in(16) ? in_.take() : 64, at(in));
    add(UVERBS_ATTR_UHW_OUT, in_.one_in(16) ? in_.take() : 64, at(room(256)));
  }

  void attribute(const AttrSpec& spec) {
    switch (spec.kind) {
      case AttrKind::ptr_in:
      case AttrKind::enum_in: {
        const std::size_t length = spec.kind == AttrKind::enum_in ? in_.take() % 64 : spec.min_len;
        if (length <= 8) return add(spec.id, length, word(), in_.take() & 7);
        std::byte* p = room(length);
        for (unsigned i = 0; i + 8 <= std::min<std::size_t>(length, 64); i += 8) {
          const std::uint64_t v = word();
          std::memcpy(p + i, &v, 8);
        }
        return add(spec.id, length, at(p), in_.take() & 7);
      }
      case AttrKind::ptr_out: {
        const std::size_t length = spec.max_len == 0xffff ? spec.min_len + in_.take() : spec.min_len;
        return add(spec.id, length, at(room(length)));
      }
      case AttrKind::fd:
        return add(spec.id, 0,
                   fds_.empty() || in_.one_in(8)
                       ? in_.number()
                       : static_cast<std::uint64_t>(fds_[in_.below(static_cast<std::uint32_t>(fds_.size()))]));
      case AttrKind::idrs_in: {
        auto* p = reinterpret_cast<std::uint32_t*>(room(64));
        for (unsigned i = 0; i < 16; ++i) p[i] = static_cast<std::uint32_t>(handle());
        const std::size_t n = in_.below(16) * 4;
        return add(spec.id, n, n <= 8 ? *reinterpret_cast<std::uint64_t*>(p) : at(p));
      }
      case AttrKind::idr:
        return add(spec.id, 0, spec.access == uverbs::AttrAccess::create ? 0 : handle());
    }
  }

  void native() {
    const auto tables = method_tables();
    const auto& table = tables[in_.below(static_cast<std::uint32_t>(tables.size()))];
    if (table.empty()) return;
    const Method& method = table[in_.below(static_cast<std::uint32_t>(table.size()))];
    begin(method.spec.object, method.spec.method);
    for (const AttrSpec& spec : method.spec.attrs)
      if (spec.mandatory || in_.take() & 1) attribute(spec);
    if (method.spec.udata) udata();
    issue();
  }

  void legacy() {
    const auto tables = command_tables();
    const auto& table = tables[in_.below(static_cast<std::uint32_t>(tables.size()))];
    if (table.empty()) return;
    const WriteCommand& row = table[in_.below(static_cast<std::uint32_t>(table.size()))];
    begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    const std::size_t more = in_.one_in(8) ? in_.take() : 0, out = row.out_size + (in_.one_in(8) ? in_.take() : 0);
    std::byte* core = room(row.in_size + more);
    std::memset(core, 0, row.in_size + more);
    for (std::size_t i = 0; i + 4 <= row.in_size; i += 4) {
      if (in_.take() % 4 == 0) continue;
      const std::uint64_t v = word();
      std::memcpy(core + i, &v, 4);
    }
    std::uint64_t small = 0;
    std::memcpy(&small, core, 8);
    add(UVERBS_ATTR_CORE_IN, row.in_size + more, row.in_size + more <= 8 ? small : at(core));
    if (out != 0) add(UVERBS_ATTR_CORE_OUT, out, at(answer_ = room(out)));
    add(UVERBS_ATTR_WRITE_CMD, 8, row.command);
    udata();
    if (issue() == 0 && out >= 4) {
      // Most answers begin with a handle; the one of CREATE_COMP_CHANNEL with a descriptor.
      std::uint32_t first = 0;
      std::memcpy(&first, answer_, 4);
      if (row.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL || row.command == IB_USER_VERBS_CMD_GET_CONTEXT)
        descriptor(first);
      else
        handles_.push_back(first);
    }
  }

  void edit() {
    const unsigned n = std::min<unsigned>(header().num_attrs, 40);
    if (n == 0) return;
    ib_uverbs_attr& a = header().attrs[in_.below(n)];
    switch (in_.below(8)) {
      case 0:
        a.data = bad_pointer();
        return;
      case 1:
        a.len = static_cast<std::uint16_t>(in_.number());
        return;
      case 2:
        a.data = word();
        return;
      case 3:
        a.attr_id = static_cast<std::uint16_t>(in_.take() | (in_.take() & 1) << 12);
        return;
      case 4:
        a.flags = static_cast<std::uint16_t>(in_.number());
        return;
      case 5:
        a.attr_data.reserved = in_.take();
        return;
      case 6:
        w_.scratch[in_.below(sizeof(ib_uverbs_ioctl_hdr))] = static_cast<std::byte>(in_.take());
        return;
      default:
        add(a.attr_id, a.len, a.data);
    }
  }

  // An edit may have made another request of it: only pipes are taken for descriptors it made.
  void descriptor(std::uint64_t number) {
    const int fd = static_cast<int>(number);
    struct stat st {};
    if (number <= 2 || number > 1 << 20 || fstat(fd, &st) != 0 || !S_ISFIFO(st.st_mode)) return;
    if (std::ranges::find(fds_, fd) == fds_.end()) fds_.push_back(fd);
  }

  int issue() {
    for (unsigned edits = in_.below(8); edits > 4 && in_.more(); --edits) edit();
    auto* request = &header();
    if (in_.one_in(64)) request = reinterpret_cast<ib_uverbs_ioctl_hdr*>(bad_pointer());
    const int error = file_->ioctl(request);
    switch (error) {
      case 0:
        break;
      case EPERM: case ENOENT: case EIO: case EBADF: case EAGAIN: case ENOMEM: case EFAULT: case EBUSY: case ENODEV:
      case EINVAL: case EMFILE: case ENOSPC: case ERANGE: case EPROTONOSUPPORT: case EOPNOTSUPP: case ENODATA:
      case EREMOTEIO: case ETIMEDOUT: case EOVERFLOW: case EEXIST: case ENXIO:
        return error;
      default:
        __builtin_trap();
    }
    // Handles and descriptors that it made. The header was ours: it may have been edited.
    if (const Method* method = find_method(header().object_id, header().method_id); method != nullptr)
      for (unsigned i = 0; i < header().num_attrs && i < 32; ++i)
        for (const AttrSpec& spec : method->spec.attrs) {
          const ib_uverbs_attr& a = header().attrs[i];
          if (spec.id != a.attr_id || spec.access != uverbs::AttrAccess::create) continue;
          if (spec.kind == AttrKind::idr) handles_.push_back(a.data);
          if (spec.kind == AttrKind::fd) descriptor(a.data);
        }
    return 0;
  }

  void start() {
    begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    mlx5_ib_alloc_ucontext_req_v2 driver{};
    driver.total_num_bfregs = 16;
    driver.max_cqe_version = 1;
    driver.lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR;
    if (in_.take() & 1) driver.flags = MLX5_IB_ALLOC_UCTX_DEVX;
    std::byte* p = room(sizeof driver);
    std::memcpy(p, &driver, sizeof driver);
    add(UVERBS_ATTR_UHW_IN, sizeof driver, at(p));
    add(UVERBS_ATTR_UHW_OUT, sizeof(mlx5_ib_alloc_ucontext_resp), at(room(256)));
    if (file_->ioctl(&header()) != 0) std::abort();
    // What everything else stands on: a UAR and a protection domain.
    begin(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    std::byte* out = room(64);
    add(UVERBS_ATTR_CORE_IN, sizeof(ib_uverbs_alloc_pd), 0);
    add(UVERBS_ATTR_CORE_OUT, sizeof(ib_uverbs_alloc_pd_resp), at(out));
    add(UVERBS_ATTR_WRITE_CMD, 8, IB_USER_VERBS_CMD_ALLOC_PD);
    add(UVERBS_ATTR_UHW_OUT, 8, at(room(64)));
    if (file_->ioctl(&header()) != 0) std::abort();
    std::uint32_t pd = 0;
    std::memcpy(&pd, out, 4);
    handles_.push_back(pd);
  }

  Input in_;
  World& w_;
  std::shared_ptr<File> file_;
  int user_fd_ = -1;
  std::size_t used_ = 0;
  std::byte* answer_ = nullptr;
  std::vector<std::uint64_t> handles_;
  std::vector<int> fds_;
};

}  // namespace
}  // namespace verbena::kernel

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using verbena::kernel::world;
  world = new verbena::kernel::World;
  std::atexit([] {
    delete world;
    world = nullptr;
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  verbena::kernel::Session session({data, size});
  session.run();
  return 0;
}
