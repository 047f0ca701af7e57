// What a driver finds in the device memory: the initialisation segment, the command queue and its mailboxes.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

// What firmware says about its health.
struct HealthBuffer : Layout<0x40> {
  using assert_existptr = Field<"assert_existptr", At{0x20, 31, 0}>;
  using assert_callra = Field<"assert_callra", At{0x24, 31, 0}>;
  using time = Field<"time", At{0x2c, 31, 0}>;
  using fw_version = Field<"fw_version", At{0x30, 31, 0}>;
  using hw_id = Field<"hw_id", At{0x34, 31, 0}>;
  using rfr = Field<"rfr", At{0x38, 31, 31}>;
  using valid = Field<"valid", At{0x38, 27, 27}>;
  using severity = Field<"severity", At{0x38, 26, 24}>;
  using irisc_index = Field<"irisc_index", At{0x3c, 31, 24}>;
  using synd = Field<"synd", At{0x3c, 23, 16}>;
  using ext_synd = Field<"ext_synd", At{0x3c, 15, 0}>;
  using fields = Fields<assert_existptr, assert_callra, time, fw_version, hw_id, rfr, valid, severity, irisc_index,
                        synd, ext_synd>;
};

// Start of BAR 0 (PRM "Initialization Segment").
struct InitialSeg : Layout<0x400c> {
  using fw_rev_minor = Field<"fw_rev_minor", At{0x00, 31, 16}>;
  using fw_rev_major = Field<"fw_rev_major", At{0x00, 15, 0}>;
  using cmd_interface_rev = Field<"cmd_interface_rev", At{0x04, 31, 16}>;
  using fw_rev_subminor = Field<"fw_rev_subminor", At{0x04, 15, 0}>;
  using cmdq_phy_addr_63_32 = Field<"cmdq_phy_addr_63_32", At{0x10, 31, 0}>;
  using cmdq_phy_addr_31_12 = Field<"cmdq_phy_addr_31_12", At{0x14, 31, 12}>;
  using nic_interface = Field<"nic_interface", At{0x14, 9, 8}>;
  using log_cmdq_size = Field<"log_cmdq_size", At{0x14, 7, 4}>;
  using log_cmdq_stride = Field<"log_cmdq_stride", At{0x14, 3, 0}>;
  using command_doorbell_vector = Field<"command_doorbell_vector", At{0x18, 31, 0}>;
  using initializing = Field<"initializing", At{0x1fc, 31, 31}>;
  using nic_interface_supported = Field<"nic_interface_supported", At{0x1fc, 26, 24}>;
  using embedded_cpu = Field<"embedded_cpu", At{0x1fc, 23, 23}>;
  using health_buffer = Sub<"health_buffer", 0x200, HealthBuffer>;
  using no_dram_nic_offset = Field<"no_dram_nic_offset", At{0x240, 31, 0}>;
  using clear_int = Field<"clear_int", At{0x100c, 0, 0}>;
  using health_syndrome = Field<"health_syndrome", At{0x1010, 31, 24}>;
  using health_counter = Field<"health_counter", At{0x1010, 23, 0}>;
  using fields = Fields<fw_rev_minor, fw_rev_major, cmd_interface_rev, fw_rev_subminor, cmdq_phy_addr_63_32,
                        cmdq_phy_addr_31_12, nic_interface, log_cmdq_size, log_cmdq_stride, command_doorbell_vector,
                        initializing, nic_interface_supported, embedded_cpu, health_buffer, no_dram_nic_offset,
                        clear_int, health_syndrome, health_counter>;
};

// A slot of the command queue.
struct CmdQueueEntry : Layout<0x40> {
  using type = Field<"type", At{0x00, 31, 24}>;
  using input_length = Field<"input_length", At{0x04, 31, 0}>;
  using input_mailbox_pointer_63_32 = Field<"input_mailbox_pointer_63_32", At{0x08, 31, 0}>;
  using input_mailbox_pointer_31_9 = Field<"input_mailbox_pointer_31_9", At{0x0c, 31, 9}>;
  using command_input_inline_data = Bytes<"command_input_inline_data", 0x10, 16>;
  using command_output_inline_data = Bytes<"command_output_inline_data", 0x20, 16>;
  using output_mailbox_pointer_63_32 = Field<"output_mailbox_pointer_63_32", At{0x30, 31, 0}>;
  using output_mailbox_pointer_31_9 = Field<"output_mailbox_pointer_31_9", At{0x34, 31, 9}>;
  using output_length = Field<"output_length", At{0x38, 31, 0}>;
  using token = Field<"token", At{0x3c, 31, 24}>;
  using signature = Field<"signature", At{0x3c, 23, 16}>;
  using status = Field<"status", At{0x3c, 7, 1}>;
  using ownership = Field<"ownership", At{0x3c, 0, 0}>;
  using fields = Fields<type, input_length, input_mailbox_pointer_63_32, input_mailbox_pointer_31_9,
                        command_input_inline_data, command_output_inline_data, output_mailbox_pointer_63_32,
                        output_mailbox_pointer_31_9, output_length, token, signature, status, ownership>;
};

// A mailbox block: 512 bytes of a command, chained.
struct CmdIfBox : Layout<0x240> {
  using mailbox_data = Bytes<"mailbox_data", 0x0, 512>;
  using next_pointer_63_32 = Field<"next_pointer_63_32", At{0x230, 31, 0}>;
  using next_pointer_31_10 = Field<"next_pointer_31_10", At{0x234, 31, 10}>;
  using block_number = Field<"block_number", At{0x238, 31, 0}>;
  using token = Field<"token", At{0x23c, 23, 16}>;
  using ctrl_signature = Field<"ctrl_signature", At{0x23c, 15, 8}>;
  using signature = Field<"signature", At{0x23c, 7, 0}>;
  using fields =
      Fields<mailbox_data, next_pointer_63_32, next_pointer_31_10, block_number, token, ctrl_signature, signature>;
};

}  // namespace verbena::prm
