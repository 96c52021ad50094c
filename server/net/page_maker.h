// SPDX-License-Identifier: Apache-2.0

// Makes the pages that may block, away from the thread that serves connections.
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

// A page, and its packed form for those who take it. One copy serves every request it answers.
struct MadePage {
  HttpPage page;
  std::string gzip;  // empty: send it plain
};

// A page of `make`, 503 if that throws (memory is what it can lack).
std::shared_ptr<const MadePage> MakePage(const HttpRoute& route, bool gzip) noexcept;

// Used on the thread of `io` alone.
class PageMaker {
 public:
  using Taker = std::function<void(std::shared_ptr<const MadePage>)>;

  explicit PageMaker(boost::asio::io_context* io) : io_(io) {}
  // Waits for the page in progress; its takers are not called any more.
  ~PageMaker() { ending_ = true; }
  PageMaker(const PageMaker&) = delete;  // Its thread refers to it.
  PageMaker& operator=(const PageMaker&) = delete;

  // Calls `taker` on the thread of `io` with a page that was begun after this call. `route`
  // outlives this object.
  void Make(const HttpRoute& route, Taker taker);

 private:
  struct Queue {
    bool making = false;
    std::vector<Taker> waiting;  // for the next page
  };
  void MakeNext(const HttpRoute& route, Queue& queue);
  // On the thread of io_.
  void HandOut(const HttpRoute& route, Queue& queue, const std::vector<Taker>& takers,
               const std::shared_ptr<const MadePage>& page);

  boost::asio::io_context* const io_;
  std::map<const HttpRoute*, Queue> queues_;  // nodes stay where they are
  std::atomic<bool> ending_ = false;
  ThreadPool thread_{1};  // the last member: its destructor waits for the page
};

}  // namespace crout

#endif  // CROUT_SERVER_NET_PAGE_MAKER_H_
