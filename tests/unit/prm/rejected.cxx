// Uses of layouts that must not compile; target.cmake compiles one case at a time and looks for the message.
#include "prm/cq.h"
#include "prm/qp.h"

using namespace verbena::prm;

#ifdef CASE_field_outside
std::uint32_t field_outside(ConstView<CommandOut> v) { return v.get<Cqc::dbr_addr>(); }
#endif
#ifdef CASE_field_of_another
std::uint32_t field_of_another(ConstView<Qpc> v) { return v.get<Ads::udp_sport>(); }
#endif
#ifdef CASE_odd_dword
using bad = Field<"bad", At{0x02, 31, 16}>;
std::uint32_t odd_dword(const std::byte* p) { return bad::get(p); }
#endif
#ifdef CASE_bits_reversed
using bad = Field<"bad", At{0x00, 0, 31}>;
std::uint32_t bits_reversed(const std::byte* p) { return bad::get(p); }
#endif
#ifdef CASE_odd_size
struct Bad : Layout<0x7> {};
std::size_t odd_size() { return Bad::size; }
#endif
#ifdef CASE_wrong_type
void wrong_type(View<CommandIn> v) { v.set<CommandIn::opcode>(Status::ok); }
#endif

std::uint32_t accepted(ConstView<Qpc> v) { return v.get<Qpc::pd>(); }
