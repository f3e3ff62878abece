/** An image with an entrypoint and default arguments: busybox's `echo`. */

import { ociArchive } from "../../../up/images/oci-archive.ts";
import { readBusybox } from "../../cluster/example-image.ts";

export const entryImage = "svc.local/examples/entry:1";

export function makeEntryImage(): Buffer {
  return ociArchive({
    name: entryImage,
    architecture: process.arch === "arm64" ? "arm64" : "amd64",
    files: [
      { path: "bin" },
      { path: "bin/busybox", data: readBusybox(), mode: 0o755 },
      { path: "bin/echo", link: "busybox" },
      { path: "bin/env", link: "busybox" },
    ],
    entrypoint: ["/bin/echo", "entrypoint"],
    command: ["default", "arguments"],
  });
}
