/** Images of the recorded pods, built from this machine's static busybox and Node.js. */
import { execFileSync } from "node:child_process";
import { readFileSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { transformSync } from "esbuild";
import { type ImageSpec, ociArchive } from "../../../up/images/oci-archive.ts";
import type { TarEntry } from "../../../up/images/tar.ts";
import { readBusybox } from "../example-image.ts";

const architecture = process.arch === "arm64" ? "arm64" : "amd64";

/** Archives for `ctr images import`. */
export function recordedImages(): readonly Buffer[] {
  const files = [...shell(), { path: "etc" }, passwd(), { path: "tmp", mode: 0o1777 }, { path: "www" }];
  const bb = { architecture, files, environment: ["PATH=/bin"], command: ["sleep", "3600"] } as const;
  const group = { path: "etc/group", data: Buffer.from("root:x:0:\napp:x:1000:\nextra:x:5000:app\n") };
  const user = [...files.filter(({ path }) => path !== "etc/passwd"), passwd("app:x:1000:1000::/tmp:/bin/sh\n")];
  const sh = ["sh", "-c"];
  const images: readonly ImageSpec[] = [
    { ...bb, name: "localhost/bb:1" },
    { ...bb, name: "localhost/user-name:1", files: [...user, group], user: "app" },
    { ...bb, name: "localhost/user-uid:1", files: [...user, group], user: "1000:1000" },
    { ...bb, name: "localhost/stopsig:1", stopSignal: "SIGUSR1" },
    {
      ...bb,
      name: "localhost/entry:1",
      files: [...files, { path: "data" }],
      entrypoint: sh,
      command: ["echo from image cmd"],
      environment: ["PATH=/bin", "IMG_ENV=from-image"],
      workingDirectory: "/data",
    },
    { ...bb, name: "localhost/nocmd:1", command: [] },
    {
      ...bb,
      name: "localhost/vol:1",
      files: [...files, { path: "data" }, { path: "data/file", data: Buffer.from("x") }],
      volumes: ["/data"],
    },
    { ...bb, name: "localhost/health:1", files: [...files, ...health()] },
  ];
  return images.map(ociArchive);
}

function shell(): readonly TarEntry[] {
  const binary = readBusybox();
  const applets = execFileSync("busybox", ["--list"], { encoding: "utf8" }).split("\n");
  return [
    { path: "bin" },
    { path: "bin/busybox", data: binary, mode: 0o755 },
    ...applets
      .filter((name) => name !== "" && name !== "busybox")
      .map((name) => ({ path: `bin/${name}`, link: "busybox" })),
  ];
}

function passwd(more = ""): TarEntry {
  return { path: "etc/passwd", data: Buffer.from(`root:x:0:0:root:/:/bin/sh\n${more}`) };
}

/** A server for probes: `health-server.ts` with this Node.js. */
function health(): readonly TarEntry[] {
  const libraries = execFileSync("ldd", [process.execPath], { encoding: "utf8" })
    .split("\n")
    .flatMap((line) => /(\/\S+) \(0x/.exec(line)?.[1] ?? []);
  const folders = [...new Set(libraries.flatMap((path) => ancestors(dirname(path))))].sort();
  const script = '#!/bin/sh\nexec /bin/node /bin/health-server.mjs "$@"\n';
  // Plain JavaScript starts faster.
  const program = transformSync(readFileSync(new URL("./health-server.ts", import.meta.url), "utf8"), {
    loader: "ts",
    format: "esm",
  });
  return [
    ...folders.filter((path) => path !== "bin").map((path) => ({ path })),
    ...libraries.map((path) => ({ path: path.slice(1), data: readFileSync(realpathSync(path)), mode: 0o755 })),
    { path: "bin/node", data: readFileSync(process.execPath), mode: 0o755 },
    { path: "bin/health-server.mjs", data: Buffer.from(program.code) },
    { path: "bin/health", data: Buffer.from(script), mode: 0o755 },
  ];
}

function ancestors(path: string): readonly string[] {
  return path === "/" ? [] : [...ancestors(dirname(path)), path.slice(1)];
}
