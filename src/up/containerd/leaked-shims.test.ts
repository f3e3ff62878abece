import { spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { findLeakedShims, shimOf } from "./leaked-shims.ts";

const SOCKET = "/run/a/containerd.sock";
const words = ["/usr/bin/containerd-shim-runc-v2", "-namespace", "k8s.io", "-id", "c1", "-address", SOCKET, ""];

t.test("shimOf() recognizes shims of one containerd only", async (t) => {
  t.equal(shimOf(words, SOCKET), "c1");
  t.equal(shimOf(words, "/run/b/containerd.sock"), undefined);
  t.equal(shimOf(["/usr/bin/vi", ...words.slice(1)], SOCKET), undefined);
  t.equal(shimOf(words.with(2, "moby"), SOCKET), undefined);
  t.equal(shimOf([], SOCKET), undefined);
});

t.test("findLeakedShims() finds a shim whose container's directory is gone", async (t) => {
  const state = t.testdir();
  const socket = join(state, "containerd.sock");
  const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60_000); console.log()", "--", "x"], {
    argv0: "containerd-shim-runc-v2",
    stdio: ["ignore", "pipe", "ignore"],
  });
  t.teardown(() => child.kill("SIGKILL"));
  await new Promise((resolve) => child.stdout.once("data", resolve));
  t.same(findLeakedShims(socket, state), [], "that is no shim of ours");
  const shim = spawn(
    process.execPath,
    ["-e", "setTimeout(() => {}, 60_000); console.log()", "--", ...words.slice(1, -2), socket],
    { argv0: "containerd-shim-runc-v2", stdio: ["ignore", "pipe", "ignore"] },
  );
  t.teardown(() => shim.kill("SIGKILL"));
  await new Promise((resolve) => shim.stdout.once("data", resolve));
  t.same(findLeakedShims(socket, state), [{ pid: shim.pid, containerId: "c1" }]);
  mkdirSync(join(state, "io.containerd.runtime.v2.task/k8s.io/c1"), { recursive: true });
  t.same(findLeakedShims(socket, state), []);
});
