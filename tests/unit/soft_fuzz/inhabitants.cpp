#include "unit/soft_fuzz/inhabitants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace verbatim::soft::fuzz {
namespace {

constexpr int every_access =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
constexpr std::uint32_t no_key = 0xdead00;
constexpr std::uint64_t shared_mark = 1ULL << 63;  // in the wr_id of a shared receive
constexpr std::uint32_t grh_bytes = 40;

DeviceConfig configuration() {
  DeviceConfig config;
  GidConfig gid;
  gid.gid.raw[0] = 0xfe;
  gid.gid.raw[15] = 1;
  config.ports.front().gids = {gid};
  return config;
}

struct FuzzHandle : ibv_ah {
  AddressVector address;
};
const AddressVector& address_of(const ibv_ah& handle) {
  return static_cast<const FuzzHandle&>(handle).address;
}

ibv_ah_attr peer_attributes() {
  ibv_ah_attr way{};
  way.is_global = 1;
  way.port_num = 1;
  way.grh.dgid.raw[0] = 0xfe;
  return way;
}

bool is_read_or_atomic_opcode(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_RDMA_READ || opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

}  // namespace

Inhabitants::Inhabitants(std::uint64_t seed)
    : random(seed), wire(arena, seed ^ 0xabcd), engine(configuration(), wire, clock, events) {
  grant_all();
  populate();
}

Inhabitants::~Inhabitants() {
  for (const auto& queue_pair : queue_pairs) engine.remove(*queue_pair);
}

void Inhabitants::grant_all() {
  const auto grant = [&](Zone zone, std::uint32_t domain, int access) {
    return engine.regions.add(domain, arena.address(zone.offset), zone.bytes, static_cast<std::uint32_t>(access))
        .value();
  };
  keys.remote = grant(remote_zone, own_domain, every_access);
  keys.read_only = grant(read_only_zone, own_domain, IBV_ACCESS_REMOTE_READ);
  keys.foreign = grant(foreign_zone, foreign_domain, every_access);
  keys.gone = grant(gone_zone, own_domain, every_access);
  keys.receive = grant(receive_zone, own_domain, IBV_ACCESS_LOCAL_WRITE);
  keys.landing = grant(landing_zone, own_domain, IBV_ACCESS_LOCAL_WRITE);
  keys.source = grant(source_zone, own_domain, 0);
  engine.regions.remove(keys.gone);
  wire.withdrawn.insert(keys.gone);
}

void Inhabitants::populate() {
  for (int i = 0; i < 4; ++i) add(IBV_QPT_RC, false);
  for (int i = 0; i < 2; ++i) add(IBV_QPT_RC, true);
  for (int i = 0; i < 2; ++i) add(IBV_QPT_UC, false);
  add(IBV_QPT_UD, false);
  add(IBV_QPT_UD, true);
  books_.resize(queue_pairs.size());
}

QueuePair& Inhabitants::add(ibv_qp_type type, bool shared) {
  QueuePair::Settings settings;
  settings.type = type;
  settings.domain = own_domain;
  settings.send_cq = settings.receive_cq = &cq_;
  settings.srq = shared ? &srq_ : nullptr;
  settings.cap = {
      .max_send_wr = depth, .max_recv_wr = depth, .max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64};
  queue_pairs.push_back(std::make_unique<QueuePair>(settings));
  QueuePair& queue_pair = *queue_pairs.back();
  if (!engine.add(queue_pair)) complain("no room for a queue pair");
  connect(queue_pair, peer_qpn, false, Psn(static_cast<std::uint32_t>(random.bits())),
          Psn(static_cast<std::uint32_t>(random.bits())));
  return queue_pair;
}

std::size_t Inhabitants::index_of(std::uint32_t qpn) const {
  return qpn - engine.config.first_qpn;
}

// -- what an application does
// ------------------------------------------------------------------------------------------

void Inhabitants::connect(QueuePair& queue_pair, std::uint32_t peer, bool all_the_way, Psn receive, Psn send) {
  const bool datagrams = queue_pair.settings.type == IBV_QPT_UD;
  const bool reliable = queue_pair.reliable();
  ibv_qp_attr to{};
  to.port_num = 1;
  to.qkey = qkey;
  to.qp_access_flags = all_the_way || random.chance(0.9) ? every_access : 0;
  to.path_mtu = random.chance(0.7) ? IBV_MTU_256 : IBV_MTU_1024;
  to.dest_qp_num = peer;
  to.rq_psn = receive.value();
  to.sq_psn = send.value();
  to.max_rd_atomic = to.max_dest_rd_atomic = static_cast<std::uint8_t>(all_the_way ? 4 : random.below(5));
  to.min_rnr_timer = 1;
  to.timeout = static_cast<std::uint8_t>(random.chance(0.1) ? 0 : 2 + random.below(3));
  to.retry_cnt = to.rnr_retry = static_cast<std::uint8_t>(random.below(8));
  to.ah_attr = peer_attributes();
  const auto step = [&](ibv_qp_state state, int mask) {
    to.qp_state = state;
    if (engine.modify(queue_pair, to, IBV_QP_STATE | mask) != 0) complain("modify refused");
  };
  step(IBV_QPS_INIT, IBV_QP_PKEY_INDEX | IBV_QP_PORT | (datagrams ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
  if (!all_the_way && random.chance(0.02)) return;
  step(IBV_QPS_RTR, datagrams ? 0
                              : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                    (reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
  if (!all_the_way && random.chance(0.1)) return;
  step(IBV_QPS_RTS,
       IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

void Inhabitants::act() {
  QueuePair& queue_pair = *queue_pairs[random.below(queue_pairs.size())];
  for (const auto& each : queue_pairs) {
    const bool stuck = each->state == IBV_QPS_ERR || each->state == IBV_QPS_SQE || each->state == IBV_QPS_INIT;
    if (!stuck || !random.chance(0.5)) continue;
    to_reset(*each);
    connect(*each, peer_qpn, false, Psn(static_cast<std::uint32_t>(random.bits())),
            Psn(static_cast<std::uint32_t>(random.bits())));
  }
  const std::uint64_t choice = random.below(100);
  if (choice < 40) {
    post_receive(queue_pair);
    if (random.chance(0.5)) post_shared_receive();
  } else if (choice < 80) {
    post_send(queue_pair);
  } else if (choice < 92) {
    clock.advance(std::chrono::microseconds(random.below(40)));
    engine.run_timers(engine.now());
  } else if (choice < 96) {
    ibv_qp_attr attributes{};
    attributes.qp_state = queue_pair.state == IBV_QPS_SQD ? IBV_QPS_RTS : IBV_QPS_SQD;
    (void)engine.modify(queue_pair, attributes, IBV_QP_STATE);  // refused where it isn't in RTS or SQD
  } else if (choice < 97) {
    to_error(queue_pair);
  } else if (choice < 98) {
    engine.kill(queue_pair);
  } else if (choice < 99) {
    to_reset(queue_pair);
  } else {
    // A region comes and goes while answers from it may be owed.
    engine.regions.remove(keys.remote);
    wire.withdrawn.insert(keys.remote);
    keys.remote = engine.regions
                      .add(own_domain, arena.address(remote_zone.offset), remote_zone.bytes,
                           static_cast<std::uint32_t>(every_access))
                      .value();
    wire.withdrawn.erase(keys.remote);  // keys come back after 256 turns
  }
}

AddressVector Inhabitants::way_to_peer() {
  return engine.resolve(peer_attributes()).value();
}

ibv_sge Inhabitants::source_piece(std::uint32_t most) {
  const auto length = static_cast<std::uint32_t>(random.below(most + 1));
  const std::uint32_t key = random.chance(0.98) ? keys.source : no_key;
  return {arena.address(source_zone.offset + static_cast<std::uint32_t>(random.below(source_zone.bytes - most))),
          length, key};
}

void Inhabitants::post_send(QueuePair& queue_pair) {
  static constexpr std::array<ibv_wr_opcode, 7> opcodes = {
      IBV_WR_SEND,      IBV_WR_SEND_WITH_IMM,      IBV_WR_RDMA_WRITE,          IBV_WR_RDMA_WRITE_WITH_IMM,
      IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD};
  FuzzHandle handle{};
  handle.address = way_to_peer();
  ibv_send_wr wr{};
  std::array<ibv_sge, 2> pieces{source_piece(2000), source_piece(3000)};
  wr.wr_id = next_id_++;
  wr.opcode = opcodes[random.below(opcodes.size())];
  wr.sg_list = pieces.data();
  wr.num_sge = static_cast<int>(random.below(3));
  wr.send_flags = random.chance(0.7) ? IBV_SEND_SIGNALED : 0;
  if (random.chance(0.1)) wr.send_flags |= IBV_SEND_FENCE;
  wr.wr.rdma = {random.bits(), static_cast<std::uint32_t>(random.bits())};
  if (is_read_or_atomic_opcode(wr.opcode)) {
    const auto slot = static_cast<std::uint32_t>(random.below(landing_zone.bytes / slot_bytes));
    const bool reads = wr.opcode == IBV_WR_RDMA_READ;
    // Sometimes into memory that is not to be written: the queue pair has to notice.
    const bool forbidden = random.chance(0.05);
    pieces[0] = {
        forbidden ? arena.address(source_zone.offset) : reinterpret_cast<std::uint64_t>(arena.slot(landing_zone, slot)),
        reads ? static_cast<std::uint32_t>(random.below(random.chance(0.5) ? 300 : slot_room + 1)) : 8,
        forbidden ? keys.source : keys.landing};
    wr.num_sge = 1;
    if (!reads) wr.wr.atomic = {random.bits() & ~7ULL, random.bits(), random.bits(), 0};
  }
  if (queue_pair.settings.type == IBV_QPT_UD) wr.wr.ud = {&handle, 0x99, qkey};
  ibv_send_wr* bad = nullptr;
  Books& books = books_[index_of(queue_pair.qpn.value)];
  // Noted first: a request may end while it is posted.
  books.sends.push_back({wr.wr_id, (wr.send_flags & IBV_SEND_SIGNALED) != 0});
  if (engine.post_send(queue_pair, &wr, &bad, address_of) != 0) books.sends.pop_back();
}

void Inhabitants::fill_receive(ibv_recv_wr& wr, std::array<ibv_sge, 2>& pieces) {
  const auto slot = static_cast<std::uint32_t>(random.below(receive_zone.bytes / slot_bytes));
  const auto first = static_cast<std::uint32_t>(random.below(slot_room / 2));
  pieces[0] = {reinterpret_cast<std::uint64_t>(arena.slot(receive_zone, slot)), first, keys.receive};
  pieces[1] = {pieces[0].addr + first, static_cast<std::uint32_t>(random.below(slot_room - first + 1)), keys.receive};
  // A piece that the application has no right to: found out on delivery, and not written.
  if (random.chance(0.05)) pieces[1] = {arena.address(read_only_zone.offset), 4096, keys.read_only};
  if (random.chance(0.03)) pieces[1] = {arena.address(foreign_zone.offset), 4096, keys.foreign};
  if (random.chance(0.03)) pieces[1] = {arena.address(gone_zone.offset), 4096, keys.gone};
  if (random.chance(0.01)) pieces[0] = {arena.address(0), 256, no_key};
  wr.wr_id = next_id_++;
  wr.sg_list = pieces.data();
  wr.num_sge = random.chance(0.1) ? 1 : 2;
}

void Inhabitants::post_receive(QueuePair& queue_pair) {
  if (queue_pair.settings.srq != nullptr) return post_shared_receive();
  ibv_recv_wr wr{};
  std::array<ibv_sge, 2> pieces{};
  fill_receive(wr, pieces);
  ibv_recv_wr* bad = nullptr;
  Books& books = books_[index_of(queue_pair.qpn.value)];
  books.receives.push_back(wr.wr_id);
  if (engine.post_receive(queue_pair, &wr, &bad) != 0) books.receives.pop_back();
}

void Inhabitants::post_shared_receive() {
  ibv_recv_wr wr{};
  std::array<ibv_sge, 2> pieces{};
  fill_receive(wr, pieces);
  wr.wr_id |= shared_mark;
  ibv_recv_wr* bad = nullptr;
  if (engine.post_receive(srq_, &wr, &bad) == 0) shared_.insert(wr.wr_id);
}

void Inhabitants::to_error(QueuePair& queue_pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_ERR;
  if (engine.modify(queue_pair, attributes, IBV_QP_STATE) != 0) complain("ERR refused");
}

void Inhabitants::to_reset(QueuePair& queue_pair) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  if (engine.modify(queue_pair, attributes, IBV_QP_STATE) != 0) complain("RESET refused");
  books_[index_of(queue_pair.qpn.value)] = {};
}

// -- the books
// ---------------------------------------------------------------------------------------------------------

void Inhabitants::poll() {
  std::array<ibv_wc, 16> completions;
  for (;;) {
    const int count = engine.poll(cq_, static_cast<int>(completions.size()), completions.data());
    if (count < 0) complain("the completion queue broke");
    if (count <= 0) return;
    for (int i = 0; i < count; ++i) take(completions[static_cast<std::size_t>(i)]);
  }
}

void Inhabitants::take(const ibv_wc& wc) {
  Books& books = books_.at(index_of(wc.qp_num));
  if (wc.status == IBV_WC_SUCCESS) ++succeeded[wc.opcode];
  if ((wc.opcode & IBV_WC_RECV) == 0) {
    // Unsignalled ones before it ended without a word.
    while (!books.sends.empty() && books.sends.front().id != wc.wr_id && !books.sends.front().signalled) {
      books.sends.pop_front();
    }
    if (books.sends.empty() || books.sends.front().id != wc.wr_id) {
      return complain(fmt::format("send {} of queue pair {:#x} ended out of turn", wc.wr_id, wc.qp_num));
    }
    books.sends.pop_front();
  } else if ((wc.wr_id & shared_mark) != 0) {
    if (shared_.erase(wc.wr_id) != 1) complain("a shared receive ended twice");
  } else {
    if (books.receives.empty() || books.receives.front() != wc.wr_id) {
      return complain(fmt::format("receive {} of queue pair {:#x} ended out of turn", wc.wr_id, wc.qp_num));
    }
    books.receives.pop_front();
  }
}

void Inhabitants::check_counts() {
  for (const auto& each : queue_pairs) {
    QueuePair& qp = *each;
    const std::uint32_t head = qp.sends.head();
    const std::uint32_t posted = qp.sends.tail() - head;
    const std::uint32_t sent = qp.sends.cursor() - head;
    const std::uint32_t numbered = qp.requester.first_unsent - head;
    const auto count = [&](std::uint32_t first, auto predicate) {
      std::uint32_t found = 0;
      for (std::uint32_t i = 0; i < first; ++i) found += predicate(qp.sends.at(head + i)) ? 1 : 0;
      return found;
    };
    const auto hold = [&](bool holds, const char* what) {
      if (!holds)
        complain(fmt::format("queue pair {:#x} in state {}: {}", qp.qpn.value, static_cast<int>(qp.state), what));
    };
    hold(posted <= depth && sent <= posted && numbered <= posted, "positions of the send queue");
    if (posted > depth || sent > posted || numbered > posted) return;
    hold(sent <= numbered, "sent what was not numbered");
    hold(qp.requester.reads_outstanding == count(sent, is_read_or_atomic), "READs outstanding");
    if (qp.settings.type != IBV_QPT_UD) {
      hold(qp.requester.unplaced == count(numbered, [](const SendRequest& request) { return !request.placed; }),
           "requests not placed");
    }
    hold(qp.responder.response_count <= qp.responder.responses.size(), "answers owed");
    hold(qp.responder.assembly != Assembly::send || qp.responder.offset <= qp.responder.receive.length,
         "message longer than its receive");
    hold(qp.receives.waiting() <= qp.receives.capacity(), "receives waiting");
  }
}

void Inhabitants::wind_up() {
  for (const auto& queue_pair : queue_pairs) to_error(*queue_pair);
  poll();
  for (const Books& books : books_) {
    const bool owed =
        std::any_of(books.sends.begin(), books.sends.end(), [](const Send& send) { return send.signalled; });
    if (owed || !books.receives.empty()) complain("a request never ended");
  }
  for (const auto& queue_pair : queue_pairs) to_reset(*queue_pair);
  poll();
  std::uint32_t room = 0;
  for (; !srq_.queue.full(); ++room) {
    post_shared_receive();
    if (room > srq_.queue.capacity()) break;
  }
  if (srq_.queue.waiting() != srq_.queue.capacity()) complain("slots of the shared receive queue are lost");
  srq_.queue.clear();
}

// -- afterwards
// --------------------------------------------------------------------------------------------------------

void Inhabitants::converse() {
  wire.loop_back();
  engine.progress();
  for (std::size_t i = 0; i + 1 < queue_pairs.size(); i += 2) {
    QueuePair& a = *queue_pairs[i];
    QueuePair& b = *queue_pairs[i + 1];
    const auto psn = [&] { return Psn(static_cast<std::uint32_t>(random.bits())); };
    const Psn a_to_b = psn(), b_to_a = psn();
    connect(a, b.qpn.value, true, b_to_a, a_to_b);
    connect(b, a.qpn.value, true, a_to_b, b_to_a);
    // Both know of one MTU, as peers that agreed do.
    a.mtu_bytes = b.mtu_bytes = 256;
    talk(a, b);
    talk(b, a);
  }
}

void Inhabitants::talk(QueuePair& from, QueuePair& to) {
  const std::uint32_t overhead = from.settings.type == IBV_QPT_UD ? grh_bytes : 0;
  ibv_sge room{reinterpret_cast<std::uint64_t>(arena.slot(receive_zone, 3)), slot_room, keys.receive};
  ibv_recv_wr receive{.wr_id = 1, .next = nullptr, .sg_list = &room, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  const int posted =
      to.settings.srq != nullptr ? engine.post_receive(srq_, &receive, &bad) : engine.post_receive(to, &receive, &bad);
  if (posted != 0) return complain("afterwards: receive refused");
  constexpr std::uint32_t bytes = 3000;
  exchange(from, to, IBV_WR_SEND, source_zone, keys.source, bytes, 2);
  if (std::memcmp(arena.slot(receive_zone, 3) + overhead, arena.at(source_zone.offset), bytes) != 0) {
    complain("afterwards: a message arrived otherwise than it was sent");
  }
  if (from.settings.type == IBV_QPT_UD) return;
  exchange(from, to, IBV_WR_RDMA_WRITE, source_zone, keys.source, bytes, 1);
  if (std::memcmp(arena.at(remote_zone.offset), arena.at(source_zone.offset), bytes) != 0) {
    complain("afterwards: a write arrived otherwise than it was sent");
  }
  if (!from.reliable()) return;
  exchange(from, to, IBV_WR_RDMA_READ, {landing_zone.offset + slot_guard, slot_room}, keys.landing, bytes, 1);
  if (std::memcmp(arena.slot(landing_zone, 0), arena.at(remote_zone.offset), bytes) != 0) {
    complain("afterwards: a READ brought something else");
  }
}

// One request from the beginning of `local` to the beginning of the remote zone, until so many completions came.
void Inhabitants::exchange(QueuePair& from, QueuePair& to, ibv_wr_opcode opcode, Zone local, std::uint32_t key,
                           std::uint32_t bytes, int completions) {
  FuzzHandle handle{};
  handle.address = way_to_peer();
  ibv_sge piece{arena.address(local.offset), bytes, key};
  ibv_send_wr wr{};
  wr.sg_list = &piece;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma = {arena.address(remote_zone.offset), keys.remote};
  if (from.settings.type == IBV_QPT_UD) wr.wr.ud = {&handle, to.qpn.value, qkey};
  ibv_send_wr* bad = nullptr;
  if (engine.post_send(from, &wr, &bad, address_of) != 0) return complain("afterwards: send refused");
  constexpr int patience = 1000;
  for (int turn = 0; turn < patience && completions > 0; ++turn) {
    engine.progress();
    ibv_wc wc{};
    if (engine.poll(cq_, 1, &wc) != 1) continue;
    if (wc.status != IBV_WC_SUCCESS) complain(fmt::format("afterwards: {}", ibv_wc_status_str(wc.status)));
    --completions;
  }
  if (completions > 0) complain(fmt::format("afterwards: a request of kind {} never ends", static_cast<int>(opcode)));
}

}  // namespace verbatim::soft::fuzz
