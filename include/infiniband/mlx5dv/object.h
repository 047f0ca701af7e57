/* mlx5 direct verbs. What an object is made of: rings, doorbell records, numbers (mlx5dv_init_obj); device memory;
 * allocator tags. */
#ifndef VERBENA_INFINIBAND_MLX5DV_OBJECT_H_
#define VERBENA_INFINIBAND_MLX5DV_OBJECT_H_

#include <infiniband/mlx5_api.h>
#include <infiniband/mlx5dv/base.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLX5DV_RES_TYPE_QP ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 1)

#define MLX5DV_RES_TYPE_RWQ ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 2)

#define MLX5DV_RES_TYPE_DBR ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 3)

#define MLX5DV_RES_TYPE_SRQ ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 4)

#define MLX5DV_RES_TYPE_CQ ((uint64_t)RDMA_DRIVER_MLX5 << 32 | 5)

enum {
  MLX5_RCV_DBR = 0,
  MLX5_SND_DBR = 1,
};

struct mlx5dv_devx_obj;

enum mlx5dv_qp_comp_mask {
  MLX5DV_QP_MASK_UAR_MMAP_OFFSET = 1 << 0,
  MLX5DV_QP_MASK_RAW_QP_HANDLES = 1 << 1,
  MLX5DV_QP_MASK_RAW_QP_TIR_ADDR = 1 << 2,
};

struct mlx5dv_qp {
  __be32* dbrec;
  struct {
    void* buf;
    uint32_t wqe_cnt;
    uint32_t stride;
  } sq;
  struct {
    void* buf;
    uint32_t wqe_cnt;
    uint32_t stride;
  } rq;
  struct {
    void* reg;
    uint32_t size;
  } bf;
  uint64_t comp_mask;
  off_t uar_mmap_offset;
  uint32_t tirn;
  uint32_t tisn;
  uint32_t rqn;
  uint32_t sqn;
  uint64_t tir_icm_addr;
};

struct mlx5dv_cq {
  void* buf;
  __be32* dbrec;
  uint32_t cqe_cnt;
  uint32_t cqe_size;
  void* cq_uar;
  uint32_t cqn;
  uint64_t comp_mask;
};

enum mlx5dv_srq_comp_mask {
  MLX5DV_SRQ_MASK_SRQN = 1 << 0,
};

struct mlx5dv_srq {
  void* buf;
  __be32* dbrec;
  uint32_t stride;
  uint32_t head;
  uint32_t tail;
  uint64_t comp_mask;
  uint32_t srqn;
};

struct mlx5dv_rwq {
  void* buf;
  __be32* dbrec;
  uint32_t wqe_cnt;
  uint32_t stride;
  uint64_t comp_mask;
};

struct mlx5dv_alloc_dm_attr {
  enum mlx5dv_alloc_dm_type type;
  uint64_t comp_mask;
};

enum mlx5dv_dm_comp_mask {
  MLX5DV_DM_MASK_REMOTE_VA = 1 << 0,
};

struct mlx5dv_dm {
  void* buf;
  uint64_t length;
  uint64_t comp_mask;
  uint64_t remote_va;
};

struct ibv_dm* mlx5dv_alloc_dm(struct ibv_context* context, struct ibv_alloc_dm_attr* dm_attr,
                               struct mlx5dv_alloc_dm_attr* mlx5_dm_attr);

void* mlx5dv_dm_map_op_addr(struct ibv_dm* dm, uint8_t op);

struct ibv_mr* mlx5dv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                    int access, int mlx5_access);

int mlx5dv_get_data_direct_sysfs_path(struct ibv_context* context, char* buf, size_t buf_len);

struct mlx5_wqe_av;

struct mlx5dv_ah {
  struct mlx5_wqe_av* av;
  uint64_t comp_mask;
};

struct mlx5dv_pd {
  uint32_t pdn;
  uint64_t comp_mask;
};

struct mlx5dv_devx {
  uint32_t handle;
};

struct mlx5dv_obj {
  struct {
    struct ibv_qp* in;
    struct mlx5dv_qp* out;
  } qp;
  struct {
    struct ibv_cq* in;
    struct mlx5dv_cq* out;
  } cq;
  struct {
    struct ibv_srq* in;
    struct mlx5dv_srq* out;
  } srq;
  struct {
    struct ibv_wq* in;
    struct mlx5dv_rwq* out;
  } rwq;
  struct {
    struct ibv_dm* in;
    struct mlx5dv_dm* out;
  } dm;
  struct {
    struct ibv_ah* in;
    struct mlx5dv_ah* out;
  } ah;
  struct {
    struct ibv_pd* in;
    struct mlx5dv_pd* out;
  } pd;
  struct {
    struct mlx5dv_devx_obj* in;
    struct mlx5dv_devx* out;
  } devx;
};

enum mlx5dv_obj_type {
  MLX5DV_OBJ_QP = 1 << 0,
  MLX5DV_OBJ_CQ = 1 << 1,
  MLX5DV_OBJ_SRQ = 1 << 2,
  MLX5DV_OBJ_RWQ = 1 << 3,
  MLX5DV_OBJ_DM = 1 << 4,
  MLX5DV_OBJ_AH = 1 << 5,
  MLX5DV_OBJ_PD = 1 << 6,
  MLX5DV_OBJ_DEVX = 1 << 7,
};

int mlx5dv_init_obj(struct mlx5dv_obj* obj, uint64_t obj_type);

#ifdef __cplusplus
}
#endif

#endif
