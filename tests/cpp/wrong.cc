// What must not compile: WRONG chooses the mistake. 0 is none, and compiles.
#include <verbena/handles.h>

namespace prm = verbena::prm;
using namespace verbena;

void mistakes(const Context& context, Qp& qp) {
  using In = prm::Rts2rtsQpIn;
  Command<In> change;
  change.sub<In::qpc>().sub<prm::Qpc::primary_address_path>().set<prm::Ads::udp_sport>(0xc123);
  qp.modify(change);
  (void)context;
#if WRONG == 1  // a field of another layout
  change.set<prm::Ads::udp_sport>(0xc123);
#elif WRONG == 2  // deeper down
  change.sub<In::qpc>().set<prm::Ads::udp_sport>(0xc123);
#elif WRONG == 3  // no such field
  change.set<In::udp_sport>(0xc123);
#elif WRONG == 4  // a value of another type
  change.sub<In::qpc>().set<prm::Qpc::mtu>(prm::QpState::rts);
#elif WRONG == 5  // a command on a queue pair, sent as one about the device
  context.general(change);
#elif WRONG == 6  // a change is not a query
  qp.query(change);
#elif WRONG == 7  // makes no object
  Object object(context, change);
#elif WRONG == 8  // the driver's own command
  context.general(Command<prm::InitHcaIn>());
#elif WRONG == 9  // handles are not copied
  Qp copy(qp);
#endif
}
