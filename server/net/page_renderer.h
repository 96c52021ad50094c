// SPDX-License-Identifier: Apache-2.0

// Generates pages that may block, on a thread other than the connections' thread.
#ifndef CROUT_SERVER_NET_PAGE_RENDERER_H_
#define CROUT_SERVER_NET_PAGE_RENDERER_H_

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/util/thread_pool.h"
#include "server/net/http_page.h"

namespace crout {

// A page and its gzip form. All requests that the page answers share one copy.
struct RenderedPage {
  HttpPage page;
  std::string gzip;  // empty: send the plain body
};

// Generates the page of `route` on the calling thread, and its gzip form if `gzip` is set. Returns
// a 503 page if `make` throws, for example std::bad_alloc.
std::shared_ptr<const RenderedPage> RenderPage(const HttpRoute& route, bool gzip) noexcept;

// Generates pages on its own thread. Not thread-safe: use it only on the thread of `io`.
class PageRenderer {
 public:
  using PageCallback = std::function<void(std::shared_ptr<const RenderedPage>)>;

  explicit PageRenderer(boost::asio::io_context* io) : io_(io) {}
  // Waits for the page in progress and drops its callbacks without calling them.
  ~PageRenderer() { stopping_ = true; }
  PageRenderer(const PageRenderer&) = delete;  // Its thread refers to it.
  PageRenderer& operator=(const PageRenderer&) = delete;

  // Calls `callback` on the thread of `io` with a page whose generation starts after this call.
  // `route` must outlive this object.
  void Render(const HttpRoute& route, PageCallback callback);

 private:
  struct Queue {
    bool rendering = false;
    std::vector<PageCallback> waiting;  // callbacks of the next page
  };
  void RenderNext(const HttpRoute& route, Queue& queue);
  // Runs on the thread of io_.
  void Deliver(const HttpRoute& route, Queue& queue, const std::vector<PageCallback>& callbacks,
               const std::shared_ptr<const RenderedPage>& page);

  boost::asio::io_context* const io_;
  std::map<const HttpRoute*, Queue> queues_;  // node-based: references to queues stay valid
  std::atomic<bool> stopping_ = false;
  ThreadPool thread_{1};  // last member: its destructor waits for the page
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_PAGE_RENDERER_H_
