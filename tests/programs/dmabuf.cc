// Memory that comes as a dma-buf: regions and UMEMs on it carry traffic, and every way of asking wrongly has its errno.
//
// Where the machine has udmabuf, it is a real one. Elsewhere a memfd stands in for it: to whoever asks by fstatfs(2) it is
// a dma-buf, and what else is asked of one, lseek(2) and mmap(2), it does alike.
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "devx_world.h"

namespace {

bool stand_in = false;

constexpr std::size_t kBytes = 16 * 4096;
constexpr unsigned kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

struct Memory {
  int memfd, dmabuf;
  char* view;  // the program's own
};

Memory make_memory() {
  Memory m{};
  CHECK((m.memfd = static_cast<int>(syscall(SYS_memfd_create, "memory", MFD_ALLOW_SEALING | MFD_CLOEXEC))) >= 0);
  CHECK(!ftruncate(m.memfd, kBytes) && !fcntl(m.memfd, F_ADD_SEALS, F_SEAL_SHRINK));
  m.view = static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, m.memfd, 0));
  CHECK(m.view != MAP_FAILED);
  const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (device < 0) {
    stand_in = true;
    m.dmabuf = dup(m.memfd);
  } else {
    udmabuf_create create = {static_cast<__u32>(m.memfd), UDMABUF_FLAGS_CLOEXEC, 0, kBytes};
    m.dmabuf = ioctl(device, UDMABUF_CREATE, &create);
    close(device);
  }
  CHECK(m.dmabuf >= 0);
  return m;
}

ibv_mr* reg(World* w, const Memory& m, std::uint64_t offset, std::size_t length, std::uint64_t iova,
            unsigned access = kAccess) {
  errno = 0;
  return ibv_reg_dmabuf_mr(w->pd, offset, length, iova, m.dmabuf, static_cast<int>(access));
}

// Written and read by a peer, and sent from, at an address that is the program's choice.
void regions(World* w, const Memory& m) {
  constexpr std::uint64_t iova = 0x7000000010;
  ibv_mr* mr = reg(w, m, 4096 + 16, 8192, iova);
  CHECK(mr);
  Queues a(w), b(w);
  a.connect(b.qpn);
  b.connect(a.qpn);
  std::memset(a.data(), 0x5a, 256);
  a.post(prm::WqeOpcode::rdma_write, 256, iova + 4096, mr->rkey, false);
  CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  CHECK(m.view[8192 + 16] == 0x5a && m.view[8192 + 16 + 255] == 0x5a && !m.view[8192 + 15]);
  a.post(prm::WqeOpcode::rdma_write, 256, iova + 8192 - 255, mr->rkey, false);
  CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req_err);
  CHECK(!ibv_dereg_mr(mr));
  // The same by the vendor's call; a second registration of the same memory.
  mr = mlx5dv_reg_dmabuf_mr(w->pd, 0, kBytes, 0, m.dmabuf, kAccess, 0);
  ibv_mr* read_only = reg(w, m, 0, kBytes, 0, 0);
  CHECK(mr && read_only);
  Queues c(w), d(w);
  c.connect(d.qpn);
  d.connect(c.qpn);
  c.post(prm::WqeOpcode::rdma_write, 64, 12288, mr->rkey, false);
  CHECK(c.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req);
  c.post(prm::WqeOpcode::rdma_write, 64, 12288, read_only->rkey, false);
  CHECK(c.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req_err);
  CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(read_only));
}

// Rings and doorbell records in a dma-buf, at an offset.
void queues(World* w, const Memory& m) {
  mlx5dv_devx_umem_in in = {};
  in.addr = reinterpret_cast<void*>(8192);
  in.size = Queues::kBytes;
  in.access = IBV_ACCESS_LOCAL_WRITE;
  in.pgsz_bitmap = 4096;
  in.comp_mask = MLX5DV_UMEM_MASK_DMABUF;
  in.dmabuf_fd = m.dmabuf;
  mlx5dv_devx_umem* umem = mlx5dv_devx_umem_reg_ex(w->context, &in);
  CHECK(umem);
  {
    Queues a(w, m.view + 8192, umem), b(w);
    a.connect(b.qpn);
    b.connect(a.qpn);
    for (unsigned i = 0; i < 100; ++i) {
      std::memset(a.data(), static_cast<int>(i + 1), 64);
      a.post(prm::WqeOpcode::rdma_write, 64, reinterpret_cast<std::uintptr_t>(b.data()), b.mr->rkey, i % 2);
      CHECK(a.next_cqe().get<prm::Cqe64::opcode>() == prm::CqeOpcode::req && b.data()[63] == static_cast<char>(i + 1));
    }
  }
  CHECK(!mlx5dv_devx_umem_dereg(umem));

  const auto refused = [&](int error) {
    errno = 0;
    return !mlx5dv_devx_umem_reg_ex(w->context, &in) && errno == error;
  };
  in.size = kBytes - 8192 + 1;
  CHECK(refused(EINVAL));  // past its end
  in.size = 4096;
  in.pgsz_bitmap = 512;
  CHECK(refused(EINVAL));
  in.pgsz_bitmap = 4096;
  in.access = IBV_ACCESS_REMOTE_WRITE;
  CHECK(refused(EINVAL));
  in.access = IBV_ACCESS_LOCAL_WRITE;
  in.dmabuf_fd = -1;
  CHECK(refused(EBADF));
  in.dmabuf_fd = 12345;
  CHECK(refused(EBADF));
  CHECK((in.dmabuf_fd = open("/dev/null", O_RDWR)) >= 0);
  CHECK(refused(EINVAL));  // no dma-buf
  close(in.dmabuf_fd);
}

void errors(World* w, const Memory& m) {
  CHECK(!reg(w, m, 4096, kBytes, 4096) && errno == EINVAL);  // past its end
  CHECK(!reg(w, m, ~std::uint64_t{4095}, 8192, 0) && errno == EINVAL);
  CHECK(!reg(w, m, 0, 4096, 8) && errno == EINVAL);  // offsets in the page differ
  CHECK(!reg(w, m, 0, 4096, 0, IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
  CHECK(!reg(w, m, 0, 4096, 0, kAccess | IBV_ACCESS_MW_BIND) && errno == EINVAL);
  Memory closed{m.memfd, 12345, m.view};
  CHECK(!reg(w, closed, 0, 4096, 0) && errno == EBADF);
  closed.dmabuf = open("/dev/null", O_RDWR);
  CHECK(!reg(w, closed, 0, 4096, 0) && errno == EINVAL);  // no dma-buf
  close(closed.dmabuf);
  const auto vendor = [&](std::uint64_t iova, int flags) {
    errno = 0;
    return mlx5dv_reg_dmabuf_mr(w->pd, iova % 4096, 4096, iova, m.dmabuf, kAccess, flags) ? 0 : errno;
  };
  CHECK(vendor(0, MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT) == EINVAL);
  CHECK(vendor(8, MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT) == EOPNOTSUPP);
  CHECK(vendor(0, 2) == EINVAL);
  char path[256];
  CHECK(mlx5dv_get_data_direct_sysfs_path(w->context, path, sizeof path) == ENODEV);
  if (!stand_in) return;
  // One that its exporter lets nobody write.
  Memory sealed = make_memory();
  CHECK(!fcntl(sealed.memfd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
  CHECK(!reg(w, sealed, 0, 4096, 0) && errno == EOPNOTSUPP);
  ibv_mr* mr = reg(w, sealed, 0, 4096, 0, 0);
  CHECK(mr && !ibv_dereg_mr(mr));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int fstatfs(int fd, struct statfs* out) noexcept {
  const long result = syscall(SYS_fstatfs, fd, out);
  if (!result && stand_in && fcntl(fd, F_GET_SEALS) > 0) out->f_type = DMA_BUF_MAGIC;
  return static_cast<int>(result);
}

int main() {
  World w = open_devx();
  const Memory m = make_memory();
  puts(stand_in ? "a memfd stands in for the dma-buf" : "udmabuf");
  regions(&w, m);
  queues(&w, m);
  errors(&w, m);
  close_world(&w);
  puts("ok");
  return 0;
}
