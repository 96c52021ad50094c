#include "server/http/page_maker.h"

#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "server/http/compression.h"

namespace crout {

std::shared_ptr<const MadePage> MakePage(const HttpRoute& route, bool gzip) {
  auto made = std::make_shared<MadePage>();
  try {
    made->page = route.make();
    if (gzip) made->gzip = Gzip(made->page.body);
  } catch (const std::exception&) {
    made->page = {.status = 503, .body = "this page cannot be made now\n"};
  }
  return made;
}

void PageMaker::Make(const HttpRoute& route, Taker taker) {
  Queue& queue = queues_[&route];
  queue.waiting.push_back(std::move(taker));
  if (!queue.making) MakeNext(route, queue);
}

void PageMaker::MakeNext(const HttpRoute& route, Queue& queue) {
  queue.making = true;
  boost::asio::post(thread_, [this, &route, &queue, takers = std::exchange(queue.waiting, {})] {
    auto made = MakePage(route, /*gzip=*/true);
    boost::asio::post(*io_, [this, &route, &queue, takers, made = std::move(made)] {
      for (const Taker& taker : takers) taker(made);
      queue.making = false;
      if (!queue.waiting.empty()) MakeNext(route, queue);
    });
  });
}

}  // namespace crout
