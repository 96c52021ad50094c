// SPDX-License-Identifier: Apache-2.0

// The folder of a group's socket and of the files that MPI makes.
#ifndef CROUT_SERVER_GROUPS_RANK_FOLDER_H_
#define CROUT_SERVER_GROUPS_RANK_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "kernels/util/owned_file.h"

namespace crout {

// A folder in memory that only this user can enter, removed by the destructor. It is locked until
// then. A killed daemon leaves its folder behind, unlocked. Move-only.
class RankFolder {
 public:
  // Removes the unlocked folders of this user, and makes a folder. UNAVAILABLE, with the system's
  // message, if the folder cannot be made.
  static absl::StatusOr<RankFolder> Create();
  ~RankFolder();
  RankFolder(RankFolder&& other) noexcept;
  RankFolder& operator=(RankFolder&&) = delete;

  const std::string& path() const { return path_; }
  // Path of the socket at which ranks join.
  std::string socket() const { return path_ + "/join"; }
  // File of the output of the ranks.
  std::string log() const { return path_ + "/log"; }
  // Returns the end of that output, for error messages.
  std::string LogTail() const;
  // Makes an empty folder for the files of the next formation, and removes the folder of the last
  // one. Returns its path.
  absl::StatusOr<std::string> RenewFiles() const;

 private:
  RankFolder(std::string path, OwnedFile lock);

  std::string path_;
  OwnedFile lock_;  // the folder
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_FOLDER_H_
