// SPDX-License-Identifier: Apache-2.0

#include "server/net/page_maker.h"

#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "server/net/compression.h"

namespace crout {

namespace {

// Pause before the next attempt to deliver a page if memory runs out.
constexpr std::chrono::milliseconds kDeliveryPause(10);

// Created at startup, because it could not be created when memory runs out.
const std::shared_ptr<const MadePage> kUnmade = [] {
  auto made = std::make_shared<MadePage>();
  made->page.status = 503;
  made->page.body = "this page cannot be created now; try again later\n";
  return made;
}();

}  // namespace

std::shared_ptr<const MadePage> MakePage(const HttpRoute& route, bool gzip) noexcept {
  try {
    auto made = std::make_shared<MadePage>();
    made->page = route.make();
    if (gzip) made->gzip = Gzip(made->page.body);
    return made;
  } catch (const std::exception&) {
    return kUnmade;
  }
}

void PageMaker::Make(const HttpRoute& route, PageCallback callback) {
  Queue& queue = queues_[&route];
  queue.waiting.push_back(std::move(callback));
  if (!queue.making) MakeNext(route, queue);
}

void PageMaker::MakeNext(const HttpRoute& route, Queue& queue) {
  const auto callbacks = std::make_shared<const std::vector<PageCallback>>(queue.waiting);
  thread_.Schedule([this, &route, &queue, callbacks] {
    const auto made = MakePage(route, /*gzip=*/true);
    while (!ending_) {
      try {
        boost::asio::post(*io_, [this, &route, &queue, callbacks, made] {
          Deliver(route, queue, *callbacks, made);
        });
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(kDeliveryPause);
      }
    }
  });
  queue.waiting.clear();
  queue.making = true;
}

void PageMaker::Deliver(const HttpRoute& route, Queue& queue,
                        const std::vector<PageCallback>& callbacks,
                        const std::shared_ptr<const MadePage>& page) {
  queue.making = false;
  if (!queue.waiting.empty()) MakeNext(route, queue);
  for (const PageCallback& callback : callbacks) callback(page);
}

}  // namespace crout
