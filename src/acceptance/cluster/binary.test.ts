/** The single-file programs: they run in any directory, on any mount. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import t, { type Test } from "tap";
import { isExecutable } from "../../testing/apiserver/kubectl-paths.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { command, programs, root } from "./cluster.ts";

const forms = [
  { name: "dist/svc", file: programs.bundle[0], cpuMsMax: 80 },
  { name: "the self-contained executable", file: programs.binary[0], cpuMsMax: 30 },
];
const product = "svc 0.1.0 (Kubernetes 1.33.0)\n";
/** CPU time of Node.js alone on the reference machine of the limits. */
const BARE_NODE_MS = 22;
const mayMount = process.platform === "linux" && process.getuid?.() === 0;
/** dist/svc finds the Node.js of the tests beside itself or on the PATH. */
const env = { ...process.env, SVC_NODE: process.execPath };

for (const { name, file, cpuMsMax } of forms) {
  t.test(name, async (t) => {
    if (!isExecutable(file)) {
      if (process.platform === "linux") t.fail(`${name} does not exist; make build binary creates it`);
      else console.error(`Skipped: ${name} requires Linux.`);
      return;
    }
    const directory = mkdtempSync(join(tmpdir(), "svc-binary-"));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));

    await t.test("prints its version", async (t) => {
      t.same(await command(file, ["version"]), { code: 0, stdout: product, stderr: "" });
      t.match(await command(file, ["agent", "--version"]), { code: 0, stdout: /^agent v1\.33\./ });
      t.match(await command(file, ["apiserver", "--version"]), { code: 0, stdout: /^apiserver v1\.33\./ });
    });

    await t.test("dispatches on the first argument", async (t) => {
      t.match((await command(file, ["agent", "--help"])).stdout, "--container-runtime-endpoint");
      t.match((await command(file, ["apiserver", "--help"])).stdout, "--kvstore-servers");
      t.match((await command(file, ["up", "--help"])).stdout, "--data-dir");
      t.match((await command(file, ["completion", "bash"])).stdout, "complete");
      t.match(await command(file, ["apiservr"]), {
        code: 1,
        stderr: /unknown command "apiservr"; did you mean apiserver/,
      });
    });

    await t.test("dispatches on the name of its file", async (t) => {
      const svclet = join(directory, "svclet");
      symlinkSync(file, svclet);
      t.match((await command(svclet, ["--help"], { env })).stdout, "--container-runtime-endpoint");
      const other = join(directory, "other");
      symlinkSync("svclet", other);
      t.equal((await command(other, ["version"], { env })).stdout, product, "another name runs svc");
    });

    await t.test("runs from the PATH", async (t) => {
      const path = `${dirname(file)}${delimiter}${process.env.PATH}`;
      t.equal(
        (await command("sh", ["-c", `${basename(file)} version`], { env: { ...env, PATH: path } })).stdout,
        product,
      );
    });

    await t.test("runs as a copy in another directory", async (t) => {
      const copy = join(directory, "copied svc");
      copyFileSync(file, copy);
      t.equal((await command(copy, ["version"], { env, cwd: "/" })).stdout, product);
    });

    await t.test("runs from a read-only file system, with /tmp mounted noexec", async (t) => {
      if (!mayMount) {
        console.error("Skipped: mounts require root on Linux.");
        return;
      }
      copyFileSync(file, join(directory, "svc"));
      // A copy beside it, since the Node.js of the tests may be below /tmp.
      writeFileSync(join(directory, "node"), "");
      // The server opens the store, which loads native code from a file.
      const script = `
        set -e
        # What the test runner would have every Node load may lie below /tmp as well.
        unset NODE_OPTIONS
        mount --bind "${directory}" /mnt
        mount --bind "${process.execPath}" /mnt/node
        mount -o remount,bind,ro /mnt
        mount -t tmpfs -o noexec,nosuid tmpfs /tmp
        ! touch /mnt/here 2>/dev/null
        /mnt/svc version
        state=$(mktemp -d -p /run)
        /mnt/svc apiserver --kvstore-servers="level://$state/kvstore" --cert-dir="$state/pki" \\
          --bind-address=127.0.0.1 --secure-port=${await freePort()} >"$state/log" 2>&1 &
        for _ in $(seq 150); do grep -q "Serving securely" "$state/log" && break; sleep 0.1; done
        kill $! || true
        wait || true
        cat "$state/log" >&2
        rm -rf "$state"`;
      const { stdout, stderr } = await command("unshare", ["-m", "--propagation=private", "sh", "-c", script], {
        env: { ...env, SVC_NODE: "" },
        cwd: "/",
      });
      t.equal(stdout, product, stderr);
      t.match(stderr, "Serving securely", "the server opened its store");
    });

    await t.test(`svc version takes less than ${cpuMsMax} ms of CPU time`, async (t) => {
      // On a slower or busy machine Node.js alone takes longer too.
      const bare: number[] = [];
      const times: number[] = [];
      for (let i = 0; i < 7; i++) {
        bare.push(await cpuMs(process.execPath, ["-e", "0"]));
        times.push(await cpuMs(file, ["version"]));
      }
      const [least, leastBare] = [Math.min(...times), Math.min(...bare)];
      t.comment(`CPU milliseconds: ${least}; Node.js alone: ${leastBare}`);
      t.ok(least < cpuMsMax * Math.max(1, leastBare / BARE_NODE_MS), `${least} ms`);
    });
  });
}

t.test("dist/svc", async (t) => {
  await t.test("is reproducible", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "svc-build-"));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    const built = await Promise.all(["a", "b"].map((name) => build(t, join(directory, name))));
    t.ok(built[0]!.equals(built[1]!));
  });

  await t.test("prints its version without reading its programs", (t) => {
    const text = readFileSync(programs.bundle[0], "latin1");
    const [first = ""] = text.split("\n/*PROGRAMS\n");
    t.ok(first.length < 32 * 1024, `${first.length} bytes before the programs`);
    for (const library of ["yargs", "pino", "grpc-js", "zod", "classic-level"]) {
      t.notMatch(first, `node_modules/${library}`);
    }
    t.end();
  });

  await t.test("reports the required version when Node.js is too old or absent", async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "svc-node-"));
    t.teardown(() => rmSync(directory, { recursive: true, force: true }));
    const copy = join(directory, "svc");
    copyFileSync(programs.bundle[0], copy);
    const none = await command(copy, ["version"], { env: { PATH: "/nowhere" } });
    t.match(none, { code: 127, stderr: "svc: needs Node.js 22.19 or newer: none found" });
    const old = join(directory, "old");
    await command("sh", ["-c", `printf '#!/bin/sh\\necho v20.1.0\\n' > ${old}; chmod +x ${old}`]);
    const tooOld = await command(copy, ["version"], { env: { PATH: "/nowhere", SVC_NODE: old } });
    t.match(tooOld, { code: 127, stderr: `${old} is v20.1.0` });
    const other = await command(copy, ["version"], { env: { PATH: dirname(process.execPath), SVC_NODE: old } });
    t.equal(other.stdout, product, "the next suitable Node.js is used");
  });
});

async function build(t: Test, out: string): Promise<Buffer> {
  const { code, stderr } = await command("node", [join(root, "build.mjs"), "--out", out]);
  t.equal(code, 0, stderr);
  return readFileSync(join(out, "svc"));
}

const RUNS = 8;

/** User and system time of a run with its children, in milliseconds; the mean of several, for resolution. */
async function cpuMs(file: string, args: readonly string[]): Promise<number> {
  const runs = '"$@" >/dev/null; '.repeat(RUNS);
  const { stdout } = await command("sh", ["-c", `${runs} times`, "sh", file, ...args]);
  const children = stdout.trim().split("\n").at(-1) ?? "";
  const parts = [...children.matchAll(/(\d+)m([\d.]+)s/g)];
  const seconds = parts.reduce((sum, [, minutes, rest]) => sum + Number(minutes) * 60 + Number(rest), 0);
  return Math.round((1000 * seconds) / RUNS);
}
