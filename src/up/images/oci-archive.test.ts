import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { ociArchive } from "./oci-archive.ts";
import { tar } from "./tar.ts";

const image = {
  name: "svc.local/test:1",
  architecture: "amd64",
  files: [
    { path: "bin" },
    { path: "bin/hello", data: Buffer.from("hello"), mode: 0o755 },
    { path: "bin/hi", link: "hello" },
  ],
  entrypoint: ["/bin/hello"],
} as const;

t.test("ociArchive() builds an OCI layout with correct digests", async (t) => {
  const directory = t.testdir({});
  writeFileSync(join(directory, "image.tar"), ociArchive(image));
  execFileSync("tar", ["xf", "image.tar"], { cwd: directory });
  const index = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
  t.equal(index.manifests[0].annotations["io.containerd.image.name"], "svc.local/test:1");
  for (const name of readdirSync(join(directory, "blobs/sha256"))) {
    const content = readFileSync(join(directory, "blobs/sha256", name));
    t.equal(createHash("sha256").update(content).digest("hex"), name);
  }
});

t.test("ociArchive() is reproducible", async (t) => {
  t.ok(ociArchive(image).equals(ociArchive(image)));
});

t.test("tar() writes archives that tar extracts with links and modes", async (t) => {
  const directory = t.testdir({});
  writeFileSync(join(directory, "files.tar"), tar(image.files));
  const listing = execFileSync("tar", ["tvf", "files.tar"], { cwd: directory, encoding: "utf8" });
  t.match(listing, /drwxr-xr-x.* bin\//);
  t.match(listing, /-rwxr-xr-x.* bin\/hello\n/);
  t.match(listing, /bin\/hi -> hello/);
  t.throws(() => tar([{ path: "x".repeat(101), data: Buffer.alloc(0) }]), /too long/);
});
