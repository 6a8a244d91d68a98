// SPDX-License-Identifier: Apache-2.0
// One turn of a host: input, time-outs, what it sends, its events.
#include "tests/sim/pump.h"

namespace weft::test {

void Pump::drive(Time now) {
  now_ = now;
  for (int round = 0; round < 8 && fabric_.poll(now, 256, *this) == 256; ++round) {
  }
  if (connection.poll_timeout() <= now) connection.handle_timeout(now);
  transmit();
  Event event;
  while (connection.poll_event(&event)) on_event(event);
  transmit();  // what the events led to
  while (connection.poll_event(&event)) on_event(event);
}

void Pump::transmit() {
  for (int round = 0; round < 64; ++round) {
    connection.poll_transmit(now_, *outbox_);
    if (outbox_->empty()) return;
    for (size_t i = 0; i < outbox_->commands; ++i) {
      const PathCommand& c = outbox_->command[i];
      if (c.what == PathCommand::What::kKill) {
        fabric_.kill_path(link_, c.path, c.epoch);
      } else {
        fabric_.reopen_path(link_, c.path, c.epoch);
      }
    }
    for (size_t i = 0; i < outbox_->controls; ++i) outbox_->control[i].link = link_;
    for (size_t i = 0; i < outbox_->segments; ++i) outbox_->segment[i].link = link_;
    fabric_.post_control(now_, {outbox_->control.data(), outbox_->controls});
    const size_t taken = fabric_.post(now_, {outbox_->segment.data(), outbox_->segments});
    if (taken < outbox_->segments) {
      connection.handle_refused({outbox_->segment.data() + taken, outbox_->segments - taken});
      return;
    }
  }
}

void Pump::receive(std::span<Datagram> batch) {
  headers_.assign(batch.size(), {});
  for (size_t i = 0; i < batch.size(); ++i) {
    Datagram& d = batch[i];
    const std::span<const std::byte> bytes(d.bytes, d.size);
    wire::CommonHeader common;
    d.destination = nullptr;
    if (!wire::decode_common(bytes, &common)) {
      ++strangers_;
    } else if (common.kind == wire::Kind::kControl) {
      connection.handle_control(now_, bytes);
    } else if (common.kind == wire::Kind::kProbe) {
      wire::ProbeHeader probe;
      if (wire::decode_probe(bytes, &probe))
        connection.handle_probe(now_, probe, d.congestion_marked);
    } else if (wire::decode_data(bytes, &headers_[i])) {
      d.destination = connection.claim(now_, headers_[i]);
      d.header_bytes = wire::kDataHeaderBytes;
      d.cookie = i;
    }
  }
}

void Pump::arrived(std::span<const Datagram> batch) {
  for (const Datagram& d : batch) {
    if (d.destination) connection.handle_arrival(now_, headers_[d.cookie], d.congestion_marked);
  }
}

void Pump::landed(std::span<const Landing> batch) {
  for (const Landing& l : batch)
    connection.handle_landing(now_, l.path, l.epoch, l.immediate, l.bytes);
}

void Pump::completed(std::span<const Completion> batch) {
  for (const Completion& c : batch) connection.handle_completion(c.cookie);
}

void Pump::path_changed(std::span<const PathChange> batch) {
  for (const PathChange& c : batch) {
    if (c.what == PathChange::What::kKilled) {
      connection.handle_path_killed(now_, c.path, c.epoch);
    } else {
      connection.handle_path_broken(now_, c.path, c.epoch);
    }
  }
}

}  // namespace weft::test
