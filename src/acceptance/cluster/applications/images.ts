/** Images of applications, built from programs of this machine. */
import { execFileSync } from "node:child_process";
import {
  globSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Architecture, type ImageSpec, ociArchive } from "../../../up/images/oci-archive.ts";
import type { TarEntry } from "../../../up/images/tar.ts";
import { makeExampleImage, readBusybox } from "../example-image.ts";

const architectures: Readonly<Partial<Record<string, Architecture>>> = { x64: "amd64", arm64: "arm64" };
const PASSWD = "root:x:0:0:root:/:/bin/sh\npostgres:x:999:999::/var/lib/postgresql:/bin/sh\n";

/** A directory with image archives for `--image-dir`, which disposal removes. */
export class ImageDirectory implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "svc-images-"));

  constructor(images: readonly (() => Buffer)[]) {
    for (const [index, make] of [makeExampleImage, ...images].entries()) {
      writeFileSync(join(this.path, `${index}.tar`), make());
    }
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Serves its name over HTTP at $PORT; `ready` succeeds when the services in the variables *_ADDR answer. */
const SERVE = `#!/bin/sh
mkdir -p /tmp/www && echo "$NAME" > /tmp/www/index.html && exec busybox httpd -f -p "$PORT" -h /tmp/www
`;
const READY = `#!/bin/sh
for address in $(env | grep -v _TCP_ADDR= | sed -n 's/.*_ADDR=//p') localhost:$PORT; do
  wget -q -O /dev/null "http://$address/" || exit 1
done
`;
/** Requests the pages at $FRONTEND_ADDR again and again, and prints them. */
const LOAD = `#!/bin/sh
trap 'exit 0' TERM
while :; do wget -q -O - "http://$FRONTEND_ADDR/" || echo failed; sleep 1 & wait $!; done
`;

export function makeServiceImage(): Buffer {
  return makeImage({
    name: "svc.local/examples/service:1",
    files: [
      ...shell(),
      { path: "bin/serve", data: Buffer.from(SERVE), mode: 0o755 },
      { path: "bin/ready", data: Buffer.from(READY), mode: 0o755 },
      { path: "bin/load", data: Buffer.from(LOAD), mode: 0o755 },
    ],
    command: ["/bin/serve"],
  });
}

/** Debian's PostgreSQL; undefined if it is not installed. */
export function findPostgres(): string | undefined {
  return globSync("/usr/lib/postgresql/*/bin/postgres").sort().at(-1);
}

/** Creates the database in $PGDATA at the first start. Any client may connect. */
const POSTGRES = `#!/bin/sh
set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username=postgres --auth=trust --no-locale --encoding=UTF8 > /dev/null
  echo "host all all all trust" >> "$PGDATA/pg_hba.conf"
fi
# A new mount of the volume gives its group access, which PostgreSQL refuses.
busybox chmod 0700 "$PGDATA"
exec postgres -c listen_addresses='*' -c unix_socket_directories=/tmp -c shared_buffers=16MB -c fsync=on
`;

export function makePostgresImage(): Buffer {
  const bin = dirname(findPostgres() ?? "");
  const version = basename(dirname(bin));
  const programs = ["postgres", "initdb", "psql", "pg_isready"].map((name) => join(bin, name));
  const modules = ["dict_snowball.so", "plpgsql.so"].map((name) => join(dirname(bin), "lib", name));
  const share = globSync(`/usr/share/postgresql/${version}/**/*`).filter(
    (path) => !/\/(?:extension|man)\/(?!plpgsql)/.test(path),
  );
  const files = copyFiles([...programs, ...modules, ...share, ...globSync("/usr/share/zoneinfo/{UTC,Etc/UTC,GMT}")]);
  return makeImage({
    name: "svc.local/examples/postgres:1",
    files: merge([...shell(), ...files, { path: "bin/start", data: Buffer.from(POSTGRES), mode: 0o755 }]),
    command: ["/bin/start"],
    environment: [`PATH=${bin}:/bin`, "LC_ALL=C", "TZ=UTC"],
    user: "999:999",
    stopSignal: "SIGINT",
  });
}

/** Node.js with a program, an ES module. */
export function makeNodeImage(program: string): Buffer {
  const node = realpathSync(process.execPath);
  return makeImage({
    name: "svc.local/examples/node:1",
    files: merge([
      ...shell(),
      ...copyFiles([node]),
      { path: "bin/node", link: node },
      { path: "app/main.mjs", data: Buffer.from(program) },
    ]),
    command: ["/bin/node", "/app/main.mjs"],
  });
}

function makeImage(image: Omit<ImageSpec, "architecture">): Buffer {
  const architecture = architectures[process.arch];
  if (architecture === undefined) throw new Error(`Cannot make an image for ${process.arch}`);
  return ociArchive({ ...image, architecture, files: withDirectories(image.files) });
}

function shell(): readonly TarEntry[] {
  const applets = ["cat", "echo", "env", "grep", "id", "ls", "mkdir", "nc", "rm", "sed", "sh", "sleep", "wget"];
  return [
    { path: "bin/busybox", data: readBusybox(), mode: 0o755 },
    ...applets.map((applet) => ({ path: `bin/${applet}`, link: "busybox" })),
    { path: "etc/passwd", data: Buffer.from(PASSWD) },
    { path: "etc/group", data: Buffer.from("root:x:0:\npostgres:x:999:\n") },
    { path: "tmp", mode: 0o1777 },
  ];
}

/** Files with the shared libraries that they need, at the same paths. */
function copyFiles(paths: readonly string[]): readonly TarEntry[] {
  const entries: TarEntry[] = [];
  for (const path of paths) {
    const status = lstatSync(path);
    if (status.isDirectory()) continue;
    const name = path.slice(1);
    if (status.isSymbolicLink()) {
      entries.push({ path: name, link: readlinkSync(path) }, ...copyFiles([realpathSync(path)]));
      continue;
    }
    const data = readFileSync(path);
    entries.push({ path: name, data, mode: (status.mode & 0o777) | 0o444 });
    if (data.subarray(0, 4).equals(Buffer.from("\x7fELF", "latin1"))) entries.push(...librariesOf(path));
  }
  return entries;
}

function librariesOf(path: string): readonly TarEntry[] {
  const output = execFileSync("ldd", [path], { encoding: "utf8" });
  const libraries = [...output.matchAll(/(?:=> )?(\/\S+) \(/g)].map(([, library = ""]) => library);
  return libraries.map((library) => ({ path: library.slice(1), data: readFileSync(library), mode: 0o755 }));
}

/** Each path once. */
function merge(entries: readonly TarEntry[]): readonly TarEntry[] {
  return [...new Map(entries.map((entry) => [entry.path, entry])).values()];
}

function withDirectories(entries: readonly TarEntry[]): readonly TarEntry[] {
  const directories = new Set<string>();
  for (const { path } of entries) {
    for (let parent = dirname(path); parent !== "."; parent = dirname(parent)) directories.add(parent);
  }
  for (const { path, data, link } of entries) if (data === undefined && link === undefined) directories.delete(path);
  return [...[...directories].sort().map((path) => ({ path })), ...entries];
}
