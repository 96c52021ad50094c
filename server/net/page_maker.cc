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

// Before the next attempt to hand a page out, when there is no memory to say that it is made.
constexpr std::chrono::milliseconds kHandOutPause(10);

// There from the start: without memory it could not be made either.
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

void PageMaker::Make(const HttpRoute& route, Taker taker) {
  Queue& queue = queues_[&route];
  queue.waiting.push_back(std::move(taker));
  if (!queue.making) MakeNext(route, queue);
}

void PageMaker::MakeNext(const HttpRoute& route, Queue& queue) {
  const auto takers = std::make_shared<const std::vector<Taker>>(queue.waiting);
  thread_.Schedule([this, &route, &queue, takers] {
    const auto made = MakePage(route, /*gzip=*/true);
    while (!ending_) {
      try {
        boost::asio::post(
            *io_, [this, &route, &queue, takers, made] { HandOut(route, queue, *takers, made); });
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(kHandOutPause);
      }
    }
  });
  queue.waiting.clear();
  queue.making = true;
}

void PageMaker::HandOut(const HttpRoute& route, Queue& queue, const std::vector<Taker>& takers,
                        const std::shared_ptr<const MadePage>& page) {
  queue.making = false;
  if (!queue.waiting.empty()) MakeNext(route, queue);
  for (const Taker& taker : takers) taker(page);
}

}  // namespace crout
