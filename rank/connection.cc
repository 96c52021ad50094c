// SPDX-License-Identifier: Apache-2.0

#include "rank/connection.h"

#include <fstream>
#include <iterator>
#include <stdexcept>

#include "kernels/util/loopback.h"

namespace crout::rank {
namespace {

std::string ReadFile(const std::string& path) {
  if (path.empty()) return {};
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file || text.empty()) throw std::runtime_error("cannot read " + path + ", or it is empty");
  return text;
}

bool StaysOnMachine(const std::string& address) {
  if (address.starts_with("unix:")) return true;
  std::string host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return IsLoopbackHost(host);
}

}  // namespace

Connection::Connection(const CommandLine& settings) {
  if (!settings.token_file.empty()) {
    if (!settings.tls && !StaysOnMachine(settings.join)) {
      throw std::runtime_error("--token-file needs --tls, because others could read the token");
    }
    std::string token = ReadFile(settings.token_file);
    token.erase(token.find_last_not_of(" \r\n") + 1);
    authorization_ = "Bearer " + token;
  }
  auto credentials = grpc::InsecureChannelCredentials();
  if (settings.tls) {
    credentials = grpc::SslCredentials({.pem_root_certs = ReadFile(settings.ca),
                                        .pem_private_key = ReadFile(settings.key),
                                        .pem_cert_chain = ReadFile(settings.certificate)});
  }
  constexpr int kConnectMs = 3000;
  grpc::ChannelArguments arguments;
  // Limits the time of one attempt to connect, so that a link that is up again is used soon.
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMs);
  stub_ =
      v1::RankService::NewStub(grpc::CreateCustomChannel(settings.join, credentials, arguments));
}

void Connection::Authorize(grpc::ClientContext& context) const {
  if (!authorization_.empty()) context.AddMetadata("authorization", authorization_);
}

}  // namespace crout::rank
