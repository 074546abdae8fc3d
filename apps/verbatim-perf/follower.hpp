// The side that is measured against: it does what the other one orders.
#pragma once

#include "common/handover.hpp"
#include "peer.hpp"

namespace verbatim::perf {

// Until the other side has finished. `lines`: where both run on this host, else null. Throws Error when something fails
// on either side; the other one has been told then.
void follow_orders(Peer& peer, apps::HandoverLines* lines, const std::function<void()>& look_after);

}  // namespace verbatim::perf
