#include "cpufree/engines/cpu_fibers/schedule.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <thread>

namespace cpufree::cpu_fibers {

namespace {
thread_local Machine* entering = nullptr;  // makecontext passes no pointers

template <class Transfers>
bool nothing_comes(const Transfers& transfers, const std::vector<std::uint64_t>& pending) {
  return transfers.empty() &&
         std::ranges::all_of(pending, [](std::uint64_t bits) { return bits == 0; });
}
}  // namespace

Machine::Machine(const Config& config, std::function<void(int, int)> body)
    : config_(config),
      body_(std::move(body)),
      fibers_(static_cast<std::size_t>(config.pes * config.blocks)),
      records_(fibers_.size()),
      random_(config.seed) {
  live_ = awake_ = fibers_.size();
  for (std::size_t k = 0; k < live_; ++k) takes_turns(k, true);
  pending_.resize((fibers_.size() + 63) / 64);
  // Not filled with zeros: most of a stack is never touched.
  for (Fiber& fiber : fibers_)
    fiber.stack = std::make_unique_for_overwrite<std::byte[]>(kStackBytes);
  // Seeds differ in more than their draws: lazy and eager memory, calm and restless schedules, and
  // one fiber far behind the others in every third.
  eagerness_ = 1 + static_cast<unsigned>(random_() % 15);
  unrest_ = 1 + static_cast<unsigned>(random_() % 15);
  haste_ = 1 + static_cast<unsigned>((random_() % 8) * (random_() % 8));
  starved_ =
      config.seed % 3 == 0 ? static_cast<std::size_t>(random_() % fibers_.size()) : fibers_.size();
}

bool Machine::run() {
  bool gave_up = false;
  std::size_t vain = 0;  // steps in which all waited, since the last yield
  while (live_ > 0) {
    if (++steps_ > config_.step_limit || stuck()) leave();
    deliver_some();
    carry_some();
    // PEs may have a machine and a thread each: then it is another thread that is waited for.
    if (config_.pes > 1 && awake_ == 0 && nothing_comes(transfers_, pending_) &&
        ++vain > turns_.size()) {
      vain = 0;
      std::this_thread::yield();
    }
    if (!turns_.empty()) switch_to(pick());
    gave_up = gave_up || leaving_;
  }
  for (; !transfers_.empty(); ++steps_) deliver_some(), carry_some();
  return !gave_up;
}

// All that still run are waiting, have looked at memory as it is, and no store is under way.
bool Machine::stuck() const {
  return awake_ == 0 && nothing_comes(transfers_, pending_) &&
         std::ranges::all_of(turns_,
                             [&](std::size_t k) { return fibers_[k].looked_at == version_; });
}

std::size_t Machine::pick() {
  while (true) {
    const std::size_t k = turns_[static_cast<std::size_t>(random_() % turns_.size())];
    const bool alone = awake_ == (fibers_[k].waiting ? 0U : 1U);
    if (k == starved_ && !alone && random_() % 64 != 0) continue;
    return k;
  }
}

void Machine::takes_turns(std::size_t fiber, bool from_now_on) {
  if (from_now_on) {
    fibers_[fiber].turn = turns_.size();
    turns_.push_back(fiber);
    return;
  }
  const std::size_t place = fibers_[fiber].turn;
  turns_[place] = turns_.back();
  fibers_[turns_[place]].turn = place;
  turns_.pop_back();
}

void Machine::leave() {
  if (leaving_) return;
  leaving_ = true;
  for (std::size_t k = 0; k < fibers_.size(); ++k) wake(k);
}

void Machine::deliver_some() {
  for (std::size_t word = 0; word < pending_.size(); ++word)
    for (std::uint64_t bits = pending_[word]; bits != 0; bits &= bits - 1) {
      const std::size_t k = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
      if (random_() % 16 >= eagerness_) continue;
      while (deliver_one(fibers_[k]) && random_() % 16 < eagerness_) {
      }
      note_pending(k);
    }
}

// After stores of a fiber have been added or taken away.
void Machine::note_pending(std::size_t fiber) {
  const std::uint64_t bit = std::uint64_t{1} << (fiber % 64);
  std::uint64_t& word = pending_[fiber / 64];
  word = fibers_[fiber].pending.empty() ? word & ~bit : word | bit;
}

// Any store may take effect unless an earlier one goes to the same place, or lies before a publish
// that it lies after.
bool Machine::deliver_one(Fiber& fiber) {
  auto& pending = fiber.pending;
  if (pending.empty()) return false;
  const auto chosen = static_cast<std::size_t>(random_() % pending.size());
  std::size_t k = chosen;
  for (std::size_t earlier = 0; earlier < chosen; ++earlier)
    if (pending[earlier].to == pending[k].to || pending[earlier].barrier < pending[k].barrier)
      k = std::min(k, earlier);
  const Pending store = pending[k];
  if (store.not_before > steps_) {
    ++version_;  // it will come: no fiber is stuck yet
    return false;
  }
  std::memcpy(store.to, store.bytes, store.size);
  pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(k));
  ++version_;
  return true;
}

void Machine::carry_some() {
  for (Transfer& transfer : transfers_)
    if (transfer.not_before <= steps_ && random_() % 64 < haste_) carry(transfer);
  std::erase_if(transfers_, [](const Transfer& transfer) { return transfer.done; });
}

// One piece of a put, or its signal.
void Machine::carry(Transfer& transfer) {
  const auto& stores = fibers_[transfer.fiber].pending;
  if (std::ranges::any_of(stores, [&](const Pending& s) { return s.barrier < transfer.barrier; }))
    return;
  ++version_;
  auto& pieces = transfer.pieces;
  if (!pieces.empty()) {
    const auto k = static_cast<std::ptrdiff_t>(random_() % pieces.size());
    const auto [begin, end] = pieces[static_cast<std::size_t>(k)];
    std::memcpy(transfer.to + begin, transfer.from + begin, end - begin);
    pieces.erase(pieces.begin() + k);
    return;
  }
  if (transfer.flag != nullptr) *transfer.flag = transfer.epoch;
  transfer.done = true;
}

void Machine::call() {
  Fiber& fiber = fibers_[current_];
  if (hit(Fault::Kind::kill_block, fiber.calls++)) throw Killed{};
  if (random_() % 16 < unrest_) switch_back();
}

void Machine::look() {
  call();
  Fiber& fiber = fibers_[current_];
  if (!fiber.looking) fiber.looked_at = version_;
  fiber.looking = true;
}

bool Machine::wait() {
  if (leaving_) return false;
  Fiber& fiber = fibers_[current_];
  fiber.waiting = true;
  --awake_;
  fiber.looking = false;
  switch_back();
  fiber.waiting = false;
  ++awake_;
  return !leaving_;
}

bool Machine::park() {
  if (leaving_) return false;
  Fiber& fiber = fibers_[current_];
  fiber.parked = fiber.waiting = true;
  --awake_;
  takes_turns(current_, false);
  switch_back();
  return !leaving_;
}

void Machine::wake(std::size_t fiber) {
  Fiber& f = fibers_[fiber];
  if (!f.parked) return;
  f.parked = f.waiting = false;
  ++awake_;
  takes_turns(fiber, true);
}

void Machine::store(void* to, const void* from, std::size_t size) {
  Pending pending;
  pending.to = to;
  std::memcpy(pending.bytes, from, size);
  pending.size = size;
  pending.barrier = fibers_[current_].barrier;
  fibers_[current_].pending.push_back(pending);
  note_pending(current_);
}

void Machine::signal(void* to, const void* from, std::size_t size) {
  Fiber& fiber = fibers_[current_];
  const std::int64_t number = fiber.signals++;
  if (hit(Fault::Kind::drop_signal, number)) return;
  store(to, from, size);
  if (hit(Fault::Kind::repeat_signal, number)) store(to, from, size);
  if (hit(Fault::Kind::delay_signal, number)) fiber.pending.back().not_before = steps_ + 3000;
}

void Machine::expect_rise(const Epoch* flag, Epoch epoch) {
  Epoch& last = risen_[flag];
  if (epoch != last + 2 && !(last == 0 && epoch == 1))
    throw std::logic_error("a flag between nodes gets " + std::to_string(epoch) + " after " +
                           std::to_string(last));
  last = epoch;
}

void Machine::send(void* to, const void* from, std::size_t size, Epoch* flag, Epoch epoch) {
  Transfer transfer;
  transfer.to = static_cast<std::byte*>(to);
  transfer.from = static_cast<const std::byte*>(from);
  for (std::size_t begin = 0; begin < size;) {
    const std::size_t end = std::min(size, begin + sizeof(double) * (1 + random_() % 3));
    transfer.pieces.push_back({begin, end});
    begin = end;
  }
  Fiber& fiber = fibers_[current_];
  const std::int64_t number = fiber.signals++;
  transfer.flag = hit(Fault::Kind::drop_signal, number) ? nullptr : flag;
  transfer.epoch = epoch;
  transfer.fiber = current_;
  transfer.barrier = fiber.barrier;
  if (hit(Fault::Kind::delay_signal, number)) transfer.not_before = steps_ + 3000;
  transfers_.push_back(std::move(transfer));
}

void Machine::publish() {
  if (config_.fault.kind != Fault::Kind::skip_publish) ++fibers_[current_].barrier;
}

Epoch Machine::count_in(Epoch* counter) {
  Fiber& fiber = fibers_[current_];
  std::erase_if(fiber.pending, [&](const Pending& store) {
    if (store.barrier >= fiber.barrier) return false;
    std::memcpy(store.to, store.bytes, store.size);
    return true;
  });
  note_pending(current_);
  ++version_;
  return (*counter)++;
}

bool Machine::hit(Fault::Kind kind, std::int64_t count) const {
  const Fault& fault = config_.fault;
  return fault.kind == kind && fault.at == count &&
         current_ == static_cast<std::size_t>(fault.pe * config_.blocks + fault.block);
}

// --- Switching stacks: ucontext to enter a fiber, then setjmp, which makes no system calls. ---

void Machine::enter() { entering->main_of_current(); }

void Machine::main_of_current() {
  const auto k = static_cast<int>(current_);
  WaitRecord& record = records_[current_];
  record.state = BlockState::running;
  try {
    body_(k / config_.blocks, k % config_.blocks);
    if (record.state == BlockState::running) record.state = BlockState::finished;
  } catch (const Killed&) {
    fibers_[current_].pending.clear();
    note_pending(current_);
  }
  takes_turns(current_, false);
  --live_;
  --awake_;
  ++version_;
  std::longjmp(scheduler_, 1);
}

void Machine::switch_to(std::size_t fiber) {
  current_ = fiber;
  if (setjmp(scheduler_) != 0) return;
  Fiber& f = fibers_[fiber];
  if (f.started) std::longjmp(f.resume, 1);
  f.started = true;
  getcontext(&f.start);
  f.start.uc_stack.ss_sp = f.stack.get();
  f.start.uc_stack.ss_size = kStackBytes;
  f.start.uc_link = nullptr;
  entering = this;
  makecontext(&f.start, &Machine::enter, 0);
  setcontext(&f.start);
}

void Machine::switch_back() {
  if (setjmp(fibers_[current_].resume) == 0) std::longjmp(scheduler_, 1);
}

}  // namespace cpufree::cpu_fibers
