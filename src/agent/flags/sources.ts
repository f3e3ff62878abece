import { flag, section } from "../../flags/flag.ts";
import { duration } from "../../flags/types/duration.ts";
import { httpUrl } from "../../flags/types/network.ts";
import { headers } from "../../flags/types/node.ts";
import { bool, directory, file } from "../../flags/types/text.ts";
import { inFile } from "./deprecation.ts";

export const sourcesFlags = section("Pod sources and sync", {
  "pod-manifest-path": flag(
    file,
    "",
    "Directory of static pod files, or one static pod file. Files whose names start with a dot are ignored.",
    { config: "staticPodPath", deprecated: inFile },
  ),
  "manifest-url": flag(httpUrl, "", "URL serving additional pod specifications.", {
    config: "staticPodURL",
    deprecated: inFile,
  }),
  "manifest-url-header": flag(
    headers,
    {},
    "name:value headers sent when fetching the manifest URL. Same-name headers are added in the order given. " +
      "The flag may be repeated.",
    { config: "staticPodURLHeader", deprecated: inFile },
  ),
  "file-check-frequency": flag(duration({ min: 1 }), 20_000, "Interval between checks of config files.", {
    config: "fileCheckFrequency",
    deprecated: inFile,
  }),
  "http-check-frequency": flag(duration({ min: 1 }), 20_000, "Interval between checks of the HTTP source.", {
    config: "httpCheckFrequency",
    deprecated: inFile,
  }),
  "sync-frequency": flag(
    duration({ min: 1 }),
    60_000,
    "Maximum period between synchronizations of running containers and config.",
    { config: "syncFrequency", deprecated: inFile },
  ),
  runonce: flag(
    bool,
    false,
    "Exit after starting pods from local manifests or remote URLs. Exclusive with --enable-server.",
    { config: "runOnce", deprecated: inFile },
  ),
  config: flag(file, "", "Initial config file."),
  "config-dir": flag(directory, "", "Drop-in config directory."),
});
