/** Against the real containerd, where it is installed and we are root. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { systemRandom } from "../../std/crypto/random.ts";
import { silentLogger } from "../../std/log/logger.ts";
import { systemClock } from "../../std/time/clock.ts";
import { checkHost, type Host, HostError, inspectMachine } from "../host/host.ts";
import { runCommand } from "../host/run-command.ts";
import { importImages, listImages, parseImportedNames } from "../images/import.ts";
import { pauseArchive, pauseImage } from "../images/pause.ts";
import { containerdConfig } from "./config.ts";
import {
  type ContainerdOptions,
  chooseSnapshotter,
  removeServiceManagerVariables,
  startContainerd,
} from "./containerd.ts";
import { probeOverlay } from "./overlay-probe.ts";

const host = ((): Host | undefined => {
  try {
    return checkHost(inspectMachine(process.env));
  } catch (error) {
    if (!(error instanceof HostError)) throw error;
    console.log("containerd, its plugins or root are not present: 4 checks left out");
    return undefined;
  }
})();

/** Not below the test's own directory: the paths of sockets are short. */
function newDirectory(): string {
  return mkdtempSync(join(tmpdir(), "svcup-"));
}

function optionsIn(directory: string, { containerd, runc, cniBinDir, mayLowerOomScore }: Host): ContainerdOptions {
  return {
    binary: containerd,
    settings: {
      root: join(directory, "root"),
      state: join(directory, "state"),
      socket: join(directory, "c.sock"),
      pauseImage,
      snapshotter: "native",
      runc,
      cniBinDir,
      cniConfDir: join(directory, "cni"),
      registryConfigDir: join(directory, "registries"),
      mayLowerOomScore,
    },
    configFile: join(directory, "config.toml"),
    logFile: join(directory, "log"),
    pidFile: join(directory, "pid"),
    clock: systemClock,
    random: systemRandom,
    log: silentLogger,
  };
}

t.test("containerdConfig() escapes paths as TOML strings", async (t) => {
  const settings = optionsIn('/a "b"\\c', {
    containerd: "",
    ctr: "",
    runc: "/r",
    cniBinDir: "/b",
    hasIptables: true,
    mayLowerOomScore: true,
    cgroupVersion: 2,
  }).settings;
  t.match(containerdConfig(settings), 'root = "/a \\"b\\"\\\\c/root"');
  t.match(containerdConfig(settings), "restrict_oom_score_adj = false");
});

t.test("startContainerd() refuses a socket path that is too long for Linux", async (t) => {
  const base = optionsIn(`/tmp/${"x".repeat(100)}`, {
    containerd: "/none",
    ctr: "",
    runc: "",
    cniBinDir: "",
    hasIptables: false,
    mayLowerOomScore: true,
    cgroupVersion: 2,
  });
  await t.rejects(startContainerd(base), /longer than 107 bytes/);
});

t.test("chooseSnapshotter() decides once for a root", async (t) => {
  const root = t.testdir({});
  t.equal(await chooseSnapshotter(root, async () => Promise.reject(new Error("no overlay")), silentLogger), "native");
  t.equal(await chooseSnapshotter(root, async () => {}, silentLogger), "native");
});

t.test("parseImportedNames() reads the names in the output of ctr", async (t) => {
  t.same(parseImportedNames("unpacking a.b/c:1 (sha256:00)...done\nunpacking d:2 (sha256:11)...\nother\n"), [
    "a.b/c:1",
    "d:2",
  ]);
});

if (host !== undefined) {
  t.test("startContainerd() reports the end of the log when containerd does not start", async (t) => {
    const directory = newDirectory();
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    await t.rejects(startContainerd({ ...optionsIn(directory, host), binary: "/bin/false" }), /exited immediately/);
    await t.rejects(startContainerd({ ...optionsIn(directory, host), binary: "/none" }), /exited immediately/);
  });

  t.test("startContainerd() starts, imports images, restarts when killed, and stops", async (t) => {
    const directory = newDirectory();
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    const options = optionsIn(directory, host);
    const containerd = await startContainerd(options);
    t.teardown(() => containerd.close());
    const archive = join(directory, "pause.tar");
    writeFileSync(archive, pauseArchive(process.arch === "arm64" ? "arm64" : "amd64"));
    const importer = {
      ctr: host.ctr,
      socket: containerd.socket,
      snapshotter: "native",
      recordFile: join(directory, "images.json"),
      log: silentLogger,
    };
    t.same(await importImages(importer, [{ path: archive, required: true, pinned: true }]), [pauseImage]);
    t.ok((await listImages(importer)).includes(pauseImage));
    // Removed behind our back, it is brought in again.
    await runCommand(host.ctr, ["-a", containerd.socket, "-n", "k8s.io", "images", "rm", pauseImage], {
      timeoutMs: 10_000,
    });
    await importImages(importer, [{ path: archive }]);
    t.ok((await listImages(importer)).includes(pauseImage));
    writeFileSync(join(directory, "bad.tar"), "no archive");
    t.same(await importImages(importer, [{ path: join(directory, "bad.tar") }]), []);
    await t.rejects(importImages(importer, [{ path: join(directory, "bad.tar"), required: true }]), /Cannot run/);

    const first = containerd.pid!;
    process.kill(first, "SIGKILL");
    for (let tries = 0; tries < 100 && (containerd.pid === first || !existsSync(containerd.socket)); tries++) {
      await systemClock.sleep(50);
    }
    t.not(containerd.pid, first);
    await containerd.close();
    t.notOk(existsSync(`/proc/${containerd.pid}`));
    t.notOk(existsSync(options.pidFile));
  });

  t.test("startContainerd() replaces the daemon of an earlier run", async (t) => {
    const directory = newDirectory();
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    const options = optionsIn(directory, host);
    await using left = await startContainerd(options);
    const pid = Number(readFileSync(options.pidFile, "utf8"));
    await using next = await startContainerd(options);
    t.not(next.pid, pid);
    await left.close();
    await next.close();
  });

  t.test("probeOverlay() leaves nothing behind", async (t) => {
    const directory = newDirectory();
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    await probeOverlay(directory).catch(() => {});
    t.notMatch(readFileSync("/proc/mounts", "utf8"), directory);
  });
}

t.test("removeServiceManagerVariables() keeps containerd from notifying the service manager", async (t) => {
  const env = { PATH: "/bin", NOTIFY_SOCKET: "/run/n", WATCHDOG_USEC: "1", WATCHDOG_PID: "2" };
  t.same(removeServiceManagerVariables(env), { PATH: "/bin" });
});
