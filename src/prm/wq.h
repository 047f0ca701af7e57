// The work queue context that RQ, SQ, RMP and XRQ contexts embed.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

// Linked list: receives may complete out of order (SRQ). Cyclic: in order.
enum class WqType : std::uint8_t { linked_list = 0x0, cyclic = 0x1, linked_list_striding = 0x2, cyclic_striding = 0x3 };
enum class EndPaddingMode : std::uint8_t { as_is = 0x0, align = 0x1 };
enum class TimestampFormat : std::uint8_t { free_running = 0x0, standard = 0x1, real_time = 0x2 };

// Work queue context (PRM "Work Queue"): shared by RQ, SQ, RMP, XRQ.
struct Wq : Layout<0xc0> {
  using wq_type = Field<"wq_type", At{0x00, 31, 28}, WqType>;
  using wq_signature = Field<"wq_signature", At{0x00, 27, 27}>;
  using end_padding_mode = Field<"end_padding_mode", At{0x00, 26, 25}, EndPaddingMode>;
  using cd_slave = Field<"cd_slave", At{0x00, 24, 24}>;
  using hds_skip_first_sge = Field<"hds_skip_first_sge", At{0x04, 31, 31}>;
  using log2_hds_buf_size = Field<"log2_hds_buf_size", At{0x04, 30, 28}>;
  using page_offset = Field<"page_offset", At{0x04, 20, 16}>;
  using lwm = Field<"lwm", At{0x04, 15, 0}>;
  using pd = Field<"pd", At{0x08, 23, 0}>;
  using uar_page = Field<"uar_page", At{0x0c, 23, 0}>;
  using dbr_addr = Field64<"dbr_addr", 0x10>;
  using hw_counter = Field<"hw_counter", At{0x18, 31, 0}>;
  using sw_counter = Field<"sw_counter", At{0x1c, 31, 0}>;
  using log_wq_stride = Field<"log_wq_stride", At{0x20, 19, 16}>;
  using log_wq_pg_sz = Field<"log_wq_pg_sz", At{0x20, 12, 8}>;
  using log_wq_sz = Field<"log_wq_sz", At{0x20, 4, 0}>;
  using dbr_umem_valid = Field<"dbr_umem_valid", At{0x24, 31, 31}>;
  using wq_umem_valid = Field<"wq_umem_valid", At{0x24, 30, 30}>;
  using log_hairpin_num_packets = Field<"log_hairpin_num_packets", At{0x24, 28, 24}>;
  using log_hairpin_data_sz = Field<"log_hairpin_data_sz", At{0x24, 20, 16}>;
  using log_wqe_num_of_strides = Field<"log_wqe_num_of_strides", At{0x24, 11, 8}>;
  using two_byte_shift_en = Field<"two_byte_shift_en", At{0x24, 7, 7}>;
  using log_wqe_stride_size = Field<"log_wqe_stride_size", At{0x24, 2, 0}>;
  using dbr_umem_id = Field<"dbr_umem_id", At{0x28, 31, 0}>;
  using wq_umem_id = Field<"wq_umem_id", At{0x2c, 31, 0}>;
  using wq_umem_offset = Field64<"wq_umem_offset", 0x30>;
  using headers_mkey = Field<"headers_mkey", At{0x38, 31, 0}>;
  using shampo_enable = Field<"shampo_enable", At{0x3c, 31, 31}>;
  using log_reservation_size = Field<"log_reservation_size", At{0x3c, 26, 24}>;
  using log_max_num_of_packets_per_reservation = Field<"log_max_num_of_packets_per_reservation", At{0x3c, 18, 16}>;
  using log_headers_entry_size = Field<"log_headers_entry_size", At{0x3c, 9, 8}>;
  using log_headers_buffer_entry_num = Field<"log_headers_buffer_entry_num", At{0x3c, 3, 0}>;
  using pas = Array<"pas", 0xc0, Pas>;
  using fields =
      Fields<wq_type, wq_signature, end_padding_mode, cd_slave, hds_skip_first_sge, log2_hds_buf_size, page_offset, lwm,
             pd, uar_page, dbr_addr, hw_counter, sw_counter, log_wq_stride, log_wq_pg_sz, log_wq_sz, dbr_umem_valid,
             wq_umem_valid, log_hairpin_num_packets, log_hairpin_data_sz, log_wqe_num_of_strides, two_byte_shift_en,
             log_wqe_stride_size, dbr_umem_id, wq_umem_id, wq_umem_offset, headers_mkey, shampo_enable,
             log_reservation_size, log_max_num_of_packets_per_reservation, log_headers_entry_size,
             log_headers_buffer_entry_num, pas>;
};

}  // namespace verbena::prm
