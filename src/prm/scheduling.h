// Scheduling elements: the tree that shapes what queues send. As commands of their own, and as a general object.
// Threads: types only.
#pragma once

#include "command.h"
#include "general_object.h"

namespace verbena::prm {

enum class SchedulingHierarchy : std::uint8_t { e_switch = 2, nic = 3 };
enum class SchedulingElementType : std::uint8_t { tsar = 0, vport = 1, vport_tc = 2, para_vport_tc = 3, queue_group = 4 };
// How a TSAR (transmit scheduling arbiter) chooses among its children.
enum class TsarType : std::uint8_t { dwrr = 0, round_robin = 1, ets = 2 };

// Bits of modify_bitmask and modify_field_select.
struct SchedulingSelect {
  static constexpr std::uint32_t bw_share = 1u << 0;
  static constexpr std::uint32_t max_average_bw = 1u << 1;
};

// Scheduling context.
struct SchedulingContext : Layout<0x40> {
  using element_type = Field<"element_type", At{0x00, 31, 24}>;
  using element_attributes = Field<"element_attributes", At{0x04, 31, 0}>;
  using parent_element_id = Field<"parent_element_id", At{0x08, 31, 0}>;
  using bw_share = Field<"bw_share", At{0x14, 31, 0}>;
  using max_average_bw = Field<"max_average_bw", At{0x18, 31, 0}>;
  using fields = Fields<element_type, element_attributes, parent_element_id, bw_share, max_average_bw>;
};
// element_attributes of a TSAR.
inline constexpr unsigned kTsarTypeShift = 16, kTsarTypeMask = 0xff;

// CREATE_SCHEDULING_ELEMENT: request.
struct CreateSchedulingElementIn : Layout<0x80> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using scheduling_hierarchy = Field<"scheduling_hierarchy", At{0x08, 31, 24}>;
  using scheduling_context = Sub<"scheduling_context", 0x20, SchedulingContext>;
  using fields = Fields<opcode, op_mod, scheduling_hierarchy, scheduling_context>;
};

// CREATE_SCHEDULING_ELEMENT: reply.
struct CreateSchedulingElementOut : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using scheduling_element_id = Field<"scheduling_element_id", At{0x10, 31, 0}>;
  using fields = Fields<status, syndrome, scheduling_element_id>;
};

// DESTROY_SCHEDULING_ELEMENT: request.
struct DestroySchedulingElementIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using scheduling_hierarchy = Field<"scheduling_hierarchy", At{0x08, 31, 24}>;
  using scheduling_element_id = Field<"scheduling_element_id", At{0x0c, 31, 0}>;
  using fields = Fields<opcode, op_mod, scheduling_hierarchy, scheduling_element_id>;
};

// DESTROY_SCHEDULING_ELEMENT: reply.
struct DestroySchedulingElementOut : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using fields = Fields<status, syndrome>;
};

// QUERY_SCHEDULING_ELEMENT: request.
struct QuerySchedulingElementIn : Layout<0x40> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using scheduling_hierarchy = Field<"scheduling_hierarchy", At{0x08, 31, 24}>;
  using scheduling_element_id = Field<"scheduling_element_id", At{0x0c, 31, 0}>;
  using fields = Fields<opcode, op_mod, scheduling_hierarchy, scheduling_element_id>;
};

// QUERY_SCHEDULING_ELEMENT: reply. (The header has a request's head here; replies begin like all others.)
struct QuerySchedulingElementOut : Layout<0x80> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using scheduling_context = Sub<"scheduling_context", 0x20, SchedulingContext>;
  using fields = Fields<status, syndrome, scheduling_context>;
};

// MODIFY_SCHEDULING_ELEMENT: request.
struct ModifySchedulingElementIn : Layout<0x80> {
  using opcode = Field<"opcode", At{0x00, 31, 16}, Opcode>;
  using op_mod = Field<"op_mod", At{0x04, 15, 0}>;
  using scheduling_hierarchy = Field<"scheduling_hierarchy", At{0x08, 31, 24}>;
  using scheduling_element_id = Field<"scheduling_element_id", At{0x0c, 31, 0}>;
  using modify_bitmask = Field<"modify_bitmask", At{0x14, 31, 0}>;
  using scheduling_context = Sub<"scheduling_context", 0x20, SchedulingContext>;
  using fields =
      Fields<opcode, op_mod, scheduling_hierarchy, scheduling_element_id, modify_bitmask, scheduling_context>;
};

// MODIFY_SCHEDULING_ELEMENT: reply.
struct ModifySchedulingElementOut : Layout<0x40> {
  using status = Field<"status", At{0x00, 31, 24}, Status>;
  using syndrome = Field<"syndrome", At{0x04, 31, 0}>;
  using fields = Fields<status, syndrome>;
};

// The general object SCHEDULING_ELEMENT: what follows the commands' heads.
struct SchedElem : Layout<0x80> {
  using modify_field_select = Field64<"modify_field_select", 0x00>;
  using scheduling_hierarchy = Field<"scheduling_hierarchy", At{0x08, 31, 24}>;
  using sched_context = Sub<"sched_context", 0x20, SchedulingContext>;
  using fields = Fields<modify_field_select, scheduling_hierarchy, sched_context>;
};

}  // namespace verbena::prm
