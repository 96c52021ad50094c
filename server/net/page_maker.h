// SPDX-License-Identifier: Apache-2.0

// Generates pages that may block, on a thread other than the connections' thread.
#ifndef CROUT_SERVER_NET_PAGE_MAKER_H_
#define CROUT_SERVER_NET_PAGE_MAKER_H_

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
struct MadePage {
  HttpPage page;
  std::string gzip;  // empty: send the plain body
};

// Generates the page of `route` on the calling thread, and its gzip form if `gzip` is set. Returns
// a 503 page if `make` throws, for example std::bad_alloc.
std::shared_ptr<const MadePage> MakePage(const HttpRoute& route, bool gzip) noexcept;

// Generates pages on its own thread. Not thread-safe: use it only on the thread of `io`.
class PageMaker {
 public:
  using PageCallback = std::function<void(std::shared_ptr<const MadePage>)>;

  explicit PageMaker(boost::asio::io_context* io) : io_(io) {}
  // Waits for the page in progress and drops its callbacks without calling them.
  ~PageMaker() { ending_ = true; }
  PageMaker(const PageMaker&) = delete;  // Its thread refers to it.
  PageMaker& operator=(const PageMaker&) = delete;

  // Calls `callback` on the thread of `io` with a page whose generation starts after this call.
  // `route` must outlive this object.
  void Make(const HttpRoute& route, PageCallback callback);

 private:
  struct Queue {
    bool making = false;
    std::vector<PageCallback> waiting;  // callbacks of the next page
  };
  void MakeNext(const HttpRoute& route, Queue& queue);
  // Runs on the thread of io_.
  void Deliver(const HttpRoute& route, Queue& queue, const std::vector<PageCallback>& callbacks,
               const std::shared_ptr<const MadePage>& page);

  boost::asio::io_context* const io_;
  std::map<const HttpRoute*, Queue> queues_;  // node-based: references to queues stay valid
  std::atomic<bool> ending_ = false;
  ThreadPool thread_{1};  // last member: its destructor waits for the page
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_PAGE_MAKER_H_
