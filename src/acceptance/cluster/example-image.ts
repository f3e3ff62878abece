/**
 * Builds the image of the examples, `svc.local/examples/hello:1`, from this machine's static busybox:
 *   node src/acceptance/cluster/example-image.ts dist/images/hello.tar
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { type Architecture, ociArchive } from "../../up/images/oci-archive.ts";

export const exampleImage = "svc.local/examples/hello:1";

/** The commands of the examples and tests, links to busybox. */
const applets = [
  "cat",
  "date",
  "echo",
  "env",
  "false",
  "hostname",
  "id",
  "ip",
  "ls",
  "nc",
  "ps",
  "sh",
  "sha256sum",
  "sleep",
  "tar",
  "true",
  "wget",
];
const busyboxPaths = ["/bin/busybox", "/usr/bin/busybox", "/usr/local/bin/busybox"];
const architectures: Readonly<Partial<Record<string, Architecture>>> = { x64: "amd64", arm64: "arm64" };
const PT_INTERP = 3;

/** Returns an archive for `ctr images import`. Throws without a statically linked busybox. */
export function makeExampleImage(): Buffer {
  const architecture = architectures[process.arch];
  if (architecture === undefined)
    throw new Error(`Cannot make an image for ${process.arch}: only x64 and arm64 are supported`);
  return ociArchive({
    name: exampleImage,
    architecture,
    files: [
      { path: "bin" },
      { path: "bin/busybox", data: readBusybox(), mode: 0o755 },
      ...applets.map((applet) => ({ path: `bin/${applet}`, link: "busybox" })),
      { path: "etc" },
      {
        path: "etc/passwd",
        data: Buffer.from("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
      },
      { path: "etc/group", data: Buffer.from("root:x:0:\nnogroup:x:65534:\n") },
      { path: "tmp", mode: 0o1777 },
    ],
    command: ["/bin/sh"],
  });
}

/** Throws when there is none. */
export function readBusybox(): Buffer {
  for (const path of busyboxPaths) {
    try {
      const file = readFileSync(path);
      if (isStatic(file)) return file;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
  }
  throw new Error(`Cannot find a statically linked busybox in ${busyboxPaths.join(", ")}: install busybox-static`);
}

/** A dynamically linked ELF file names its loader in a program header of type PT_INTERP. */
function isStatic(elf: Buffer): boolean {
  if (elf.length < 64 || elf.readUInt32BE(0) !== 0x7f454c46 || elf[4] !== 2) return false;
  const at = Number(elf.readBigUInt64LE(32));
  const size = elf.readUInt16LE(54);
  const count = elf.readUInt16LE(56);
  for (let i = 0; i < count; i++) if (elf.readUInt32LE(at + i * size) === PT_INTERP) return false;
  return true;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const target = process.argv[2] ?? "dist/images/hello.tar";
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, makeExampleImage());
}
