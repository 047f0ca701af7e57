// Port counters (register PPCNT): one group a query. Counters of 64 bits are split high, low.
// Threads: types only.
#pragma once

#include "command.h"

namespace verbena::prm {

// Counter groups: `grp` of PPCNT.
enum class PpcntGroup : std::uint8_t {
  ieee_802_3 = 0x00,
  rfc_2863 = 0x01,
  rfc_2819 = 0x02,
  rfc_3635 = 0x03,
  extended = 0x05,
  per_priority = 0x10,
  per_traffic_class = 0x11,
  physical_layer = 0x12,
  per_tc_congestion = 0x13,
  physical_statistical = 0x16,
  infiniband = 0x20,
};

// Group ieee_802_3.
struct Eth8023CntrsGrpDataLayout : Layout<0xf8> {
  using a_frames_transmitted_ok_high = Field<"a_frames_transmitted_ok_high", At{0x00, 31, 0}>;
  using a_frames_transmitted_ok_low = Field<"a_frames_transmitted_ok_low", At{0x04, 31, 0}>;
  using a_frames_received_ok_high = Field<"a_frames_received_ok_high", At{0x08, 31, 0}>;
  using a_frames_received_ok_low = Field<"a_frames_received_ok_low", At{0x0c, 31, 0}>;
  using a_frame_check_sequence_errors_high = Field<"a_frame_check_sequence_errors_high", At{0x10, 31, 0}>;
  using a_frame_check_sequence_errors_low = Field<"a_frame_check_sequence_errors_low", At{0x14, 31, 0}>;
  using a_alignment_errors_high = Field<"a_alignment_errors_high", At{0x18, 31, 0}>;
  using a_alignment_errors_low = Field<"a_alignment_errors_low", At{0x1c, 31, 0}>;
  using a_octets_transmitted_ok_high = Field<"a_octets_transmitted_ok_high", At{0x20, 31, 0}>;
  using a_octets_transmitted_ok_low = Field<"a_octets_transmitted_ok_low", At{0x24, 31, 0}>;
  using a_octets_received_ok_high = Field<"a_octets_received_ok_high", At{0x28, 31, 0}>;
  using a_octets_received_ok_low = Field<"a_octets_received_ok_low", At{0x2c, 31, 0}>;
  using a_multicast_frames_xmitted_ok_high = Field<"a_multicast_frames_xmitted_ok_high", At{0x30, 31, 0}>;
  using a_multicast_frames_xmitted_ok_low = Field<"a_multicast_frames_xmitted_ok_low", At{0x34, 31, 0}>;
  using a_broadcast_frames_xmitted_ok_high = Field<"a_broadcast_frames_xmitted_ok_high", At{0x38, 31, 0}>;
  using a_broadcast_frames_xmitted_ok_low = Field<"a_broadcast_frames_xmitted_ok_low", At{0x3c, 31, 0}>;
  using a_multicast_frames_received_ok_high = Field<"a_multicast_frames_received_ok_high", At{0x40, 31, 0}>;
  using a_multicast_frames_received_ok_low = Field<"a_multicast_frames_received_ok_low", At{0x44, 31, 0}>;
  using a_broadcast_frames_received_ok_high = Field<"a_broadcast_frames_received_ok_high", At{0x48, 31, 0}>;
  using a_broadcast_frames_received_ok_low = Field<"a_broadcast_frames_received_ok_low", At{0x4c, 31, 0}>;
  using a_in_range_length_errors_high = Field<"a_in_range_length_errors_high", At{0x50, 31, 0}>;
  using a_in_range_length_errors_low = Field<"a_in_range_length_errors_low", At{0x54, 31, 0}>;
  using a_out_of_range_length_field_high = Field<"a_out_of_range_length_field_high", At{0x58, 31, 0}>;
  using a_out_of_range_length_field_low = Field<"a_out_of_range_length_field_low", At{0x5c, 31, 0}>;
  using a_frame_too_long_errors_high = Field<"a_frame_too_long_errors_high", At{0x60, 31, 0}>;
  using a_frame_too_long_errors_low = Field<"a_frame_too_long_errors_low", At{0x64, 31, 0}>;
  using a_symbol_error_during_carrier_high = Field<"a_symbol_error_during_carrier_high", At{0x68, 31, 0}>;
  using a_symbol_error_during_carrier_low = Field<"a_symbol_error_during_carrier_low", At{0x6c, 31, 0}>;
  using a_mac_control_frames_transmitted_high = Field<"a_mac_control_frames_transmitted_high", At{0x70, 31, 0}>;
  using a_mac_control_frames_transmitted_low = Field<"a_mac_control_frames_transmitted_low", At{0x74, 31, 0}>;
  using a_mac_control_frames_received_high = Field<"a_mac_control_frames_received_high", At{0x78, 31, 0}>;
  using a_mac_control_frames_received_low = Field<"a_mac_control_frames_received_low", At{0x7c, 31, 0}>;
  using a_unsupported_opcodes_received_high = Field<"a_unsupported_opcodes_received_high", At{0x80, 31, 0}>;
  using a_unsupported_opcodes_received_low = Field<"a_unsupported_opcodes_received_low", At{0x84, 31, 0}>;
  using a_pause_mac_ctrl_frames_received_high = Field<"a_pause_mac_ctrl_frames_received_high", At{0x88, 31, 0}>;
  using a_pause_mac_ctrl_frames_received_low = Field<"a_pause_mac_ctrl_frames_received_low", At{0x8c, 31, 0}>;
  using a_pause_mac_ctrl_frames_transmitted_high = Field<"a_pause_mac_ctrl_frames_transmitted_high", At{0x90, 31, 0}>;
  using a_pause_mac_ctrl_frames_transmitted_low = Field<"a_pause_mac_ctrl_frames_transmitted_low", At{0x94, 31, 0}>;
  using fields =
      Fields<a_frames_transmitted_ok_high, a_frames_transmitted_ok_low, a_frames_received_ok_high,
             a_frames_received_ok_low, a_frame_check_sequence_errors_high, a_frame_check_sequence_errors_low,
             a_alignment_errors_high, a_alignment_errors_low, a_octets_transmitted_ok_high, a_octets_transmitted_ok_low,
             a_octets_received_ok_high, a_octets_received_ok_low, a_multicast_frames_xmitted_ok_high,
             a_multicast_frames_xmitted_ok_low, a_broadcast_frames_xmitted_ok_high, a_broadcast_frames_xmitted_ok_low,
             a_multicast_frames_received_ok_high, a_multicast_frames_received_ok_low,
             a_broadcast_frames_received_ok_high, a_broadcast_frames_received_ok_low, a_in_range_length_errors_high,
             a_in_range_length_errors_low, a_out_of_range_length_field_high, a_out_of_range_length_field_low,
             a_frame_too_long_errors_high, a_frame_too_long_errors_low, a_symbol_error_during_carrier_high,
             a_symbol_error_during_carrier_low, a_mac_control_frames_transmitted_high,
             a_mac_control_frames_transmitted_low, a_mac_control_frames_received_high,
             a_mac_control_frames_received_low, a_unsupported_opcodes_received_high, a_unsupported_opcodes_received_low,
             a_pause_mac_ctrl_frames_received_high, a_pause_mac_ctrl_frames_received_low,
             a_pause_mac_ctrl_frames_transmitted_high, a_pause_mac_ctrl_frames_transmitted_low>;
};

// Group rfc_2863.
struct Eth2863CntrsGrpDataLayout : Layout<0xf8> {
  using if_in_octets_high = Field<"if_in_octets_high", At{0x00, 31, 0}>;
  using if_in_octets_low = Field<"if_in_octets_low", At{0x04, 31, 0}>;
  using if_in_ucast_pkts_high = Field<"if_in_ucast_pkts_high", At{0x08, 31, 0}>;
  using if_in_ucast_pkts_low = Field<"if_in_ucast_pkts_low", At{0x0c, 31, 0}>;
  using if_in_discards_high = Field<"if_in_discards_high", At{0x10, 31, 0}>;
  using if_in_discards_low = Field<"if_in_discards_low", At{0x14, 31, 0}>;
  using if_in_errors_high = Field<"if_in_errors_high", At{0x18, 31, 0}>;
  using if_in_errors_low = Field<"if_in_errors_low", At{0x1c, 31, 0}>;
  using if_in_unknown_protos_high = Field<"if_in_unknown_protos_high", At{0x20, 31, 0}>;
  using if_in_unknown_protos_low = Field<"if_in_unknown_protos_low", At{0x24, 31, 0}>;
  using if_out_octets_high = Field<"if_out_octets_high", At{0x28, 31, 0}>;
  using if_out_octets_low = Field<"if_out_octets_low", At{0x2c, 31, 0}>;
  using if_out_ucast_pkts_high = Field<"if_out_ucast_pkts_high", At{0x30, 31, 0}>;
  using if_out_ucast_pkts_low = Field<"if_out_ucast_pkts_low", At{0x34, 31, 0}>;
  using if_out_discards_high = Field<"if_out_discards_high", At{0x38, 31, 0}>;
  using if_out_discards_low = Field<"if_out_discards_low", At{0x3c, 31, 0}>;
  using if_out_errors_high = Field<"if_out_errors_high", At{0x40, 31, 0}>;
  using if_out_errors_low = Field<"if_out_errors_low", At{0x44, 31, 0}>;
  using if_in_multicast_pkts_high = Field<"if_in_multicast_pkts_high", At{0x48, 31, 0}>;
  using if_in_multicast_pkts_low = Field<"if_in_multicast_pkts_low", At{0x4c, 31, 0}>;
  using if_in_broadcast_pkts_high = Field<"if_in_broadcast_pkts_high", At{0x50, 31, 0}>;
  using if_in_broadcast_pkts_low = Field<"if_in_broadcast_pkts_low", At{0x54, 31, 0}>;
  using if_out_multicast_pkts_high = Field<"if_out_multicast_pkts_high", At{0x58, 31, 0}>;
  using if_out_multicast_pkts_low = Field<"if_out_multicast_pkts_low", At{0x5c, 31, 0}>;
  using if_out_broadcast_pkts_high = Field<"if_out_broadcast_pkts_high", At{0x60, 31, 0}>;
  using if_out_broadcast_pkts_low = Field<"if_out_broadcast_pkts_low", At{0x64, 31, 0}>;
  using fields = Fields<if_in_octets_high, if_in_octets_low, if_in_ucast_pkts_high, if_in_ucast_pkts_low,
                        if_in_discards_high, if_in_discards_low, if_in_errors_high, if_in_errors_low,
                        if_in_unknown_protos_high, if_in_unknown_protos_low, if_out_octets_high, if_out_octets_low,
                        if_out_ucast_pkts_high, if_out_ucast_pkts_low, if_out_discards_high, if_out_discards_low,
                        if_out_errors_high, if_out_errors_low, if_in_multicast_pkts_high, if_in_multicast_pkts_low,
                        if_in_broadcast_pkts_high, if_in_broadcast_pkts_low, if_out_multicast_pkts_high,
                        if_out_multicast_pkts_low, if_out_broadcast_pkts_high, if_out_broadcast_pkts_low>;
};

// Group rfc_2819.
struct Eth2819CntrsGrpDataLayout : Layout<0xf8> {
  using ether_stats_drop_events_high = Field<"ether_stats_drop_events_high", At{0x00, 31, 0}>;
  using ether_stats_drop_events_low = Field<"ether_stats_drop_events_low", At{0x04, 31, 0}>;
  using ether_stats_octets_high = Field<"ether_stats_octets_high", At{0x08, 31, 0}>;
  using ether_stats_octets_low = Field<"ether_stats_octets_low", At{0x0c, 31, 0}>;
  using ether_stats_pkts_high = Field<"ether_stats_pkts_high", At{0x10, 31, 0}>;
  using ether_stats_pkts_low = Field<"ether_stats_pkts_low", At{0x14, 31, 0}>;
  using ether_stats_broadcast_pkts_high = Field<"ether_stats_broadcast_pkts_high", At{0x18, 31, 0}>;
  using ether_stats_broadcast_pkts_low = Field<"ether_stats_broadcast_pkts_low", At{0x1c, 31, 0}>;
  using ether_stats_multicast_pkts_high = Field<"ether_stats_multicast_pkts_high", At{0x20, 31, 0}>;
  using ether_stats_multicast_pkts_low = Field<"ether_stats_multicast_pkts_low", At{0x24, 31, 0}>;
  using ether_stats_crc_align_errors_high = Field<"ether_stats_crc_align_errors_high", At{0x28, 31, 0}>;
  using ether_stats_crc_align_errors_low = Field<"ether_stats_crc_align_errors_low", At{0x2c, 31, 0}>;
  using ether_stats_undersize_pkts_high = Field<"ether_stats_undersize_pkts_high", At{0x30, 31, 0}>;
  using ether_stats_undersize_pkts_low = Field<"ether_stats_undersize_pkts_low", At{0x34, 31, 0}>;
  using ether_stats_oversize_pkts_high = Field<"ether_stats_oversize_pkts_high", At{0x38, 31, 0}>;
  using ether_stats_oversize_pkts_low = Field<"ether_stats_oversize_pkts_low", At{0x3c, 31, 0}>;
  using ether_stats_fragments_high = Field<"ether_stats_fragments_high", At{0x40, 31, 0}>;
  using ether_stats_fragments_low = Field<"ether_stats_fragments_low", At{0x44, 31, 0}>;
  using ether_stats_jabbers_high = Field<"ether_stats_jabbers_high", At{0x48, 31, 0}>;
  using ether_stats_jabbers_low = Field<"ether_stats_jabbers_low", At{0x4c, 31, 0}>;
  using ether_stats_collisions_high = Field<"ether_stats_collisions_high", At{0x50, 31, 0}>;
  using ether_stats_collisions_low = Field<"ether_stats_collisions_low", At{0x54, 31, 0}>;
  using ether_stats_pkts64octets_high = Field<"ether_stats_pkts64octets_high", At{0x58, 31, 0}>;
  using ether_stats_pkts64octets_low = Field<"ether_stats_pkts64octets_low", At{0x5c, 31, 0}>;
  using ether_stats_pkts65to127octets_high = Field<"ether_stats_pkts65to127octets_high", At{0x60, 31, 0}>;
  using ether_stats_pkts65to127octets_low = Field<"ether_stats_pkts65to127octets_low", At{0x64, 31, 0}>;
  using ether_stats_pkts128to255octets_high = Field<"ether_stats_pkts128to255octets_high", At{0x68, 31, 0}>;
  using ether_stats_pkts128to255octets_low = Field<"ether_stats_pkts128to255octets_low", At{0x6c, 31, 0}>;
  using ether_stats_pkts256to511octets_high = Field<"ether_stats_pkts256to511octets_high", At{0x70, 31, 0}>;
  using ether_stats_pkts256to511octets_low = Field<"ether_stats_pkts256to511octets_low", At{0x74, 31, 0}>;
  using ether_stats_pkts512to1023octets_high = Field<"ether_stats_pkts512to1023octets_high", At{0x78, 31, 0}>;
  using ether_stats_pkts512to1023octets_low = Field<"ether_stats_pkts512to1023octets_low", At{0x7c, 31, 0}>;
  using ether_stats_pkts1024to1518octets_high = Field<"ether_stats_pkts1024to1518octets_high", At{0x80, 31, 0}>;
  using ether_stats_pkts1024to1518octets_low = Field<"ether_stats_pkts1024to1518octets_low", At{0x84, 31, 0}>;
  using ether_stats_pkts1519to2047octets_high = Field<"ether_stats_pkts1519to2047octets_high", At{0x88, 31, 0}>;
  using ether_stats_pkts1519to2047octets_low = Field<"ether_stats_pkts1519to2047octets_low", At{0x8c, 31, 0}>;
  using ether_stats_pkts2048to4095octets_high = Field<"ether_stats_pkts2048to4095octets_high", At{0x90, 31, 0}>;
  using ether_stats_pkts2048to4095octets_low = Field<"ether_stats_pkts2048to4095octets_low", At{0x94, 31, 0}>;
  using ether_stats_pkts4096to8191octets_high = Field<"ether_stats_pkts4096to8191octets_high", At{0x98, 31, 0}>;
  using ether_stats_pkts4096to8191octets_low = Field<"ether_stats_pkts4096to8191octets_low", At{0x9c, 31, 0}>;
  using ether_stats_pkts8192to10239octets_high = Field<"ether_stats_pkts8192to10239octets_high", At{0xa0, 31, 0}>;
  using ether_stats_pkts8192to10239octets_low = Field<"ether_stats_pkts8192to10239octets_low", At{0xa4, 31, 0}>;
  using fields = Fields<
      ether_stats_drop_events_high, ether_stats_drop_events_low, ether_stats_octets_high, ether_stats_octets_low,
      ether_stats_pkts_high, ether_stats_pkts_low, ether_stats_broadcast_pkts_high, ether_stats_broadcast_pkts_low,
      ether_stats_multicast_pkts_high, ether_stats_multicast_pkts_low, ether_stats_crc_align_errors_high,
      ether_stats_crc_align_errors_low, ether_stats_undersize_pkts_high, ether_stats_undersize_pkts_low,
      ether_stats_oversize_pkts_high, ether_stats_oversize_pkts_low, ether_stats_fragments_high,
      ether_stats_fragments_low, ether_stats_jabbers_high, ether_stats_jabbers_low, ether_stats_collisions_high,
      ether_stats_collisions_low, ether_stats_pkts64octets_high, ether_stats_pkts64octets_low,
      ether_stats_pkts65to127octets_high, ether_stats_pkts65to127octets_low, ether_stats_pkts128to255octets_high,
      ether_stats_pkts128to255octets_low, ether_stats_pkts256to511octets_high, ether_stats_pkts256to511octets_low,
      ether_stats_pkts512to1023octets_high, ether_stats_pkts512to1023octets_low, ether_stats_pkts1024to1518octets_high,
      ether_stats_pkts1024to1518octets_low, ether_stats_pkts1519to2047octets_high, ether_stats_pkts1519to2047octets_low,
      ether_stats_pkts2048to4095octets_high, ether_stats_pkts2048to4095octets_low,
      ether_stats_pkts4096to8191octets_high, ether_stats_pkts4096to8191octets_low,
      ether_stats_pkts8192to10239octets_high, ether_stats_pkts8192to10239octets_low>;
};

// Group rfc_3635.
struct Eth3635CntrsGrpDataLayout : Layout<0xf8> {
  using dot3stats_alignment_errors_high = Field<"dot3stats_alignment_errors_high", At{0x00, 31, 0}>;
  using dot3stats_alignment_errors_low = Field<"dot3stats_alignment_errors_low", At{0x04, 31, 0}>;
  using dot3stats_fcs_errors_high = Field<"dot3stats_fcs_errors_high", At{0x08, 31, 0}>;
  using dot3stats_fcs_errors_low = Field<"dot3stats_fcs_errors_low", At{0x0c, 31, 0}>;
  using dot3stats_single_collision_frames_high = Field<"dot3stats_single_collision_frames_high", At{0x10, 31, 0}>;
  using dot3stats_single_collision_frames_low = Field<"dot3stats_single_collision_frames_low", At{0x14, 31, 0}>;
  using dot3stats_multiple_collision_frames_high = Field<"dot3stats_multiple_collision_frames_high", At{0x18, 31, 0}>;
  using dot3stats_multiple_collision_frames_low = Field<"dot3stats_multiple_collision_frames_low", At{0x1c, 31, 0}>;
  using dot3stats_sqe_test_errors_high = Field<"dot3stats_sqe_test_errors_high", At{0x20, 31, 0}>;
  using dot3stats_sqe_test_errors_low = Field<"dot3stats_sqe_test_errors_low", At{0x24, 31, 0}>;
  using dot3stats_deferred_transmissions_high = Field<"dot3stats_deferred_transmissions_high", At{0x28, 31, 0}>;
  using dot3stats_deferred_transmissions_low = Field<"dot3stats_deferred_transmissions_low", At{0x2c, 31, 0}>;
  using dot3stats_late_collisions_high = Field<"dot3stats_late_collisions_high", At{0x30, 31, 0}>;
  using dot3stats_late_collisions_low = Field<"dot3stats_late_collisions_low", At{0x34, 31, 0}>;
  using dot3stats_excessive_collisions_high = Field<"dot3stats_excessive_collisions_high", At{0x38, 31, 0}>;
  using dot3stats_excessive_collisions_low = Field<"dot3stats_excessive_collisions_low", At{0x3c, 31, 0}>;
  using dot3stats_internal_mac_transmit_errors_high =
      Field<"dot3stats_internal_mac_transmit_errors_high", At{0x40, 31, 0}>;
  using dot3stats_internal_mac_transmit_errors_low =
      Field<"dot3stats_internal_mac_transmit_errors_low", At{0x44, 31, 0}>;
  using dot3stats_carrier_sense_errors_high = Field<"dot3stats_carrier_sense_errors_high", At{0x48, 31, 0}>;
  using dot3stats_carrier_sense_errors_low = Field<"dot3stats_carrier_sense_errors_low", At{0x4c, 31, 0}>;
  using dot3stats_frame_too_longs_high = Field<"dot3stats_frame_too_longs_high", At{0x50, 31, 0}>;
  using dot3stats_frame_too_longs_low = Field<"dot3stats_frame_too_longs_low", At{0x54, 31, 0}>;
  using dot3stats_internal_mac_receive_errors_high =
      Field<"dot3stats_internal_mac_receive_errors_high", At{0x58, 31, 0}>;
  using dot3stats_internal_mac_receive_errors_low = Field<"dot3stats_internal_mac_receive_errors_low", At{0x5c, 31, 0}>;
  using dot3stats_symbol_errors_high = Field<"dot3stats_symbol_errors_high", At{0x60, 31, 0}>;
  using dot3stats_symbol_errors_low = Field<"dot3stats_symbol_errors_low", At{0x64, 31, 0}>;
  using dot3control_in_unknown_opcodes_high = Field<"dot3control_in_unknown_opcodes_high", At{0x68, 31, 0}>;
  using dot3control_in_unknown_opcodes_low = Field<"dot3control_in_unknown_opcodes_low", At{0x6c, 31, 0}>;
  using dot3in_pause_frames_high = Field<"dot3in_pause_frames_high", At{0x70, 31, 0}>;
  using dot3in_pause_frames_low = Field<"dot3in_pause_frames_low", At{0x74, 31, 0}>;
  using dot3out_pause_frames_high = Field<"dot3out_pause_frames_high", At{0x78, 31, 0}>;
  using dot3out_pause_frames_low = Field<"dot3out_pause_frames_low", At{0x7c, 31, 0}>;
  using fields =
      Fields<dot3stats_alignment_errors_high, dot3stats_alignment_errors_low, dot3stats_fcs_errors_high,
             dot3stats_fcs_errors_low, dot3stats_single_collision_frames_high, dot3stats_single_collision_frames_low,
             dot3stats_multiple_collision_frames_high, dot3stats_multiple_collision_frames_low,
             dot3stats_sqe_test_errors_high, dot3stats_sqe_test_errors_low, dot3stats_deferred_transmissions_high,
             dot3stats_deferred_transmissions_low, dot3stats_late_collisions_high, dot3stats_late_collisions_low,
             dot3stats_excessive_collisions_high, dot3stats_excessive_collisions_low,
             dot3stats_internal_mac_transmit_errors_high, dot3stats_internal_mac_transmit_errors_low,
             dot3stats_carrier_sense_errors_high, dot3stats_carrier_sense_errors_low, dot3stats_frame_too_longs_high,
             dot3stats_frame_too_longs_low, dot3stats_internal_mac_receive_errors_high,
             dot3stats_internal_mac_receive_errors_low, dot3stats_symbol_errors_high, dot3stats_symbol_errors_low,
             dot3control_in_unknown_opcodes_high, dot3control_in_unknown_opcodes_low, dot3in_pause_frames_high,
             dot3in_pause_frames_low, dot3out_pause_frames_high, dot3out_pause_frames_low>;
};

// Group extended.
struct EthExtendedCntrsGrpDataLayout : Layout<0xf8> {
  using port_transmit_wait_high = Field<"port_transmit_wait_high", At{0x00, 31, 0}>;
  using port_transmit_wait_low = Field<"port_transmit_wait_low", At{0x04, 31, 0}>;
  using rx_buffer_almost_full_high = Field<"rx_buffer_almost_full_high", At{0x28, 31, 0}>;
  using rx_buffer_almost_full_low = Field<"rx_buffer_almost_full_low", At{0x2c, 31, 0}>;
  using rx_buffer_full_high = Field<"rx_buffer_full_high", At{0x30, 31, 0}>;
  using rx_buffer_full_low = Field<"rx_buffer_full_low", At{0x34, 31, 0}>;
  using rx_icrc_encapsulated_high = Field<"rx_icrc_encapsulated_high", At{0x38, 31, 0}>;
  using rx_icrc_encapsulated_low = Field<"rx_icrc_encapsulated_low", At{0x3c, 31, 0}>;
  using fields =
      Fields<port_transmit_wait_high, port_transmit_wait_low, rx_buffer_almost_full_high, rx_buffer_almost_full_low,
             rx_buffer_full_high, rx_buffer_full_low, rx_icrc_encapsulated_high, rx_icrc_encapsulated_low>;
};

// Group per_priority.
struct EthPerPrioGrpDataLayout : Layout<0xf8> {
  using rx_octets_high = Field<"rx_octets_high", At{0x00, 31, 0}>;
  using rx_octets_low = Field<"rx_octets_low", At{0x04, 31, 0}>;
  using rx_frames_high = Field<"rx_frames_high", At{0x20, 31, 0}>;
  using rx_frames_low = Field<"rx_frames_low", At{0x24, 31, 0}>;
  using tx_octets_high = Field<"tx_octets_high", At{0x28, 31, 0}>;
  using tx_octets_low = Field<"tx_octets_low", At{0x2c, 31, 0}>;
  using tx_frames_high = Field<"tx_frames_high", At{0x48, 31, 0}>;
  using tx_frames_low = Field<"tx_frames_low", At{0x4c, 31, 0}>;
  using rx_pause_high = Field<"rx_pause_high", At{0x50, 31, 0}>;
  using rx_pause_low = Field<"rx_pause_low", At{0x54, 31, 0}>;
  using rx_pause_duration_high = Field<"rx_pause_duration_high", At{0x58, 31, 0}>;
  using rx_pause_duration_low = Field<"rx_pause_duration_low", At{0x5c, 31, 0}>;
  using tx_pause_high = Field<"tx_pause_high", At{0x60, 31, 0}>;
  using tx_pause_low = Field<"tx_pause_low", At{0x64, 31, 0}>;
  using tx_pause_duration_high = Field<"tx_pause_duration_high", At{0x68, 31, 0}>;
  using tx_pause_duration_low = Field<"tx_pause_duration_low", At{0x6c, 31, 0}>;
  using rx_pause_transition_high = Field<"rx_pause_transition_high", At{0x70, 31, 0}>;
  using rx_pause_transition_low = Field<"rx_pause_transition_low", At{0x74, 31, 0}>;
  using rx_discards_high = Field<"rx_discards_high", At{0x78, 31, 0}>;
  using rx_discards_low = Field<"rx_discards_low", At{0x7c, 31, 0}>;
  using device_stall_minor_watermark_cnt_high = Field<"device_stall_minor_watermark_cnt_high", At{0x80, 31, 0}>;
  using device_stall_minor_watermark_cnt_low = Field<"device_stall_minor_watermark_cnt_low", At{0x84, 31, 0}>;
  using device_stall_critical_watermark_cnt_high = Field<"device_stall_critical_watermark_cnt_high", At{0x88, 31, 0}>;
  using device_stall_critical_watermark_cnt_low = Field<"device_stall_critical_watermark_cnt_low", At{0x8c, 31, 0}>;
  using fields = Fields<rx_octets_high, rx_octets_low, rx_frames_high, rx_frames_low, tx_octets_high, tx_octets_low,
                        tx_frames_high, tx_frames_low, rx_pause_high, rx_pause_low, rx_pause_duration_high,
                        rx_pause_duration_low, tx_pause_high, tx_pause_low, tx_pause_duration_high,
                        tx_pause_duration_low, rx_pause_transition_high, rx_pause_transition_low, rx_discards_high,
                        rx_discards_low, device_stall_minor_watermark_cnt_high, device_stall_minor_watermark_cnt_low,
                        device_stall_critical_watermark_cnt_high, device_stall_critical_watermark_cnt_low>;
};

// Group per_traffic_class.
struct EthPerTcPrioGrpDataLayout : Layout<0xf8> {
  using transmit_queue_high = Field<"transmit_queue_high", At{0x00, 31, 0}>;
  using transmit_queue_low = Field<"transmit_queue_low", At{0x04, 31, 0}>;
  using no_buffer_discard_uc_high = Field<"no_buffer_discard_uc_high", At{0x08, 31, 0}>;
  using no_buffer_discard_uc_low = Field<"no_buffer_discard_uc_low", At{0x0c, 31, 0}>;
  using fields = Fields<transmit_queue_high, transmit_queue_low, no_buffer_discard_uc_high, no_buffer_discard_uc_low>;
};

// Group per_tc_congestion.
struct EthPerTcCongestPrioGrpDataLayout : Layout<0xf8> {
  using wred_discard_high = Field<"wred_discard_high", At{0x00, 31, 0}>;
  using wred_discard_low = Field<"wred_discard_low", At{0x04, 31, 0}>;
  using ecn_marked_tc_high = Field<"ecn_marked_tc_high", At{0x08, 31, 0}>;
  using ecn_marked_tc_low = Field<"ecn_marked_tc_low", At{0x0c, 31, 0}>;
  using fields = Fields<wred_discard_high, wred_discard_low, ecn_marked_tc_high, ecn_marked_tc_low>;
};

// Group infiniband.
struct IbPortCntrsGrpDataLayout : Layout<0x28> {
  using symbol_error_counter = Field<"symbol_error_counter", At{0x00, 31, 16}>;
  using link_error_recovery_counter = Field<"link_error_recovery_counter", At{0x00, 15, 8}>;
  using link_downed_counter = Field<"link_downed_counter", At{0x00, 7, 0}>;
  using port_rcv_errors = Field<"port_rcv_errors", At{0x04, 31, 16}>;
  using port_rcv_remote_physical_errors = Field<"port_rcv_remote_physical_errors", At{0x04, 15, 0}>;
  using port_rcv_switch_relay_errors = Field<"port_rcv_switch_relay_errors", At{0x08, 31, 16}>;
  using port_xmit_discards = Field<"port_xmit_discards", At{0x08, 15, 0}>;
  using port_xmit_constraint_errors = Field<"port_xmit_constraint_errors", At{0x0c, 31, 24}>;
  using port_rcv_constraint_errors = Field<"port_rcv_constraint_errors", At{0x0c, 23, 16}>;
  using link_overrun_errors = Field<"link_overrun_errors", At{0x0c, 7, 0}>;
  using vl_15_dropped = Field<"vl_15_dropped", At{0x10, 15, 0}>;
  using port_xmit_wait = Field<"port_xmit_wait", At{0x24, 31, 0}>;
  using fields = Fields<symbol_error_counter, link_error_recovery_counter, link_downed_counter, port_rcv_errors,
                        port_rcv_remote_physical_errors, port_rcv_switch_relay_errors, port_xmit_discards,
                        port_xmit_constraint_errors, port_rcv_constraint_errors, link_overrun_errors, vl_15_dropped,
                        port_xmit_wait>;
};

// Group physical_layer.
struct PhysLayerCntrs : Layout<0xf8> {
  using time_since_last_clear_high = Field<"time_since_last_clear_high", At{0x00, 31, 0}>;
  using time_since_last_clear_low = Field<"time_since_last_clear_low", At{0x04, 31, 0}>;
  using symbol_errors_high = Field<"symbol_errors_high", At{0x08, 31, 0}>;
  using symbol_errors_low = Field<"symbol_errors_low", At{0x0c, 31, 0}>;
  using sync_headers_errors_high = Field<"sync_headers_errors_high", At{0x10, 31, 0}>;
  using sync_headers_errors_low = Field<"sync_headers_errors_low", At{0x14, 31, 0}>;
  using edpl_bip_errors_lane0_high = Field<"edpl_bip_errors_lane0_high", At{0x18, 31, 0}>;
  using edpl_bip_errors_lane0_low = Field<"edpl_bip_errors_lane0_low", At{0x1c, 31, 0}>;
  using edpl_bip_errors_lane1_high = Field<"edpl_bip_errors_lane1_high", At{0x20, 31, 0}>;
  using edpl_bip_errors_lane1_low = Field<"edpl_bip_errors_lane1_low", At{0x24, 31, 0}>;
  using edpl_bip_errors_lane2_high = Field<"edpl_bip_errors_lane2_high", At{0x28, 31, 0}>;
  using edpl_bip_errors_lane2_low = Field<"edpl_bip_errors_lane2_low", At{0x2c, 31, 0}>;
  using edpl_bip_errors_lane3_high = Field<"edpl_bip_errors_lane3_high", At{0x30, 31, 0}>;
  using edpl_bip_errors_lane3_low = Field<"edpl_bip_errors_lane3_low", At{0x34, 31, 0}>;
  using fc_fec_corrected_blocks_lane0_high = Field<"fc_fec_corrected_blocks_lane0_high", At{0x38, 31, 0}>;
  using fc_fec_corrected_blocks_lane0_low = Field<"fc_fec_corrected_blocks_lane0_low", At{0x3c, 31, 0}>;
  using fc_fec_corrected_blocks_lane1_high = Field<"fc_fec_corrected_blocks_lane1_high", At{0x40, 31, 0}>;
  using fc_fec_corrected_blocks_lane1_low = Field<"fc_fec_corrected_blocks_lane1_low", At{0x44, 31, 0}>;
  using fc_fec_corrected_blocks_lane2_high = Field<"fc_fec_corrected_blocks_lane2_high", At{0x48, 31, 0}>;
  using fc_fec_corrected_blocks_lane2_low = Field<"fc_fec_corrected_blocks_lane2_low", At{0x4c, 31, 0}>;
  using fc_fec_corrected_blocks_lane3_high = Field<"fc_fec_corrected_blocks_lane3_high", At{0x50, 31, 0}>;
  using fc_fec_corrected_blocks_lane3_low = Field<"fc_fec_corrected_blocks_lane3_low", At{0x54, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane0_high = Field<"fc_fec_uncorrectable_blocks_lane0_high", At{0x58, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane0_low = Field<"fc_fec_uncorrectable_blocks_lane0_low", At{0x5c, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane1_high = Field<"fc_fec_uncorrectable_blocks_lane1_high", At{0x60, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane1_low = Field<"fc_fec_uncorrectable_blocks_lane1_low", At{0x64, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane2_high = Field<"fc_fec_uncorrectable_blocks_lane2_high", At{0x68, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane2_low = Field<"fc_fec_uncorrectable_blocks_lane2_low", At{0x6c, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane3_high = Field<"fc_fec_uncorrectable_blocks_lane3_high", At{0x70, 31, 0}>;
  using fc_fec_uncorrectable_blocks_lane3_low = Field<"fc_fec_uncorrectable_blocks_lane3_low", At{0x74, 31, 0}>;
  using rs_fec_corrected_blocks_high = Field<"rs_fec_corrected_blocks_high", At{0x78, 31, 0}>;
  using rs_fec_corrected_blocks_low = Field<"rs_fec_corrected_blocks_low", At{0x7c, 31, 0}>;
  using rs_fec_uncorrectable_blocks_high = Field<"rs_fec_uncorrectable_blocks_high", At{0x80, 31, 0}>;
  using rs_fec_uncorrectable_blocks_low = Field<"rs_fec_uncorrectable_blocks_low", At{0x84, 31, 0}>;
  using rs_fec_no_errors_blocks_high = Field<"rs_fec_no_errors_blocks_high", At{0x88, 31, 0}>;
  using rs_fec_no_errors_blocks_low = Field<"rs_fec_no_errors_blocks_low", At{0x8c, 31, 0}>;
  using rs_fec_single_error_blocks_high = Field<"rs_fec_single_error_blocks_high", At{0x90, 31, 0}>;
  using rs_fec_single_error_blocks_low = Field<"rs_fec_single_error_blocks_low", At{0x94, 31, 0}>;
  using rs_fec_corrected_symbols_total_high = Field<"rs_fec_corrected_symbols_total_high", At{0x98, 31, 0}>;
  using rs_fec_corrected_symbols_total_low = Field<"rs_fec_corrected_symbols_total_low", At{0x9c, 31, 0}>;
  using rs_fec_corrected_symbols_lane0_high = Field<"rs_fec_corrected_symbols_lane0_high", At{0xa0, 31, 0}>;
  using rs_fec_corrected_symbols_lane0_low = Field<"rs_fec_corrected_symbols_lane0_low", At{0xa4, 31, 0}>;
  using rs_fec_corrected_symbols_lane1_high = Field<"rs_fec_corrected_symbols_lane1_high", At{0xa8, 31, 0}>;
  using rs_fec_corrected_symbols_lane1_low = Field<"rs_fec_corrected_symbols_lane1_low", At{0xac, 31, 0}>;
  using rs_fec_corrected_symbols_lane2_high = Field<"rs_fec_corrected_symbols_lane2_high", At{0xb0, 31, 0}>;
  using rs_fec_corrected_symbols_lane2_low = Field<"rs_fec_corrected_symbols_lane2_low", At{0xb4, 31, 0}>;
  using rs_fec_corrected_symbols_lane3_high = Field<"rs_fec_corrected_symbols_lane3_high", At{0xb8, 31, 0}>;
  using rs_fec_corrected_symbols_lane3_low = Field<"rs_fec_corrected_symbols_lane3_low", At{0xbc, 31, 0}>;
  using link_down_events = Field<"link_down_events", At{0xc0, 31, 0}>;
  using successful_recovery_events = Field<"successful_recovery_events", At{0xc4, 31, 0}>;
  using fields = Fields<
      time_since_last_clear_high, time_since_last_clear_low, symbol_errors_high, symbol_errors_low,
      sync_headers_errors_high, sync_headers_errors_low, edpl_bip_errors_lane0_high, edpl_bip_errors_lane0_low,
      edpl_bip_errors_lane1_high, edpl_bip_errors_lane1_low, edpl_bip_errors_lane2_high, edpl_bip_errors_lane2_low,
      edpl_bip_errors_lane3_high, edpl_bip_errors_lane3_low, fc_fec_corrected_blocks_lane0_high,
      fc_fec_corrected_blocks_lane0_low, fc_fec_corrected_blocks_lane1_high, fc_fec_corrected_blocks_lane1_low,
      fc_fec_corrected_blocks_lane2_high, fc_fec_corrected_blocks_lane2_low, fc_fec_corrected_blocks_lane3_high,
      fc_fec_corrected_blocks_lane3_low, fc_fec_uncorrectable_blocks_lane0_high, fc_fec_uncorrectable_blocks_lane0_low,
      fc_fec_uncorrectable_blocks_lane1_high, fc_fec_uncorrectable_blocks_lane1_low,
      fc_fec_uncorrectable_blocks_lane2_high, fc_fec_uncorrectable_blocks_lane2_low,
      fc_fec_uncorrectable_blocks_lane3_high, fc_fec_uncorrectable_blocks_lane3_low, rs_fec_corrected_blocks_high,
      rs_fec_corrected_blocks_low, rs_fec_uncorrectable_blocks_high, rs_fec_uncorrectable_blocks_low,
      rs_fec_no_errors_blocks_high, rs_fec_no_errors_blocks_low, rs_fec_single_error_blocks_high,
      rs_fec_single_error_blocks_low, rs_fec_corrected_symbols_total_high, rs_fec_corrected_symbols_total_low,
      rs_fec_corrected_symbols_lane0_high, rs_fec_corrected_symbols_lane0_low, rs_fec_corrected_symbols_lane1_high,
      rs_fec_corrected_symbols_lane1_low, rs_fec_corrected_symbols_lane2_high, rs_fec_corrected_symbols_lane2_low,
      rs_fec_corrected_symbols_lane3_high, rs_fec_corrected_symbols_lane3_low, link_down_events,
      successful_recovery_events>;
};

// Group physical_statistical.
struct PhysLayerStatisticalCntrs : Layout<0xf8> {
  using time_since_last_clear_high = Field<"time_since_last_clear_high", At{0x00, 31, 0}>;
  using time_since_last_clear_low = Field<"time_since_last_clear_low", At{0x04, 31, 0}>;
  using phy_received_bits_high = Field<"phy_received_bits_high", At{0x08, 31, 0}>;
  using phy_received_bits_low = Field<"phy_received_bits_low", At{0x0c, 31, 0}>;
  using phy_symbol_errors_high = Field<"phy_symbol_errors_high", At{0x10, 31, 0}>;
  using phy_symbol_errors_low = Field<"phy_symbol_errors_low", At{0x14, 31, 0}>;
  using phy_corrected_bits_high = Field<"phy_corrected_bits_high", At{0x18, 31, 0}>;
  using phy_corrected_bits_low = Field<"phy_corrected_bits_low", At{0x1c, 31, 0}>;
  using phy_corrected_bits_lane0_high = Field<"phy_corrected_bits_lane0_high", At{0x20, 31, 0}>;
  using phy_corrected_bits_lane0_low = Field<"phy_corrected_bits_lane0_low", At{0x24, 31, 0}>;
  using phy_corrected_bits_lane1_high = Field<"phy_corrected_bits_lane1_high", At{0x28, 31, 0}>;
  using phy_corrected_bits_lane1_low = Field<"phy_corrected_bits_lane1_low", At{0x2c, 31, 0}>;
  using phy_corrected_bits_lane2_high = Field<"phy_corrected_bits_lane2_high", At{0x30, 31, 0}>;
  using phy_corrected_bits_lane2_low = Field<"phy_corrected_bits_lane2_low", At{0x34, 31, 0}>;
  using phy_corrected_bits_lane3_high = Field<"phy_corrected_bits_lane3_high", At{0x38, 31, 0}>;
  using phy_corrected_bits_lane3_low = Field<"phy_corrected_bits_lane3_low", At{0x3c, 31, 0}>;
  using fields = Fields<time_since_last_clear_high, time_since_last_clear_low, phy_received_bits_high,
                        phy_received_bits_low, phy_symbol_errors_high, phy_symbol_errors_low, phy_corrected_bits_high,
                        phy_corrected_bits_low, phy_corrected_bits_lane0_high, phy_corrected_bits_lane0_low,
                        phy_corrected_bits_lane1_high, phy_corrected_bits_lane1_low, phy_corrected_bits_lane2_high,
                        phy_corrected_bits_lane2_low, phy_corrected_bits_lane3_high, phy_corrected_bits_lane3_low>;
};

// The counters, by group.
struct EthCntrsGrpDataLayoutAuto : Layout<0xf8> {
  using eth_802_3_cntrs_grp_data_layout = Sub<"eth_802_3_cntrs_grp_data_layout", 0x0, Eth8023CntrsGrpDataLayout>;
  using eth_2863_cntrs_grp_data_layout = Sub<"eth_2863_cntrs_grp_data_layout", 0x0, Eth2863CntrsGrpDataLayout>;
  using eth_2819_cntrs_grp_data_layout = Sub<"eth_2819_cntrs_grp_data_layout", 0x0, Eth2819CntrsGrpDataLayout>;
  using eth_3635_cntrs_grp_data_layout = Sub<"eth_3635_cntrs_grp_data_layout", 0x0, Eth3635CntrsGrpDataLayout>;
  using eth_extended_cntrs_grp_data_layout =
      Sub<"eth_extended_cntrs_grp_data_layout", 0x0, EthExtendedCntrsGrpDataLayout>;
  using eth_per_prio_grp_data_layout = Sub<"eth_per_prio_grp_data_layout", 0x0, EthPerPrioGrpDataLayout>;
  using eth_per_tc_prio_grp_data_layout = Sub<"eth_per_tc_prio_grp_data_layout", 0x0, EthPerTcPrioGrpDataLayout>;
  using eth_per_tc_congest_prio_grp_data_layout =
      Sub<"eth_per_tc_congest_prio_grp_data_layout", 0x0, EthPerTcCongestPrioGrpDataLayout>;
  using ib_port_cntrs_grp_data_layout = Sub<"ib_port_cntrs_grp_data_layout", 0x0, IbPortCntrsGrpDataLayout>;
  using phys_layer_cntrs = Sub<"phys_layer_cntrs", 0x0, PhysLayerCntrs>;
  using phys_layer_statistical_cntrs = Sub<"phys_layer_statistical_cntrs", 0x0, PhysLayerStatisticalCntrs>;
  using fields =
      Fields<eth_802_3_cntrs_grp_data_layout, eth_2863_cntrs_grp_data_layout, eth_2819_cntrs_grp_data_layout,
             eth_3635_cntrs_grp_data_layout, eth_extended_cntrs_grp_data_layout, eth_per_prio_grp_data_layout,
             eth_per_tc_prio_grp_data_layout, eth_per_tc_congest_prio_grp_data_layout, ib_port_cntrs_grp_data_layout,
             phys_layer_cntrs, phys_layer_statistical_cntrs>;
};

// Port counters register.
struct PpcntReg : Layout<0x100> {
  using swid = Field<"swid", At{0x00, 31, 24}>;
  using local_port = Field<"local_port", At{0x00, 23, 16}>;
  using pnat = Field<"pnat", At{0x00, 15, 14}>;
  using grp = Field<"grp", At{0x00, 5, 0}, PpcntGroup>;
  using clr = Field<"clr", At{0x04, 31, 31}>;
  using prio_tc = Field<"prio_tc", At{0x04, 2, 0}>;
  using counter_set = Sub<"counter_set", 0x8, EthCntrsGrpDataLayoutAuto>;
  using fields = Fields<swid, local_port, pnat, grp, clr, prio_tc, counter_set>;
};

}  // namespace verbena::prm
