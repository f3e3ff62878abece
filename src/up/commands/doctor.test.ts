/** `svc doctor` on this machine, while svc up does not run. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import type { Finding } from "../../agent/doctor/finding.ts";
import { parseFlags } from "../../flags/parse.ts";
import { freePort } from "../../testing/std/free-port.ts";
import { upFlags } from "../flags.ts";
import { findDataDirOwner, lockDataDir } from "../host/data-dir-lock.ts";
import { inspectMachine } from "../host/host.ts";
import { ensurePki } from "../pki/pki.ts";
import { upSubject, usableOptions } from "./doctor.ts";

const MAIN = fileURLToPath(new URL("../../main.ts", import.meta.url));

interface Output {
  readonly code: number;
  readonly findings: readonly Finding[];
  readonly text: string;
}

function doctor(...args: readonly string[]): Promise<Output> {
  return new Promise((resolve, reject) => {
    execFile(process.execPath, [MAIN, "doctor", ...args], { timeout: 60_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : Number(error.code);
      try {
        const isJson = args.includes("json");
        resolve({ code, text: stdout, findings: isJson ? JSON.parse(stdout).findings : [] });
      } catch {
        reject(new Error(`exit status ${code}: ${stdout}${stderr}`));
      }
    });
  });
}

function find({ findings }: Output, id: string, text = ""): Finding | undefined {
  return findings.find((each) => each.id === id && each.found.includes(text));
}

async function clusterFlags(directory: string): Promise<readonly string[]> {
  const ports = [`--secure-port=${await freePort()}`, `--agent-port=${await freePort()}`];
  return [`--data-dir=${join(directory, "data")}`, "--node-name=edge-7", ...ports, "-o", "json"];
}

t.test("svc doctor checks a machine on which svc up does not run, and changes nothing", async (t) => {
  const directory = t.testdir({});
  const output = await doctor(...(await clusterFlags(directory)));
  t.ok([0, 1, 2].includes(output.code));
  t.equal(
    output.code === 2,
    output.findings.some(({ severity }) => severity === "error"),
  );
  t.match(find(output, "api-server-reachable"), { severity: "ok", found: "svc up does not run" });
  t.match(find(output, "port-free", "--secure-port"), { severity: "ok", found: /: free$/ });
  t.match(find(output, "certificate-present", "CA of the cluster"), { severity: "ok" });
  t.notOk(find(output, "check-failed"));
  t.notOk(existsSync(join(directory, "data")));
});

t.test(
  "svc doctor finds a port in use, an open key, wrong names, and an image directory that is missing",
  async (t) => {
    const directory = t.testdir({});
    const other = createServer().listen(0, "127.0.0.1");
    await once(other, "listening");
    t.teardown(() => other.close());
    const { port } = other.address() as AddressInfo;
    const pki = join(directory, "data", "pki");
    mkdirSync(pki, { recursive: true });
    await ensurePki({ directory: pki, serverNames: ["192.0.2.77"], now: Date.now() });
    chmodSync(join(pki, "admin.key"), 0o644);
    writeFileSync(join(pki, "agent-client.crt"), "damaged");
    const flags = await clusterFlags(directory);
    const output = await doctor(...flags, `--secure-port=${port}`, `--image-dir=${directory}/no`);
    t.equal(output.code, 2);
    t.match(find(output, "port-free", "--secure-port"), { severity: "error", found: /used by process \d+/ });
    t.match(find(output, "key-mode", "admin.key"), { severity: "error", found: /0644/ });
    t.match(find(output, "certificate-names"), { severity: "warning", found: /not valid for/ });
    t.match(find(output, "certificate-present", "agent-client"), { severity: "error" });
    t.match(find(output, "image-dir"), { severity: "error" });
    t.notMatch(output.text, readFileSync(join(pki, "admin.key"), "utf8").split("\n")[1] ?? "");
  },
);

t.test("svc doctor describes a runtime that --container-runtime-endpoint names and that is missing", async (t) => {
  const directory = t.testdir({});
  const endpoint = `--container-runtime-endpoint=unix://${directory}/no.sock`;
  const output = await doctor(...(await clusterFlags(directory)), endpoint);
  t.equal(output.code, 2);
  t.match(find(output, "cri-socket"), { severity: "error" });
  t.notOk(find(output, "managed-runtime"));
  t.equal((await doctor("--data-dir")).code, 2, "a mistake on the command line");
  t.match((await doctor("--help")).text, /^Usage:\n {2}svc doctor \[flags\]/m);
});

t.test("findDataDirOwner() finds the process that runs svc up on a directory", async (t) => {
  const directory = t.testdir({});
  t.equal(await findDataDirOwner(directory), undefined);
  t.equal(await findDataDirOwner(join(directory, "no")), undefined);
  using _lock = await lockDataDir(directory);
  t.equal(await findDataDirOwner(directory), process.pid);
});

t.test("a machine without an address and without programs is checked all the same", async (t) => {
  const surroundings = { hostname: "edge-7", interfaces: {}, routes: undefined };
  const { options, problems } = usableOptions(parseFlags(upFlags, []), surroundings);
  t.match(problems, [/Cannot find an address for the node/]);
  const machine = { ...inspectMachine({}), isExecutable: () => false, platform: "linux", arch: "x64", uid: 0 };
  const subject = upSubject(options, { isImageDirSet: false, problems, warnings: [], pid: undefined, machine });
  t.match(subject.managedRuntime?.missing, [/^containerd is not installed/]);
  t.equal(subject.config.runtime.endpoint, "unix:///run/svc/containerd.sock");
});
