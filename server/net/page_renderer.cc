// SPDX-License-Identifier: Apache-2.0

#include "server/net/page_renderer.h"

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
const std::shared_ptr<const RenderedPage> kUnavailable = [] {
  auto page = std::make_shared<RenderedPage>();
  page->page.status = 503;
  page->page.body = "this page cannot be created now; try again later\n";
  return page;
}();

}  // namespace

std::shared_ptr<const RenderedPage> RenderPage(const HttpRoute& route, bool gzip) noexcept {
  try {
    auto page = std::make_shared<RenderedPage>();
    page->page = route.make();
    if (gzip) page->gzip = Gzip(page->page.body);
    return page;
  } catch (const std::exception&) {
    return kUnavailable;
  }
}

void PageRenderer::Render(const HttpRoute& route, PageCallback callback) {
  Queue& queue = queues_[&route];
  queue.waiting.push_back(std::move(callback));
  if (!queue.rendering) RenderNext(route, queue);
}

void PageRenderer::RenderNext(const HttpRoute& route, Queue& queue) {
  const auto callbacks = std::make_shared<const std::vector<PageCallback>>(queue.waiting);
  thread_.Schedule([this, &route, &queue, callbacks] {
    const auto page = RenderPage(route, /*gzip=*/true);
    while (!stopping_) {
      try {
        boost::asio::post(*io_, [this, &route, &queue, callbacks, page] {
          Deliver(route, queue, *callbacks, page);
        });
        return;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(kDeliveryPause);
      }
    }
  });
  queue.waiting.clear();
  queue.rendering = true;
}

void PageRenderer::Deliver(const HttpRoute& route, Queue& queue,
                           const std::vector<PageCallback>& callbacks,
                           const std::shared_ptr<const RenderedPage>& page) {
  queue.rendering = false;
  if (!queue.waiting.empty()) RenderNext(route, queue);
  for (const PageCallback& callback : callbacks) callback(page);
}

}  // namespace crout
