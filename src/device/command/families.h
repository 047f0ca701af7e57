// Each object family enters its commands; defined beside the handlers.
#pragma once

namespace verbena::device::command {

class Registry;

void add_hca_commands(Registry& r);       // hca_commands.cc
void add_domain_commands(Registry& r);    // domain_commands.cc: PD, transport domain, UAR
void add_uctx_commands(Registry& r);      // uctx_commands.cc: UCTX, UMEM
void add_mkey_commands(Registry& r);      // mkey_commands.cc
void add_eq_commands(Registry& r);        // eq_commands.cc
void add_cq_commands(Registry& r);        // cq_commands.cc
void add_srq_commands(Registry& r);       // srq_commands.cc: SRQ, RMP
void add_xrc_commands(Registry& r);       // xrc_commands.cc: XRC SRQ, XRQ
void add_qp_commands(Registry& r);        // qp_commands.cc
void add_mcg_commands(Registry& r);       // mcg_commands.cc
void add_vport_commands(Registry& r);     // vport_commands.cc
void add_roce_commands(Registry& r);      // roce_commands.cc
void add_counter_commands(Registry& r);   // counter_commands.cc
void add_register_commands(Registry& r);  // register_commands.cc
void add_lag_commands(Registry& r);       // lag_commands.cc
void add_memic_commands(Registry& r);     // memic_commands.cc
void add_qos_commands(Registry& r);       // qos_commands.cc: packet pacing table, scheduling elements
void add_raw_commands(Registry& r);       // raw_commands.cc: TIS, SQ
void add_receive_commands(Registry& r);   // receive_commands.cc: RQ, RQT, TIR
void add_flow_commands(Registry& r);      // flow_commands.cc: flow tables, groups, entries, counters
void add_general_commands(Registry& r);   // general_commands.cc

}  // namespace verbena::device::command
